package fsm

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
)

// Enqueue makes messages. A draft whose id or key is known is answered with the message that has it, and leaves no event.
type Enqueue struct {
	Drafts []Draft
	Topics map[string]TopicStart // what topics start with that nobody has seen yet; also of topics without a draft
}

// Draft is a message to be.
type Draft struct {
	ID    events.ID
	Given bool // the caller gave the id, so it may be known; a minted one is not looked up
	EnqueueMessage
}

// TopicStart is what a topic starts with when it is first seen.
type TopicStart struct {
	Limit int
}

// Answer says which message stands for a draft, in the order of the drafts.
type Answer struct {
	ID    events.ID
	Known bool // it was there before
}

// Name is "enqueue".
func (Enqueue) Name() string { return "enqueue" }

// Decide gives what the store must keep, and one answer per draft. A draft whose id is known with another topic, or with a
// payload of another size or codec, refuses the whole command, and so does a given id that is so old that its history may be gone. (The bytes themselves no rule can compare: their salts differ.)
func (c Enqueue) Decide(held Held) (Outcome, []Answer, error) {
	l := newLedger(held)
	for _, name := range c.firstSeen(held) {
		if _, err := l.topic(Topic{Name: name}, ConfigureTopic{Limit: c.Topics[name].Limit}); err != nil {
			return Outcome{}, nil, err
		}
	}
	answers := make([]Answer, len(c.Drafts))
	for i, d := range c.Drafts {
		answer, err := l.enqueue(d)
		if err != nil {
			return Outcome{}, nil, err
		}
		answers[i] = answer
	}
	outcome, err := l.close()
	return outcome, answers, err
}

// firstSeen is the topics that nobody has seen yet: those of the drafts in their order, then the others by name.
func (c Enqueue) firstSeen(held Held) []string {
	var names []string
	add := func(name string) {
		_, known := held.Topics[name]
		if _, starts := c.Topics[name]; starts && !known && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, d := range c.Drafts {
		add(d.Topic)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Topics)) {
		add(name)
	}
	return names
}

func (l *ledger) enqueue(d Draft) (Answer, error) {
	m := l.message(d.ID)
	if d.Given && l.forgotten(m) {
		r := m.refusal(d.Name(), events.ReasonPruned)
		r.Detail = "the id is older than what the log still holds, so that nobody can say whether it was there before; give another, or none"
		return Answer{}, r
	}
	if m.State != events.Absent {
		if m.Topic != d.Topic || m.Payload.Size != d.Payload.Size || m.Payload.Codec != d.Payload.Codec {
			r := m.refusal(d.Name(), events.ReasonMismatch)
			r.Detail = "the id is known with another topic or payload; give another id, or none"
			return Answer{}, r
		}
		return Answer{ID: d.ID, Known: true}, nil
	}
	if d.Key != "" {
		if holder := l.holder(Key{d.Topic, d.Key}); holder.Taken(l.held.Now) {
			return Answer{ID: holder.Message, Known: true}, nil
		}
	}
	_, err := l.move(m, d.EnqueueMessage)
	return Answer{ID: d.ID}, err
}

// forgotten reports whether a message may have been there before, of which too little is left to say: its id is as old as what was pruned, or the
// beginning of its history is gone. An id that tells no time is taken as young.
func (l *ledger) forgotten(m Message) bool {
	if m.State != events.Absent {
		return m.Topic == ""
	}
	if m.ID.Version() != 7 {
		return false
	}
	milli := int64(binary.BigEndian.Uint64(m.ID[:8]) >> 16) // since 1970: never before the zero time, which says that nothing was pruned
	return !time.UnixMilli(milli).After(l.held.PrunedAt)
}
