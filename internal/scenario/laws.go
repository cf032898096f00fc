package scenario

import (
	"errors"
	"fmt"
	"time"

	"github.com/foundling-go/foundling/events"
)

// laws follows the log with a fold of its own, which knows nothing of package fsm, and says where an event breaks a law of DESIGN
// section 6.
type laws struct {
	messages map[events.ID]*message
	topics   map[string]*topic
	locks    map[string]*lock
	workers  map[events.ID]events.State
	refused  map[events.Reason]int // sweeps
	spared   int                   // claims and permits, once per sweep
	pruned
}

// message is as much of a message as the laws speak of.
type message struct {
	state   events.State
	topic   string
	key     string
	lock    string
	skips   bool // it does not wait for its lock
	trying  bool
	due     time.Time
	version int
	claim   claim
	last    claim                         // the newest that there was
	permits map[events.Token]events.Token // that its claims took, by the token of the claim
	claims  int
	given   map[events.Reason]int // why it was requeued, how often
	orphans int
	failed  int
	spent   [2]int // claims not given back, and orphanings, at the last redrive
	ended   bool   // since the last redrive
	refused int
}

// claim is a worker's hold on a message.
type claim struct {
	worker  events.ID
	token   events.Token
	permit  events.Token // of its lock; 0 where it has none
	counted bool
}

type topic struct {
	limit    int
	running  int
	counting bool
	paused   bool
}

func newLaws() *laws {
	return &laws{
		messages: map[events.ID]*message{}, topics: map[string]*topic{}, locks: map[string]*lock{},
		workers: map[events.ID]events.State{}, refused: map[events.Reason]int{},
		pruned: pruned{places: map[events.Entity]*place{}, erased: map[events.ID]bool{}},
	}
}

// claimOf is the newest claim of a message.
func (l *laws) claimOf(id events.ID) claim {
	if m := l.messages[id]; m != nil {
		return m.last
	}
	return claim{}
}

// permitOf is the token of the permit that a claim of a message took; 0 where it took none.
func (l *laws) permitOf(h hold) events.Token {
	if m := l.messages[h.message]; m != nil {
		return m.permits[h.token]
	}
	return 0
}

func (l *laws) topic(name string) *topic {
	if l.topics[name] == nil {
		l.topics[name] = &topic{}
	}
	return l.topics[name]
}

// event takes in the next event of the log.
func (l *laws) event(r events.Recorded) error {
	l.placed(r)
	switch r.Entity.Kind {
	case events.KindLog:
		if e, ok := r.Event.(*events.LogPruned); ok {
			return l.prunedEvent(e)
		}
	case events.KindTopic:
		l.topicEvent(l.topic(r.Entity.Name), r.Event)
	case events.KindMessage:
		m := l.messages[r.Entity.ID]
		if m == nil {
			m = &message{given: map[events.Reason]int{}, permits: map[events.Token]events.Token{}}
			l.messages[r.Entity.ID] = m
		}
		return l.messageEvent(m, r)
	case events.KindLock:
		return l.lockEvent(l.lock(r.Entity.Name), r)
	case events.KindWorker:
		l.workers[r.Entity.ID] = r.To
	case events.KindSweep:
		switch e := r.Event.(type) {
		case *events.SweepRefused:
			l.refused[e.Reason]++
		case *events.SweepFinished:
			l.spared += e.Spared
		}
	}
	return nil
}

func (l *laws) topicEvent(t *topic, e events.Event) {
	switch e := e.(type) {
	case *events.TopicConfigured:
		t.limit, t.counting = e.Limit, e.Counting
	case *events.TopicCounted:
		t.counting = false
	case *events.TopicPaused:
		t.paused = true
	case *events.TopicResumed:
		t.paused = false
	}
}

func (l *laws) messageEvent(m *message, r events.Recorded) error {
	if r.From != m.state {
		return fmt.Errorf("law 1: it is recorded from %s, it was %s", r.From, m.state)
	}
	if e, ok := r.Event.(*events.MessageRefused); ok {
		m.refused++
		if r.Version != 0 || r.To != m.state || e.Sent == m.claim.token && m.claim.token != 0 {
			return errors.New("law 5: a refusal moves nothing, and the open claim is not refused")
		}
		return nil
	}
	if _, ok := r.Event.(*events.MessageErased); ok {
		return l.erasedEvent(m, r)
	}
	if m.version++; r.Version != m.version {
		return fmt.Errorf("law 1: version %d follows %d", r.Version, m.version-1)
	}
	if _, ok := r.Event.(*events.MessageSnapshotted); ok {
		if over(m.state) || r.To != m.state {
			return errors.New("law 1: only what is open or may come back tells its state, and stays as it is")
		}
		return nil
	}
	if m.ended && !comesBack(m.state, r.Event) {
		return errors.New("law 5: it had ended")
	}
	m.state = r.To
	switch e := r.Event.(type) {
	case *events.MessageEnqueued:
		m.topic, m.key, m.due = e.Topic, e.Key, later(r.At(), e.DueAt)
		m.lock, m.skips = e.Lock, e.OnLocked == events.SkipIfLocked
	case *events.MessageClaimed:
		return l.claimed(m, r, e)
	case *events.MessageBlocked, *events.MessageUnblocked, *events.MessageDiscarded:
		if _, tries := e.(*events.MessageUnblocked); tries && m.due.After(r.At()) {
			m.due = r.At() // it was due when it was blocked; the clock was set back since
		}
		return l.waits(m, e)
	case *events.MessageCounted:
		if m.claim.counted || m.claim.token == 0 {
			return errors.New("law 2: only an open claim that does not count yet is counted")
		}
		m.claim.counted = true
		l.topic(m.topic).running++
	case *events.MessageOrphaned:
		if m.orphans++; e.Evidence.Claimer != m.claim.worker {
			return errors.New("law 5: its claim is another worker's")
		}
		return m.by(e.Token)
	case *events.MessageRedriven:
		return m.redriven(r, e)
	default:
		if m.claim.token != 0 && m.due.After(r.At()) {
			m.due = r.At() // it was due when it was claimed; the clock was set back since
		}
		return l.ends(m, e)
	}
	return nil
}

