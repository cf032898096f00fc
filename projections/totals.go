package projections

import "github.com/foundling-go/foundling/events"

// MaxTopics is how many topics Totals counts by name: those that were seen first.
const MaxTopics = 500

// The names under which Totals counts what it does not count by its own.
const (
	OtherTopics  = "__other__"   // topics behind the first MaxTopics
	UnknownTopic = "__unknown__" // messages whose beginning was let go before anybody saw it
	OtherCommand = "__other__"   // commands behind the first maxCommands
)

// maxCommands is how many commands are told apart in refusals. Foundling has far fewer; a log that another program wrote may have any.
const maxCommands = 100

// maxKnown is how many messages' topics are remembered at most. What was forgotten is learnt again.
const maxKnown = 1 << 18

// Totals counts what ever happened, for metrics: it is durable, so that its counts survive restarts and pruning and are the same in every
// process. None of them falls. How many there are is bounded, whatever the log holds. Its zero is the beginning of the log.
//
// It is a [Learner]: the topics of messages that were enqueued before it was restored it must be told.
type Totals struct {
	asOf   Mark
	counts Counts // but for its topics
	topics map[string]*TopicCounts
	known  map[events.ID]*TopicCounts // of open messages, as far as they are remembered
}

var _ interface {
	Durable
	Learner
} = (*Totals)(nil)

// Counts is what Totals has counted. Its words are those of the log: names of event types, states, reasons, commands and topics. What was
// never counted is not there.
type Counts struct {
	Transitions map[string]map[string]int            `json:"transitions,omitempty"` // by type, then by the state it led to; of a refusal, the state it met
	Unknown     int                                  `json:"unknown,omitempty"`     // events of types that the one who counted did not know
	Topics      map[string]TopicCounts               `json:"topics,omitempty"`      // MaxTopics by name at most
	Overflow    int                                  `json:"overflow,omitempty"`    // messages under OtherTopics: above 0, not every topic is told apart any more
	Refusals    map[string]map[string]map[string]int `json:"refusals,omitempty"`    // by type of the refusal, command, then reason
	Unrecorded  int                                  `json:"unrecorded,omitempty"`  // refusals that were only counted, since their sender sent too many
	Repairs     int                                  `json:"repairs,omitempty"`     // messages that waited for a free lock and were sent to try, which is a fault
	Sweeps      SweepCounts                          `json:"sweeps"`
	Pruned      int                                  `json:"pruned,omitempty"` // events that were let go
}

// TopicCounts is what happened to the messages of a topic.
type TopicCounts struct {
	Enqueued     int            `json:"enqueued,omitempty"`
	Claimed      int            `json:"claimed,omitempty"`
	Blocked      int            `json:"blocked,omitempty"`
	Completed    int            `json:"completed,omitempty"`
	Cancelled    int            `json:"cancelled,omitempty"`
	Discarded    int            `json:"discarded,omitempty"`
	Redriven     int            `json:"redriven,omitempty"`
	Requeued     map[string]int `json:"requeued,omitempty"`      // by reason
	DeadLettered map[string]int `json:"dead_lettered,omitempty"` // by reason
}

// Retries is how often a message was to be tried again after its handler had failed.
func (c TopicCounts) Retries() int { return c.Requeued[string(events.ReasonRetry)] }

// OrphansReclaimed is how many messages went back to their queue since their worker was gone.
func (c TopicCounts) OrphansReclaimed() int { return c.Requeued[string(events.ReasonOrphan)] }

// OrphansDeadLettered is how many messages became dead letters since their worker was gone once too often.
func (c TopicCounts) OrphansDeadLettered() int {
	return c.DeadLettered[string(events.ReasonOrphanLimit)]
}

// SweepCounts is what came of sweeps. One that found nothing leaves no event and is not counted.
type SweepCounts struct {
	Acted         int            `json:"acted,omitempty"`
	Nothing       int            `json:"nothing,omitempty"` // that gave nothing back: what they found was too young, or could not be read
	Refused       int            `json:"refused,omitempty"`
	Skipped       map[string]int `json:"skipped,omitempty"` // refusals by their guard, and claims and permits that were spared as claim_grace
	Requeued      int            `json:"requeued,omitempty"`
	DeadLettered  int            `json:"dead_lettered,omitempty"`
	LocksReleased int            `json:"locks_released,omitempty"`
	Unread        int            `json:"unread,omitempty"` // rows that could not be read, or were held by somebody
}

// Name is "totals".
func (*Totals) Name() string { return "totals" }

// Version is 1.
func (*Totals) Version() int { return 1 }

