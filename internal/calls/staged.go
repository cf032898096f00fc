package calls

import (
	"fmt"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/store"
)

// Staging is a draft that goes by way of a store.Stager, with what the call that moves it must know.
type Staging struct {
	fsm.Draft
	Start fsm.TopicStart // of its topic, where nobody has seen that
	Actor string         // who staged it, and so who asks for the message
}

// VisitFields names the fields as a store keeps them. The id has a column of its own.
func (s *Staging) VisitFields(f *events.Fields) {
	f.Flag("given", &s.Given)
	f.Text("topic", &s.Topic)
	f.Time("due", &s.DueAt)
	f.Duration("delay", &s.Delay)
	f.Priority("priority", &s.Priority)
	f.Text("key", &s.Key)
	f.Duration("unique_for", &s.UniqueFor)
	s.Limits.VisitFields(f)
	s.Payload.VisitFields(f)
	f.Text("lock", &s.Lock)
	s.OnLocked.VisitFields(f)
	f.Text("trace", &s.Trace)
	f.Int("limit", &s.Start.Limit)
	f.Text("actor", &s.Actor)
}

// Stage is what a store keeps of a draft.
func Stage(s Staging, payload store.Payload) store.Staged {
	return store.Staged{Message: s.ID, Topic: s.Topic, Draft: events.AppendFields(nil, &s), Payload: payload}
}

// Unstaged gives back the draft that a store keeps, with what it is to be due by: a delay counts from its staging.
func Unstaged(kept store.Staged) (Staging, error) {
	s := Staging{Draft: fsm.Draft{ID: kept.Message}}
	if err := events.ReadFields(kept.Draft, &s); err != nil {
		return s, &events.Corrupt{Entity: events.MessageEntity(kept.Message), Detail: "what is staged of it: " + err.Error()}
	}
	if s.Topic != kept.Topic {
		return s, &events.Corrupt{Entity: events.MessageEntity(kept.Message),
			Detail: fmt.Sprintf("it is staged for topic %q, its column says %q", s.Topic, kept.Topic)}
	}
	if s.Delay > 0 && s.DueAt.IsZero() {
		s.DueAt = kept.At.Add(s.Delay)
	}
	s.Delay = 0
	return s, nil
}

// DueFrom is when a message is due that was staged at a time.
func (s Staging) DueFrom(at time.Time) time.Time {
	if s.DueAt.After(at) {
		return s.DueAt
	}
	return at
}

// Unstage is the call that moves into the log what is staged and still there when it is held, in its order. known tells which topics the store
// knows. All of it has one actor, which is to be the origin's.
func Unstage(o Origin, list []store.Staged, known func(topic string) bool) (store.Call, error) {
	drafts := make([]fsm.Draft, len(list))
	command := fsm.Unstage{Topics: map[string]fsm.TopicStart{}}
	var need store.Need
	for i, kept := range list {
		s, err := Unstaged(kept)
		if err != nil {
			return store.Call{}, err
		}
		drafts[i] = s.Draft
		need.Staged = append(need.Staged, kept.Place)
		if s.Given {
			need.Held = append(need.Held, events.MessageEntity(s.ID))
		}
		if s.Key != "" {
			need.Keys = append(need.Keys, store.Key{Topic: s.Topic, Name: s.Key})
		}
		if _, there := command.Topics[s.Topic]; !there && !known(s.Topic) {
			command.Topics[s.Topic] = s.Start
			need.Held = append(need.Held, events.TopicEntity(s.Topic))
		}
	}
	call := o.call(command.Name(), nil, need)
	call.Fn = func(view store.View) (store.Changes, error) {
		return unstage(view, command, drafts, list)
	}
	return call, nil
}

// unstage moves those of a list that the view holds.
func unstage(view store.View, command fsm.Unstage, drafts []fsm.Draft, list []store.Staged) (store.Changes, error) {
	held, err := Hold(view)
	if err != nil {
		return store.Changes{}, err
	}
	payloads := map[events.Entity]*store.Payload{}
	command.Drafts = nil
	var places []int64
	for i := range list {
		if !view.Staged[list[i].Place] {
			continue // another moves it, or has
		}
		places = append(places, list[i].Place)
		command.Drafts = append(command.Drafts, drafts[i])
		if entity := events.MessageEntity(list[i].Message); payloads[entity] == nil { // of two under one id the first is the message
			payloads[entity] = &list[i].Payload
		}
	}
	if len(places) == 0 {
		return store.Changes{}, nil
	}
	outcome, err := command.Decide(held)
	if err != nil {
		return store.Changes{}, err
	}
	changes := Changes(outcome)
	for i := range changes.Rows {
		if change := &changes.Rows[i]; change.From == 0 { // what was there before has its own
			change.Payload = payloads[change.Row.Entity]
		}
	}
	changes.Unstage = places
	return changes, nil
}
