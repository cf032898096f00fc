package fsm_test

import (
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/google/go-cmp/cmp"
)

func TestErase(t *testing.T) {
	messages := map[events.ID]fsm.Message{}
	for i, state := range []events.State{
		events.Completed, events.Cancelled, events.Discarded, events.Queued, events.Blocked, events.Running, events.DeadLettered, events.Completed,
	} {
		m := messageIn(state)
		m.ID = events.ID{byte(i + 1)}
		messages[m.ID] = m
	}
	c := fsm.Erase{IDs: []events.ID{{1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {1}}, By: "ops", Detail: "art. 17"}
	o, refusals, err := c.Decide(fsm.Held{Now: now, Messages: messages, Erased: map[events.ID]bool{{8}: true}})
	if err != nil {
		t.Fatal(err)
	}
	erased := []string{"message.erased"}
	if diff := cmp.Diff(map[byte][]string{1: erased, 2: erased, 3: erased}, moved(o)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]events.ID{{1}, {2}, {3}}, o.Erase); diff != "" {
		t.Errorf("what goes (-want +got):\n%s", diff)
	}
	open := events.ReasonWrongState
	want := []events.Reason{"", "", "", open, open, open, open, "", events.ReasonNotFound, ""}
	for i, r := range refusals {
		var got events.Reason
		if r != nil {
			got = r.Reason
		}
		if got != want[i] || got != "" && r.Detail == "" {
			t.Errorf("message %d: %v, want %q, and the way out", c.IDs[i][0], r, want[i])
		}
	}
	for _, change := range o.Changes {
		before := messages[change.Value.Entity().ID]
		if diff := cmp.Diff(&before, change.Value); diff != "" || change.From != before.Version {
			t.Errorf("moved from version %d (-before +after):\n%s", change.From, diff)
		}
		if e := change.Transitions[0]; e.Version != 0 || e.From != before.State || e.To != before.State {
			t.Errorf("recorded as %+v", e)
		} else if diff := cmp.Diff(&events.MessageErased{By: "ops", Detail: "art. 17"}, e.Event); diff != "" {
			t.Errorf("event (-want +got):\n%s", diff)
		}
	}
}
