package scenario

import (
	"strings"
	"testing"

	"github.com/foundling-go/foundling/events"
)

// Each list is a log that breaks a law with its last event, and no law before. Positions count from 1.
func TestTheLawsFindWhatIsForgotten(t *testing.T) {
	enqueued := move(&events.MessageEnqueued{Topic: "mail"}, 1, events.Absent, events.Queued)
	cancelled := move(&events.MessageCancelled{}, 2, events.Queued, events.Cancelled)
	told := func(version int) events.Transition {
		return move(&events.MessageSnapshotted{}, version, events.Queued, events.Queued)
	}
	erased := func(state events.State) events.Transition { return move(&events.MessageErased{}, 0, state, state) }
	pruned := func(through int64, n, total int) events.Transition {
		return move(&events.LogPruned{Through: through, Events: n, Total: total}, 1, events.Active, events.Active)
	}
	session := move(&events.LockAcquired{Token: 5, Worker: ann, Held: 1}, 1, events.Absent, events.Held)
	lockTold := func(out ...events.PermitOut) events.Transition {
		return move(&events.LockSnapshotted{Out: out}, 2, events.Held, events.Held)
	}
	for _, test := range []struct {
		name, law string
		log       []events.Transition
	}{
		{"an open message has not told its state", "law 1: the beginning of message/", []events.Transition{enqueued, pruned(1, 1, 1)}},
		{"it told its state before, and that goes as well", "law 1: the beginning of message/", []events.Transition{enqueued, told(2), pruned(2, 2, 2)}},
		{"a held lock has not", "law 1: the beginning of lock/boat", []events.Transition{session, pruned(1, 1, 1)}},
		{"its sum is wrong", "law 1: 1 events through 1 make 2", []events.Transition{enqueued, told(2), pruned(1, 1, 2)}},
		{"nothing goes", "law 1: 0 events through 1", []events.Transition{enqueued, told(2), pruned(1, 0, 0)}},
		{"what is gone goes again", "law 1: 1 events through 1", []events.Transition{enqueued, told(2), pruned(1, 1, 1), pruned(1, 1, 2)}},
		{"it goes itself", "law 1: 3 events through 3", []events.Transition{enqueued, told(2), pruned(3, 3, 3)}},
		{"it told its state and moved", "law 1: only what is open", []events.Transition{enqueued, move(&events.MessageSnapshotted{}, 2, events.Queued, events.Running)}},
		{"it told its state though it had ended", "law 1: only what is open", []events.Transition{
			enqueued, cancelled, move(&events.MessageSnapshotted{}, 3, events.Cancelled, events.Cancelled),
		}},
		{"a lock tells of nobody", "law 7: it tells of 0 permits, 1 are out", []events.Transition{session, lockTold()}},
		{"a lock tells of somebody else", "law 7: it tells of", []events.Transition{session, lockTold(events.PermitOut{Token: 5, Worker: bob, AcquiredAt: start})}},
		{"contents of an open message are erased", "law 4", []events.Transition{enqueued, erased(events.Queued)}},
		{"contents are erased twice", "law 4", []events.Transition{enqueued, cancelled, erased(events.Cancelled), erased(events.Cancelled)}},
		{"it was cancelled for good and is cancelled again", "law 5", []events.Transition{enqueued, cancelled, move(&events.MessageCancelled{}, 3, events.Cancelled, events.Cancelled)}},
	} {
		laws := newLaws()
		for i, transition := range test.log {
			r := record(transition)
			if r.Event.Type().Kind() == events.KindLog {
				r.Entity = events.LogEntity()
			}
			laws.at = int64(i + 1)
			err := laws.event(r)
			if last := i == len(test.log)-1; !last && err != nil {
				t.Errorf("%s: %v breaks %v", test.name, r.Event.Type(), err)
			} else if last && (err == nil || !strings.Contains(err.Error(), test.law)) {
				t.Errorf("%s: got %v, want that it breaks %s", test.name, err, test.law)
			}
		}
	}
}

// A store that keeps what it should have let go, or has let go of what it should keep, is found.
func TestCheckFindsContentsThatShouldNotBeThere(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*laws, events.ID)
	}{
		{"they were erased", func(l *laws, id events.ID) { l.erased[id] = true }},
		{"its end went", func(l *laws, id events.ID) { l.places[events.MessageEntity(id)].ended = 1; l.through = 1 }},
	} {
		w := told(t, "enqueue mail id=order payload=p", "cancel order")
		id, err := w.names.id("order")
		if err != nil {
			t.Fatal(err)
		}
		if err := w.checkContents(t.Context()); err != nil {
			t.Fatal(err)
		}
		test.change(w.laws, id)
		if err := w.checkContents(t.Context()); err == nil || !strings.Contains(err.Error(), "law 4: message order") {
			t.Errorf("%s: got %v, want that it breaks law 4", test.name, err)
		}
	}
}
