package projections

import (
	"maps"
	"slices"
	"strings"

	"github.com/foundling-go/foundling/events"
)

// Topic is a queue as it stands.
type Topic struct {
	Name string

	// Settings.
	Limit    int    // open claims at most; 0 is no limit
	Set      Notice // who set it last
	Counting bool   // the limit is new and older claims are not counted yet: nothing is granted
	Paused   bool
	Pause    Notice // who paused it; zero while it is not paused

	// Messages by state. Completed, Cancelled and Discarded never fall, since nothing comes back from there.
	Queued       int
	Blocked      int // they wait for their locks; see [Locks] for which
	Running      int
	DeadLettered int
	Completed    int
	Cancelled    int
	Discarded    int

	Trying int // of those queued: they were unblocked and have not tried yet

	Counted   int   // running claims that count towards the limit
	Oldest    Claim // the running claim that was made first; zero while there is none
	FullSince Mark  // since when Counted has been at the limit or above; zero while there is room, or no limit
	Ended     Mark  // when a claim ended last
	Totals    TopicTotals
}

// Full reports whether the topic's limit is used up.
func (t Topic) Full() bool { return t.Limit > 0 && t.Counted >= t.Limit }

// TopicTotals counts what happened on a topic since the log's beginning. None of them falls. Refusals are not among them: most of them concern
// messages that have ended, whose topic nobody remembers; see [Refusals].
type TopicTotals struct {
	Enqueued     int
	Claimed      int
	Failures     int // claims whose handler failed, whether the message was tried again or not
	Orphaned     int
	DeadLettered int
	Redriven     int
	Requeued     map[events.Reason]int
}

// DeadLetter is a message that will not be tried again unless somebody redrives it. Where the log has let go of how it became one, it has the mark
// of the snapshot that tells it, and neither worker nor reason nor error.
type DeadLetter struct {
	Mark
	Message  events.ID
	Topic    string
	Attempts int       // claims that were made of it
	Worker   events.ID // who held the last one
	Reason   events.Reason
	Error    string // at most maxError bytes of it
	By       string
}

// maxError is how much of a dead letter's error is kept, so that many of them stay small. The log has all of it.
const maxError = 512

// Topics adds up the topics: how deep they are, what runs, what was given up. Its zero is the beginning of the log.
type Topics struct {
	asOf     Mark
	topics   map[string]*Topic
	messages map[events.ID]message // open ones and dead letters
	claims   map[events.ID]Claim   // the open one of each running message
	dead     map[events.ID]DeadLetter
}

// message is what is remembered of one.
type message struct {
	topic    *Topic
	attempts int32
	trying   bool
}

// Apply takes the next event.
func (t *Topics) Apply(r events.Recorded) {
	if !t.asOf.pass(r) || !r.Event.Type().Moves() {
		return
	}
	if t.topics == nil {
		t.topics, t.messages = map[string]*Topic{}, map[events.ID]message{}
		t.claims, t.dead = map[events.ID]Claim{}, map[events.ID]DeadLetter{}
	}
	switch r.Entity.Kind {
	case events.KindTopic:
		t.applyTopic(t.topic(r.Entity.Name), r)
	case events.KindMessage:
		m, known := t.messages[r.Entity.ID]
		switch e := r.Event.(type) {
		case *events.MessageSnapshotted:
			if !known {
				t.told(r, e)
			}
			return
		case *events.MessageEnqueued:
			m, known = message{topic: t.topic(e.Topic)}, true
			t.messages[r.Entity.ID] = m
		}
		if known {
			t.applyMessage(m, r)
		}
	}
}

// told begins with a message whose beginning was let go.
func (t *Topics) told(r events.Recorded, e *events.MessageSnapshotted) {
	fields, ok := toldMessage(e)
	if !ok {
		return
	}
	m := message{topic: t.topic(fields.Topic), attempts: int32(fields.Attempts), trying: fields.Trying != 0}
	t.messages[r.Entity.ID] = m
	m.topic.move(r.To, 1)
	if m.trying {
		m.topic.Trying++
	}
	switch {
	case claimed(r.To):
		t.hold(m.topic, fields.claim(r))
	case r.To == events.DeadLettered:
		t.dead[r.Entity.ID] = DeadLetter{Mark: markOf(r), Message: r.Entity.ID, Topic: m.topic.Name, Attempts: fields.Attempts}
	}
	m.topic.fill(r)
}

func (t *Topics) topic(name string) *Topic {
	topic := t.topics[name]
	if topic == nil {
		topic = &Topic{Name: name, Totals: TopicTotals{Requeued: map[events.Reason]int{}}}
		t.topics[name] = topic
	}
	return topic
}

func (t *Topics) applyTopic(topic *Topic, r events.Recorded) {
	switch e := r.Event.(type) {
	case *events.TopicSnapshotted:
		topic.told(r, e)
	case *events.TopicConfigured:
		topic.Limit, topic.Counting = e.Limit, e.Counting
		topic.Set = Notice{markOf(r), e.By, e.Detail}
	case *events.TopicCounted:
		topic.Counting = false
	case *events.TopicPaused:
		topic.Paused, topic.Pause = true, Notice{markOf(r), e.By, e.Detail}
	case *events.TopicResumed:
		topic.Paused, topic.Pause = false, Notice{}
	}
	topic.fill(r)
}

func (t *Topics) applyMessage(m message, r events.Recorded) {
	m.topic.move(r.From, -1)
	m.topic.move(r.To, 1)
	t.try(m, r)
	if r.From == events.DeadLettered {
		delete(t.dead, r.Entity.ID)
	}
	t.tally(m, r)
	if claim, ok := t.claims[r.Entity.ID]; ok && !claimed(r.To) {
		t.endClaim(m.topic, claim, r)
	}
	if ended(r.To) {
		delete(t.messages, r.Entity.ID)
	}
	m.topic.fill(r)
}