// comesBack reports whether an event may follow on an end: a dead letter is redriven, or nobody wants it any more.
func comesBack(s events.State, e events.Event) bool {
	switch e.(type) {
	case *events.MessageRedriven, *events.MessageCancelled:
		return s == events.DeadLettered
	}
	return false
}

// erasedEvent takes in that the contents of a message are gone. It moves nothing, and is said once.
func (l *laws) erasedEvent(m *message, r events.Recorded) error {
	if !over(m.state) || r.Version != 0 || r.To != m.state || l.erased[r.Entity.ID] {
		return errors.New("law 4: contents are erased of what has ended for good, and once")
	}
	l.erased[r.Entity.ID] = true
	return nil
}

// ends takes in what ends a claim, or a message.
func (l *laws) ends(m *message, e events.Event) error {
	m.ended = m.state != events.Queued
	switch e := e.(type) {
	case *events.MessageRequeued:
		m.given[e.Reason]++
		if !e.DueAt.IsZero() {
			m.due = e.DueAt
		}
		if e.Reason == events.ReasonRetry {
			m.failed++
		}
		return l.unclaimed(m, e.Token, e.Reason)
	case *events.MessageCompleted:
		return l.unclaimed(m, e.Token, "")
	case *events.MessageDeadLettered:
		if e.Reason == events.ReasonExhausted || e.Reason == events.ReasonHandler {
			m.failed++
		}
		return l.unclaimed(m, e.Token, e.Reason)
	case *events.MessageCancelled:
		return l.unclaimed(m, e.Token, e.Reason)
	}
	return fmt.Errorf("the laws know no %s", e.Type())
}

// claimed takes in a claim: there is one at a time, its token is higher than any before, its topic had room, and its lock is its own.
func (l *laws) claimed(m *message, r events.Recorded, e *events.MessageClaimed) error {
	t := l.topic(m.topic)
	switch {
	case m.claim.token != 0:
		return errors.New("law 5: a claim is open already")
	case e.Token <= m.last.token:
		return fmt.Errorf("law 5: token %d follows token %d", e.Token, m.last.token)
	case m.due.After(r.At()):
		return fmt.Errorf("law 3: it is due at %s", since(m.due))
	case t.paused || t.counting:
		return errors.New("law 2: its topic grants nothing")
	case t.limit > 0 && t.running >= t.limit:
		return fmt.Errorf("law 2: %d are running, the limit is %d", t.running, t.limit)
	}
	if m.claims++; e.Attempt != m.claims {
		return fmt.Errorf("law 6: attempt %d is recorded, it is claim number %d", e.Attempt, m.claims)
	}
	if p := l.permit(m.lock, e.LockToken); m.lock != "" && (p == nil || p.Worker != e.Worker || p.Message != r.Entity.ID) || m.lock == "" && e.LockToken != 0 {
		return fmt.Errorf("law 7: it runs with permit %d of lock %q, which is not its own", e.LockToken, m.lock)
	}
	m.claim = claim{e.Worker, e.Token, e.LockToken, t.limit > 0}
	m.last, m.trying, m.permits[e.Token] = m.claim, false, e.LockToken
	if m.claim.counted {
		t.running++
	}
	return nil
}

// unclaimed takes in the end of a claim, or of none.
func (l *laws) unclaimed(m *message, token events.Token, reason events.Reason) error {
	if err := m.by(token); err != nil {
		return err
	}
	if m.claim.counted {
		l.topic(m.topic).running--
	}
	outside := reason == events.ReasonTakenBack || reason == events.ReasonOperator
	if p := l.permit(m.lock, m.claim.permit); p != nil && outside {
		p.told = true
	}
	m.claim, m.trying = claim{}, false
	return nil
}

func (m *message) by(token events.Token) error {
	if token != m.claim.token {
		return fmt.Errorf("law 5: it ends the claim with token %d, the open one has %d", token, m.claim.token)
	}
	return nil
}

// redriven takes in a redrive, which says what was spent since the one before.
func (m *message) redriven(r events.Recorded, e *events.MessageRedriven) error {
	now := [2]int{m.claims - m.released(), m.orphans}
	if e.Spent != now[0]-m.spent[0] || e.Orphanings != now[1]-m.spent[1] {
		return fmt.Errorf("law 6: %d attempts and %d orphanings were spent", now[0]-m.spent[0], now[1]-m.spent[1])
	}
	m.spent, m.ended, m.due = now, false, r.At()
	return nil
}

// released is how many claims were given back unspent.
func (m *message) released() int {
	return m.given[events.ReasonReleased] + m.given[events.ReasonSnoozed] + m.given[events.ReasonUnclaimed]
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
