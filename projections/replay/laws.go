package replay

import (
	"fmt"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/store"
)

// law says what is wrong with an event that the table allows; empty where nothing is.
func (v *verifier) law(r events.Recorded, before, after fsm.Value) string {
	m, ok := before.(*fsm.Message)
	if !ok {
		return ""
	}
	var token events.Token // of the claim that the event ends
	switch e := r.Event.(type) {
	case *events.MessageClaimed:
		return v.claim(r, e, after.(*fsm.Message))
	case *events.MessageCounted:
		if m.Counted {
			return "its claim counts already"
		}
		return ""
	case *events.MessageOrphaned:
		if e.Evidence.Claimer != m.Worker {
			return fmt.Sprintf("worker %s is gone, the claim is that of %s", e.Evidence.Claimer, m.Worker)
		}
		token = e.Token
	case *events.MessageCompleted:
		token = e.Token
	case *events.MessageRequeued:
		token = e.Token
	case *events.MessageDeadLettered:
		token = e.Token
	case *events.MessageCancelled:
		token = e.Token
	}
	if token != m.Token {
		return fmt.Sprintf("it ends the claim with token %d, the open one has %d", token, m.Token)
	}
	return ""
}

// refused checks a refusal, which moves nothing (law 5): it says what state it met.
func (v *verifier) refused(r events.Recorded) {
	state := r.To
	h := v.held[r.Entity]
	if h != nil {
		_, state = h.value.At()
	}
	switch {
	case r.From != r.To || r.To != state:
		v.fault(r, "%s from %s to %s is recorded, it was %s", r.Event.Type(), r.From, r.To, state)
	case h == nil && (r.To == events.Absent || open(&fsm.Message{State: r.To}) || !v.ended.maybe(r.Entity)):
		v.fault(r, "%s is recorded of what was %s, and the log does not know it", r.Event.Type(), r.To)
	}
}

// claim checks a claim against the message and against the topic's limit (laws 2, 5 and 6). Every engine so far holds the topic's row
// while it claims, so that the recorded count is the true one at that position.
func (v *verifier) claim(r events.Recorded, e *events.MessageClaimed, m *fsm.Message) string {
	switch {
	case e.Token != events.Token(r.Version):
		return fmt.Sprintf("its token is %d, want its version %d", e.Token, r.Version)
	case e.Attempt != m.Attempts:
		return fmt.Sprintf("attempt %d is recorded, it is the message's claim number %d", e.Attempt, m.Attempts)
	case v.allDoubtful || v.doubtful[m.Topic]:
		return ""
	}
	var topic fsm.Topic
	if h := v.held[events.TopicEntity(m.Topic)]; h != nil {
		topic = *h.value.(*fsm.Topic)
	}
	running := v.counted[m.Topic] + 1
	switch {
	case topic.State == events.Paused:
		return "its topic is paused"
	case topic.Counting:
		return "its topic still counts older claims"
	case e.Limit != topic.Limit:
		return fmt.Sprintf("limit %d is recorded, the topic's is %d", e.Limit, topic.Limit)
	case !topic.Limited():
		return ""
	case e.Running != running:
		return fmt.Sprintf("%d running are recorded, %d claims of the topic count", e.Running, running)
	case running > topic.Limit:
		return fmt.Sprintf("it is claim number %d of a topic whose limit is %d", running, topic.Limit)
	}
	return ""
}

// key says what is wrong with a message that takes its key, and notes who has it: one open message of the topic at a time (law 5).
func (v *verifier) key(before, after fsm.Value) string {
	m, ok := after.(*fsm.Message)
	if !ok || m.Key == "" {
		return ""
	}
	if !m.Open() {
		v.free(before)
		return ""
	}
	key := store.Key{Topic: m.Topic, Name: m.Key}
	if other, taken := v.keys[key]; taken && other != m.ID {
		return fmt.Sprintf("it takes key %q of topic %q, which %s has while it is open", m.Key, m.Topic, events.MessageEntity(other))
	}
	v.keys[key] = m.ID
	return ""
}

// free lets go of the key that a message has.
func (v *verifier) free(value fsm.Value) {
	if m, ok := value.(*fsm.Message); ok {
		if key := (store.Key{Topic: m.Topic, Name: m.Key}); v.keys[key] == m.ID {
			delete(v.keys, key)
		}
	}
}
