package runner_test

import (
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
)

// Totals that begin on a log whose beginning has gone count under its topic what ended behind there, too: the store has kept it.
func TestWhatEndedCountsUnderItsTopicThoughItsBeginningHasGone(t *testing.T) {
	h := busy(t, 9, 600)
	for range 8 {
		if err := h.Prune(40, ""); err != nil {
			t.Fatal(err)
		}
	}
	list, err := h.Log(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	known, ended := map[events.ID]bool{}, 0
	for _, r := range list {
		if _, says := projections.TopicOf(r); says {
			known[r.Entity.ID] = true
		}
		switch r.Event.Type() {
		case events.TypeMessageCompleted, events.TypeMessageCancelled, events.TypeMessageDiscarded:
			if !known[r.Entity.ID] {
				ended++
			}
		}
	}
	if ended == 0 {
		t.Fatal("no message ended behind the beginning of the log of which nothing else tells the topic")
	}
	catchUp(t, start(t, h.Store, small, totals))
	var counted projections.Totals
	v := current(t, h.Store, "totals")
	if err := counted.Restore(v.Version, v.Bytes); err != nil {
		t.Fatal(err)
	}
	all := 0
	for topic, c := range counted.Counts().Topics {
		n := c.Completed + c.Cancelled + c.Discarded
		if all += n; topic == projections.UnknownTopic && n > 0 {
			t.Errorf("%d are counted as ended under no topic", n)
		}
	}
	if all < ended {
		t.Errorf("%d are counted as ended; %d lack their beginning", all, ended)
	}
}