// try counts the messages that were unblocked, until the next event of each.
func (t *Topics) try(m message, r events.Recorded) {
	_, trying := r.Event.(*events.MessageUnblocked)
	if trying == m.trying {
		return
	}
	if m.trying = trying; trying {
		m.topic.Trying++
	} else {
		m.topic.Trying--
	}
	t.messages[r.Entity.ID] = m
}

// tally counts an event and remembers what it left.
func (t *Topics) tally(m message, r events.Recorded) {
	totals := &m.topic.Totals
	switch e := r.Event.(type) {
	case *events.MessageEnqueued:
		totals.Enqueued++
	case *events.MessageClaimed:
		totals.Claimed++
		t.hold(m.topic, claimOf(r, e))
		t.messages[r.Entity.ID] = message{topic: m.topic, attempts: int32(e.Attempt)}
	case *events.MessageCounted:
		if claim, ok := t.claims[r.Entity.ID]; ok {
			claim.Counted = true
			t.hold(m.topic, claim)
		}
	case *events.MessageRequeued:
		totals.Requeued[e.Reason]++
		if e.Reason == events.ReasonRetry {
			totals.Failures++
		}
	case *events.MessageOrphaned:
		totals.Orphaned++
	case *events.MessageDeadLettered:
		totals.DeadLettered++
		if e.Reason == events.ReasonExhausted || e.Reason == events.ReasonHandler {
			totals.Failures++
		}
		t.dead[r.Entity.ID] = DeadLetter{
			Mark: markOf(r), Message: r.Entity.ID, Topic: m.topic.Name, Attempts: int(m.attempts),
			Worker: t.claims[r.Entity.ID].Worker, Reason: e.Reason, Error: cut(e.Error), By: e.By,
		}
	case *events.MessageRedriven:
		totals.Redriven++
	}
}

// cut is a copy of the head of an error.
func cut(text string) string {
	return strings.Clone(strings.ToValidUTF8(text[:min(len(text), maxError)], ""))
}

// hold remembers a message's open claim, in the place of what was known of it.
func (t *Topics) hold(topic *Topic, claim Claim) {
	if t.claims[claim.Message].Counted {
		topic.Counted--
	}
	if claim.Counted {
		topic.Counted++
	}
	t.claims[claim.Message] = claim
}

func (t *Topics) endClaim(topic *Topic, claim Claim, r events.Recorded) {
	if claim.Counted {
		topic.Counted--
	}
	delete(t.claims, claim.Message)
	topic.Ended = markOf(r)
}

// told sets what a snapshot tells. Who set it, and when, it does not say.
func (t *Topic) told(r events.Recorded, e *events.TopicSnapshotted) {
	fields, ok := told[topicFields](e.Snapshot)
	if !ok {
		return
	}
	t.Limit, t.Counting, t.Paused = fields.Limit, fields.Counting != 0, r.To == events.Paused
	if t.Set.Position == 0 {
		t.Set.Mark = markOf(r)
	}
	if t.Paused && t.Pause.Position == 0 {
		t.Pause.Mark = markOf(r)
	}
}

// move counts a message in or out of a state.
func (t *Topic) move(s events.State, n int) {
	switch s {
	case events.Queued:
		t.Queued += n
	case events.Blocked:
		t.Blocked += n
	case events.Running, events.Orphaned:
		t.Running += n
	case events.DeadLettered:
		t.DeadLettered += n
	case events.Completed:
		t.Completed += n
	case events.Cancelled:
		t.Cancelled += n
	case events.Discarded:
		t.Discarded += n
	}
}

// fill notes since when the limit has been used up.
func (t *Topic) fill(r events.Recorded) {
	switch {
	case !t.Full():
		t.FullSince = Mark{}
	case t.FullSince == Mark{}:
		t.FullSince = markOf(r)
	}
}

// AsOf is the last event that was applied.
func (t *Topics) AsOf() Mark { return t.asOf }

// All is every topic, by name.
func (t *Topics) All() []Topic {
	oldest := map[*Topic]Claim{}
	for id, claim := range t.claims {
		topic := t.messages[id].topic
		if first, ok := oldest[topic]; !ok || older(claim, first) < 0 {
			oldest[topic] = claim
		}
	}
	list := make([]Topic, 0, len(t.topics))
	for _, topic := range t.topics {
		list = append(list, topic.copy(oldest[topic]))
	}
	slices.SortFunc(list, func(a, b Topic) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Topic is one topic, where the log knows it.
func (t *Topics) Topic(name string) (Topic, bool) {
	topic, ok := t.topics[name]
	if !ok {
		return Topic{}, false
	}
	var oldest Claim
	if claims := t.Claims(name); len(claims) > 0 {
		oldest = claims[0]
	}
	return topic.copy(oldest), true
}

func (t *Topic) copy(oldest Claim) Topic {
	c := *t
	c.Oldest, c.Totals.Requeued = oldest, maps.Clone(t.Totals.Requeued)
	return c
}

// Claims is the open claims of a topic, the oldest first.
func (t *Topics) Claims(name string) []Claim {
	var list []Claim
	for id, claim := range t.claims {
		if t.messages[id].topic.Name == name {
			list = append(list, claim)
		}
	}
	slices.SortFunc(list, older)
	return list
}

// DeadLetters is every dead letter, the oldest first.
func (t *Topics) DeadLetters() []DeadLetter {
	list := slices.Collect(maps.Values(t.dead))
	slices.SortFunc(list, func(a, b DeadLetter) int { return a.compare(b.Mark) })
	return list
}