// Apply takes the next event.
func (t *Totals) Apply(r events.Recorded) {
	before := t.asOf.Position
	if !t.asOf.pass(r) {
		if r.Position > before {
			t.counts.Unknown++
		}
		return
	}
	t.ready()
	under(t.counts.Transitions, r.Event.Type().String())[r.To.String()]++
	switch e := r.Event.(type) {
	case *events.MessageRefused:
		t.counts.Unrecorded += e.Unrecorded
		t.refused(r, e.Command, e.Reason)
	case *events.LockRefused:
		t.refused(r, e.Command, e.Reason)
	case *events.SweepFinished:
		t.counts.Sweeps.finished(e)
	case *events.SweepRefused:
		t.counts.Sweeps.refused(e)
	case *events.LogPruned:
		t.counts.Pruned += e.Events
	case *events.MessageUnblocked:
		if e.Repair {
			t.counts.Repairs++
		}
	default:
		if r.Entity.Kind == events.KindMessage {
			t.applyMessage(r)
		}
	}
}

func (t *Totals) ready() {
	if t.known != nil {
		return
	}
	t.known = map[events.ID]*TopicCounts{}
	if t.topics == nil {
		t.topics = map[string]*TopicCounts{}
	}
	if t.counts.Transitions == nil {
		t.counts.Transitions = map[string]map[string]int{}
	}
	if t.counts.Refusals == nil {
		t.counts.Refusals = map[string]map[string]map[string]int{}
	}
}

// under is the inner map of a key.
func under[V any](m map[string]map[string]V, key string) map[string]V {
	if m[key] == nil {
		m[key] = map[string]V{}
	}
	return m[key]
}

func (t *Totals) refused(r events.Recorded, command string, reason events.Reason) {
	commands := under(t.counts.Refusals, r.Event.Type().String())
	if commands[command] == nil && len(commands) >= maxCommands {
		command = OtherCommand
	}
	under(commands, command)[string(reason)]++
}

// applyMessage counts an event of a message under its topic.
func (t *Totals) applyMessage(r events.Recorded) {
	if topic, says := TopicOf(r); says && t.known[r.Entity.ID] == nil {
		t.Learn(r.Entity.ID, topic)
	}
	c := t.known[r.Entity.ID]
	if c == nil {
		return
	}
	switch e := r.Event.(type) {
	case *events.MessageEnqueued:
		if c.Enqueued++; c == t.topics[OtherTopics] {
			t.counts.Overflow++
		}
	case *events.MessageClaimed:
		c.Claimed++
	case *events.MessageBlocked:
		c.Blocked++
	case *events.MessageRequeued:
		bump(&c.Requeued, e.Reason)
	case *events.MessageDeadLettered:
		bump(&c.DeadLettered, e.Reason)
	case *events.MessageRedriven:
		c.Redriven++
	case *events.MessageCompleted:
		c.Completed++
	case *events.MessageCancelled:
		c.Cancelled++
	case *events.MessageDiscarded:
		c.Discarded++
	}
	if ended(r.To) {
		delete(t.known, r.Entity.ID)
	}
}

func bump(m *map[string]int, reason events.Reason) {
	if *m == nil {
		*m = map[string]int{}
	}
	(*m)[string(reason)]++
}

func (s *SweepCounts) finished(e *events.SweepFinished) {
	if e.Requeued+e.DeadLettered+e.LocksReleased > 0 {
		s.Acted++
	} else {
		s.Nothing++
	}
	s.Requeued += e.Requeued
	s.DeadLettered += e.DeadLettered
	s.LocksReleased += e.LocksReleased
	s.Unread += e.Skipped
	if e.Spared > 0 {
		s.skip(events.ReasonClaimGrace, e.Spared)
	}
}

func (s *SweepCounts) refused(e *events.SweepRefused) {
	s.Refused++
	s.skip(e.Reason, 1)
}

func (s *SweepCounts) skip(reason events.Reason, n int) {
	if s.Skipped == nil {
		s.Skipped = map[string]int{}
	}
	s.Skipped[string(reason)] += n
}

// Lacks implements Learner.
func (t *Totals) Lacks(r events.Recorded) bool {
	if r.Position <= t.asOf.Position {
		return false
	}
	if _, says := TopicOf(r); says {
		return false
	}
	switch r.Event.Type() {
	case events.TypeMessageClaimed, events.TypeMessageBlocked, events.TypeMessageRequeued, events.TypeMessageDeadLettered,
		events.TypeMessageRedriven, events.TypeMessageCompleted, events.TypeMessageCancelled, events.TypeMessageDiscarded:
		return t.known[r.Entity.ID] == nil
	}
	return false
}

// Learn implements Learner.
func (t *Totals) Learn(message events.ID, topic string) {
	t.ready()
	if topic == "" {
		topic = UnknownTopic
	}
	c := t.topics[topic]
	if c == nil && t.named() >= MaxTopics && topic != UnknownTopic {
		topic = OtherTopics
		c = t.topics[topic]
	}
	if c == nil {
		c = &TopicCounts{}
		t.topics[topic] = c
	}
	if len(t.known) >= maxKnown {
		clear(t.known)
	}
	t.known[message] = c
}

// named is how many topics are counted by their name.
func (t *Totals) named() int {
	n := len(t.topics)
	for _, name := range []string{OtherTopics, UnknownTopic} {
		if t.topics[name] != nil {
			n--
		}
	}
	return n
}
