package fsm

import (
	"errors"
	"time"

	"github.com/foundling-go/foundling/events"
)

// Unstage brings messages into the log that were staged in transactions of users' own. They were promised when those committed, so none of them is
// left out, whatever the others are like: one that cannot be what it was to be is told of and goes no further.
type Unstage struct {
	Drafts []Draft
	Topics map[string]TopicStart // what topics start with that nobody has seen yet
}

// DiscardMessage ends a message that was staged and must not be handled.
type DiscardMessage struct {
	Reason events.Reason // key_taken or pruned
	Key    string        // that it was to have
	Holder events.ID     // the message that has the key
}

// Name is "unstage".
func (Unstage) Name() string { return "unstage" }

// Decide gives what the store must keep, an event for each draft at least: its message is enqueued; or it is discarded, where its key is taken or
// its id so old that its history may be gone; or, where the id is known, that message refuses it.
func (c Unstage) Decide(held Held) (Outcome, error) {
	l := newLedger(held)
	for _, name := range (Enqueue(c)).firstSeen(held) {
		if _, err := l.topic(Topic{Name: name}, ConfigureTopic{Limit: c.Topics[name].Limit}); err != nil {
			return Outcome{}, err
		}
	}
	for _, d := range c.Drafts {
		if err := l.unstage(d); err != nil {
			return Outcome{}, err
		}
	}
	return l.close()
}

// unstage is enqueue for a draft that nobody waits for an answer to.
func (l *ledger) unstage(d Draft) error {
	before := l.message(d.ID)
	answer, err := l.enqueue(d)
	var refused *Refusal
	switch {
	case errors.As(err, &refused) && before.State == events.Absent:
		return l.discard(d, DiscardMessage{Reason: refused.Reason})
	case errors.As(err, &refused):
		l.refuseDraft(before, refused)
		return nil
	case err != nil || !answer.Known:
		return err
	case before.State != events.Absent:
		l.refuseDraft(before, before.refusal(d.Name(), events.ReasonKnown))
		return nil
	}
	return l.discard(d, DiscardMessage{Reason: events.ReasonKeyTaken, Key: d.Key, Holder: answer.ID})
}

// discard makes a message that has no key and ends at once.
func (l *ledger) discard(d Draft, c DiscardMessage) error {
	d.Key, d.UniqueFor = "", 0
	m, err := l.move(Message{ID: d.ID}, d.EnqueueMessage)
	if err == nil {
		_, err = l.move(m, c)
	}
	return err
}

// refuseDraft records that a message has the id of a draft. Each is recorded: somebody was promised something, and this is what became of it.
func (l *ledger) refuseDraft(m Message, r *Refusal) {
	l.note(m, &events.MessageRefused{Command: r.Command, Reason: r.Reason, Found: r.Found})
}

// Name is "discard".
func (DiscardMessage) Name() string { return "discard" }

func (c DiscardMessage) decideMessage(m Message, _ time.Time) ([]events.Event, *Refusal) {
	if r := m.refuse(c.Name(), events.TypeMessageDiscarded); r != nil {
		return nil, r
	}
	return []events.Event{&events.MessageDiscarded{Reason: c.Reason, Key: c.Key, Holder: c.Holder}}, nil
}
