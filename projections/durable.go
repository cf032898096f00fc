package projections

import "github.com/foundling-go/foundling/events"

// Durable is a projection whose view is kept, together with the place in the log up to which it has come. Package runner runs it.
type Durable interface {
	Projection
	// Name is the same in every version of it.
	Name() string
	// Version rises with every change of what Apply counts or of what View writes; the first is 1. A new version builds beside the old one.
	Version() int
	// View is its state, all of it but what a Learner has learnt. Equal states give equal bytes.
	View() ([]byte, error)
	// Restore gives a new value the state of a view, which this version wrote or an older one. It may refuse one: the value is then thrown away.
	Restore(version int, view []byte) error
}

// Learner is a durable projection that must know of a message what its later events do not say: its topic. Which topic a message has never
// changes, so that what was learnt is no part of the state: it may be forgotten, and is asked for again.
type Learner interface {
	// Lacks reports whether an event can be applied only after the topic of its message was learnt.
	Lacks(r events.Recorded) bool
	// Learn tells the topic of a message; empty where the log has lost it.
	Learn(message events.ID, topic string)
}

// TopicOf is the topic of an event's message, where the event says it: where it begins the message's history or a claim, or tells its state.
func TopicOf(r events.Recorded) (string, bool) {
	switch e := r.Event.(type) {
	case *events.MessageEnqueued:
		return e.Topic, true
	case *events.MessageClaimed:
		return e.Topic, e.Topic != ""
	case *events.MessageSnapshotted:
		m, ok := toldMessage(e)
		return m.Topic, ok
	}
	return "", false
}
