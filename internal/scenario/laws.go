package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/projections/replay"
	"github.com/foundling-go/foundling/store"
)

// laws follows the log with a fold of its own, which knows nothing of package fsm, and says where an event breaks a law of DESIGN
// section 6.
type laws struct {
	messages map[events.ID]*message
	topics   map[string]*topic
}

// message is as much of a message as the laws speak of.
type message struct {
	state   events.State
	topic   string
	key     string
	due     time.Time
	version int
	claim   claim
	last    claim // the newest that there was
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
	counted bool
}

type topic struct {
	limit    int
	running  int
	counting bool
	paused   bool
}

func newLaws() *laws { return &laws{messages: map[events.ID]*message{}, topics: map[string]*topic{}} }

// claimOf is the newest claim of a message.
func (l *laws) claimOf(id events.ID) claim {
	if m := l.messages[id]; m != nil {
		return m.last
	}
	return claim{}
}

func (l *laws) topic(name string) *topic {
	if l.topics[name] == nil {
		l.topics[name] = &topic{}
	}
	return l.topics[name]
}

// event takes in the next event of the log.
func (l *laws) event(r events.Recorded) error {
	switch r.Entity.Kind {
	case events.KindTopic:
		l.topicEvent(l.topic(r.Entity.Name), r.Event)
	case events.KindMessage:
		m := l.messages[r.Entity.ID]
		if m == nil {
			m = &message{given: map[events.Reason]int{}}
			l.messages[r.Entity.ID] = m
		}
		return l.messageEvent(m, r)
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
	if m.version++; r.Version != m.version {
		return fmt.Errorf("law 1: version %d follows %d", r.Version, m.version-1)
	}
	if _, redriven := r.Event.(*events.MessageRedriven); m.ended && !redriven {
		return errors.New("law 5: it had ended")
	}
	m.state = r.To
	switch e := r.Event.(type) {
	case *events.MessageEnqueued:
		m.topic, m.key, m.due = e.Topic, e.Key, later(r.At(), e.DueAt)
	case *events.MessageClaimed:
		return l.claimed(m, r, e)
	case *events.MessageCounted:
		if m.claim.counted || m.claim.token == 0 {
			return errors.New("law 2: only an open claim that does not count yet is counted")
		}
		m.claim.counted = true
		l.topic(m.topic).running++
	case *events.MessageOrphaned:
		m.orphans++
		return m.by(e.Token)
	case *events.MessageRequeued:
		m.given[e.Reason]++
		if !e.DueAt.IsZero() {
			m.due = e.DueAt
		}
		if e.Reason == events.ReasonRetry {
			m.failed++
		}
		return l.unclaimed(m, e.Token)
	case *events.MessageCompleted:
		m.ended = true
		return l.unclaimed(m, e.Token)
	case *events.MessageDeadLettered:
		m.ended = true
		if e.Reason == events.ReasonExhausted || e.Reason == events.ReasonHandler {
			m.failed++
		}
		return l.unclaimed(m, e.Token)
	case *events.MessageCancelled:
		m.ended = true
		return l.unclaimed(m, e.Token)
	case *events.MessageRedriven:
		return m.redriven(r, e)
	}
	return nil
}

// claimed takes in a claim: there is one at a time, its token is higher than any before, and its topic had room.
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
	m.claim = claim{e.Worker, e.Token, t.limit > 0}
	m.last = m.claim
	if m.claim.counted {
		t.running++
	}
	return nil
}

// unclaimed takes in the end of a claim, or of none.
func (l *laws) unclaimed(m *message, token events.Token) error {
	if err := m.by(token); err != nil {
		return err
	}
	if m.claim.counted {
		l.topic(m.topic).running--
	}
	m.claim = claim{}
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

// Check holds what the store keeps against the log: replay.Verify finds nothing, every open message and dead letter has the one row
// that it should have, every count and budget is what the events add up to, every running count is that of the open claims that count,
// and no key is held by two open messages.
func (w *World) Check(ctx context.Context) error {
	report, err := replay.Verify(ctx, w.engine, replay.Options{Payloads: true})
	if err != nil {
		return err
	}
	var errs []error
	for _, v := range report.Violations {
		errs = append(errs, fmt.Errorf("verify: %s", v.Text(w.names.text)))
	}
	for _, text := range report.Unchecked {
		errs = append(errs, fmt.Errorf("verify: unchecked: %s", text))
	}
	rows := map[events.Entity]store.Row{}
	for row, err := range w.engine.Rows(ctx, store.RowFilter{}) {
		if err != nil {
			return err
		}
		rows[row.Entity] = row
	}
	keys := map[store.Key]events.ID{}
	for _, id := range slices.SortedFunc(maps.Keys(w.laws.messages), func(a, b events.ID) int { return slices.Compare(a[:], b[:]) }) {
		m := w.laws.messages[id]
		row, kept := rows[events.MessageEntity(id)]
		if err := m.compare(row, kept); err != nil {
			errs = append(errs, fmt.Errorf("message %s: %w", w.names.word(id), err))
		}
		key := store.Key{Topic: m.topic, Name: m.key}
		if other, taken := keys[key]; m.key != "" && !m.ended && taken {
			errs = append(errs, fmt.Errorf("messages %s and %s have the same key %s", w.names.word(other), w.names.word(id), m.key))
		} else if m.key != "" && !m.ended {
			keys[key] = id
		}
	}
	for name, t := range w.laws.topics {
		if row, ok := rows[events.TopicEntity(name)]; ok && row.Running != t.running {
			errs = append(errs, fmt.Errorf("topic %s: running %d is stored, %d open claims count", name, row.Running, t.running))
		}
	}
	return errors.Join(errs...)
}

// compare holds a message's row against its events (laws 3, 4 and 6).
func (m *message) compare(row store.Row, kept bool) error {
	if want := !m.ended || m.state == events.DeadLettered; kept != want {
		return fmt.Errorf("law 4: it is %s, and whether it has a row is %t", m.state, kept)
	}
	if !kept {
		return nil
	}
	queued := m.state == events.Queued && row.DueAt.Equal(m.due) && row.Worker == (events.ID{})
	claimed := m.state == events.Running && row.DueAt.IsZero() && row.Worker == m.claim.worker && row.Worker != (events.ID{})
	dead := m.state == events.DeadLettered && row.DueAt.IsZero() && row.Worker == (events.ID{})
	if !queued && !claimed && !dead || row.State != m.state {
		return fmt.Errorf("law 3: it is %s, due %s; its row is %s, due %s, of worker %s", m.state, m.due, row.State, row.DueAt, row.Worker)
	}
	stored, err := calls.Message(row)
	if err != nil {
		return err
	}
	got := []int{stored.Attempts, stored.Releases, stored.Failures, stored.Orphanings, stored.SpentBefore, stored.OrphanedBefore}
	want := []int{m.claims, m.released(), m.failed, m.orphans, m.spent[0], m.spent[1]}
	if !slices.Equal(got, want) || stored.Token != m.claim.token || stored.Counted != m.claim.counted {
		return fmt.Errorf("law 6: counts %v are stored, its events add up to %v", got, want)
	}
	return nil
}
