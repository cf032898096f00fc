package replay

import (
	"fmt"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/store"
)

// law says what is wrong with an event that the table allows; empty where nothing is.
func (v *verifier) law(r events.Recorded, h *held, after fsm.Value) string {
	switch before := h.value.(type) {
	case *fsm.Message:
		return v.messageLaw(r, before, after.(*fsm.Message))
	case *fsm.Lock:
		return v.lockLaw(r, h, after.(*fsm.Lock))
	case *fsm.Leader:
		return leaderLaw(r, before)
	case *fsm.Log:
		if e, ok := r.Event.(*events.LogPruned); ok {
			return v.prunedLaw(r, e)
		}
	}
	return ""
}

func (v *verifier) messageLaw(r events.Recorded, m, after *fsm.Message) string {
	var token events.Token // of the claim that the event ends
	switch e := r.Event.(type) {
	case *events.MessageClaimed:
		if wrong := v.claim(r, e, after); wrong != "" {
			return wrong
		}
		return v.took(r, e, after)
	case *events.MessageSnapshotted:
		return ""
	case *events.MessageBlocked, *events.MessageUnblocked, *events.MessageDiscarded:
		return v.waiting(r, m)
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

// leaderLaw says what is wrong with an event of a leadership: terms rise, and only who leads resigns or is lost.
func leaderLaw(r events.Recorded, l *fsm.Leader) string {
	var worker events.ID
	var term int
	switch e := r.Event.(type) {
	case *events.LeaderSnapshotted:
		return ""
	case *events.LeaderElected:
		if e.Term <= l.Term {
			return fmt.Sprintf("its term is %d, an earlier one was %d", e.Term, l.Term)
		}
		return ""
	case *events.LeaderResigned:
		worker, term = e.Worker, e.Term
	case *events.LeaderLost:
		worker, term = e.Worker, e.Term
	}
	if worker != l.Worker || term != l.Term {
		return fmt.Sprintf("worker %s under term %d is recorded, %s led under %d", worker, term, l.Worker, l.Term)
	}
	return ""
}

// still checks an event that moves nothing (law 5): it says what state it met. A lock may rest, anything else has ended or never was. Of what ended
// before the log begins nobody can say whether it was.
func (v *verifier) still(r events.Recorded, known *held) {
	h := v.held[r.Entity]
	version, state := known.value.At()
	unknown := version == 0
	if h == nil && !r.Entity.Kind.Rests() {
		state = r.To
		unknown = r.To == events.Absent || open(&fsm.Message{State: r.To}) || !v.ended.maybe(r.Entity)
	}
	over := r.To == events.Completed || r.To == events.Cancelled || r.To == events.Discarded
	_, erased := r.Event.(*events.MessageErased)
	switch {
	case r.From != r.To || r.To != state && !unknown:
		v.fault(r, "%s from %s to %s is recorded, it was %s", r.Event.Type(), r.From, r.To, state)
	case erased && !over:
		v.fault(r, "%s is recorded of what was %s", r.Event.Type(), r.To)
	case unknown && v.first != "" && (v.blind(r) || over || r.Entity.Kind.Rests() && r.To == events.Free):
	case unknown:
		v.fault(r, "%s is recorded of what was %s, and the log does not know it", r.Event.Type(), r.To)
	}
	if e, ok := r.Event.(*events.LockRefused); ok {
		if p := v.permits[store.PermitKey{Lock: r.Entity.Name, Token: e.Sent}]; p != nil && p.Worker == e.Sender {
			v.fault(r, "%s: permit %d is out, and is the sender's", r.Event.Type(), e.Sent)
		}
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
	case e.Topic != "" && e.Topic != m.Topic:
		return fmt.Sprintf("topic %q is recorded, the message's is %q", e.Topic, m.Topic)
	case v.allDoubtful || v.doubtful[m.Topic] || v.blind(r):
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
		v.letGo(before)
		return ""
	}
	key := store.Key{Topic: m.Topic, Name: m.Key}
	if other, taken := v.keys[key]; taken && other != m.ID {
		return fmt.Sprintf("it takes key %q of topic %q, which %s has while it is open", m.Key, m.Topic, events.MessageEntity(other))
	}
	v.keys[key] = m.ID
	return ""
}

// letGo lets go of the key that a message has.
func (v *verifier) letGo(value fsm.Value) {
	if m, ok := value.(*fsm.Message); ok {
		if key := (store.Key{Topic: m.Topic, Name: m.Key}); v.keys[key] == m.ID {
			delete(v.keys, key)
		}
	}
}
