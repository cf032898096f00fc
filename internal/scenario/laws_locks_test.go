package scenario

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// The parts of logs that break the laws of locks. The message of record has the worker {2} and the lock boat.
var (
	ann = events.ID{2}
	bob = events.ID{3}
)

func acquired(version int, token events.Token, held int) events.Transition {
	from := events.Free
	if version == 1 {
		from = events.Absent
	}
	if held > 1 {
		from = events.Held
	}
	return move(&events.LockAcquired{Token: token, Worker: ann, Message: events.ID{1}, Held: held}, version, from, events.Held)
}

func released(version int, token events.Token) events.Transition {
	return move(&events.LockReleased{Token: token}, version, events.Held, events.Free)
}

func locked() events.Transition {
	return move(&events.MessageEnqueued{Topic: "mail", Lock: "boat"}, 1, events.Absent, events.Queued)
}

func runs(version int, token, permit events.Token, attempt int) events.Transition {
	return move(&events.MessageClaimed{Worker: ann, Token: token, Attempt: attempt, LockToken: permit}, version, events.Queued, events.Running)
}

// Each list is a log that breaks a law with its last event, and no law before.
func TestTheLawsFindWhatBreaksALock(t *testing.T) {
	session := move(&events.LockAcquired{Token: 5, Worker: ann, Held: 1}, 1, events.Absent, events.Held)
	orphaned := move(&events.LockOrphaned{Token: 5, Evidence: events.Evidence{Claimer: ann}}, 2, events.Held, events.Held)
	for _, test := range []struct {
		name, law string
		log       []events.Transition
	}{
		{"a version is missing", "law 1", []events.Transition{acquired(1, 5, 1), released(3, 5)}},
		{"it was in another state", "law 1", []events.Transition{released(1, 5)}},
		{"more permits are out than there are", "law 7: 1 permits are out of 1", []events.Transition{session, acquired(2, 6, 2)}},
		{"a token comes again", "law 7: token 5", []events.Transition{session, released(2, 5), acquired(3, 5, 1)}},
		{"a permit comes back twice", "law 7: permit 5 is back", []events.Transition{
			move(&events.LockConfigured{Permits: 2}, 1, events.Absent, events.Free),
			acquired(2, 5, 1), acquired(3, 6, 2), move(&events.LockReleased{Token: 5, Held: 1}, 4, events.Held, events.Held),
			move(&events.LockForceReleased{Token: 5}, 5, events.Held, events.Free),
		}},
		{"it says the wrong number", "law 7: 2 are recorded", []events.Transition{move(&events.LockAcquired{Token: 5, Worker: ann, Held: 2}, 1, events.Absent, events.Held)}},
		{"its state is not that of its permits", "law 7: it is free", []events.Transition{
			move(&events.LockAcquired{Token: 5, Worker: ann, Held: 1}, 1, events.Absent, events.Free),
		}},
		{"it expires without a time limit", "law 7: its time", []events.Transition{
			session, move(&events.LockExpired{Token: 5}, 2, events.Held, events.Free),
		}},
		{"another's permit is orphaned", "law 7: the permit is not out", []events.Transition{
			session, move(&events.LockOrphaned{Token: 5, Evidence: events.Evidence{Claimer: bob}}, 2, events.Held, events.Held),
		}},
		{"it is taken back from nobody", "law 7: what is taken back", []events.Transition{
			session, move(&events.LockReclaimed{Token: 5}, 2, events.Held, events.Free),
		}},
		{"it is released between orphaned and reclaimed", "law 7: what is taken back", []events.Transition{
			move(&events.LockConfigured{Permits: 2}, 1, events.Absent, events.Free),
			move(&events.LockAcquired{Token: 5, Worker: ann, Held: 1}, 2, events.Free, events.Held), acquired(3, 6, 2),
			move(&events.LockOrphaned{Token: 5, Evidence: events.Evidence{Claimer: ann}}, 4, events.Held, events.Held),
			move(&events.LockReleased{Token: 6, Held: 1}, 5, events.Held, events.Held),
			move(&events.LockReclaimed{Token: 5}, 6, events.Held, events.Free),
		}},
		{"the holder is refused", "law 7: a refusal", []events.Transition{
			session, move(&events.LockRefused{Sent: 5, Sender: ann}, 0, events.Held, events.Held),
		}},
		{"a message runs without its lock", "law 7: it runs with permit 0", []events.Transition{locked(), runs(2, 2, 0, 1)}},
		{"a message runs with another's permit", "law 7: it runs with permit 5", []events.Transition{session, locked(), runs(2, 2, 5, 1)}},
		{"a claim of another worker is orphaned", "law 5", []events.Transition{
			acquired(1, 5, 1), locked(), runs(2, 2, 5, 1),
			move(&events.MessageOrphaned{Token: 2, Evidence: events.Evidence{Claimer: bob}}, 3, events.Running, events.Orphaned),
		}},
		{"it waits for a free lock", "law 3", []events.Transition{locked(), move(&events.MessageBlocked{Lock: "boat"}, 2, events.Queued, events.Blocked)}},
		{"it may try a taken lock", "law 3", []events.Transition{
			session, locked(), move(&events.MessageBlocked{Lock: "boat"}, 2, events.Queued, events.Blocked),
			move(&events.MessageUnblocked{Lock: "boat"}, 3, events.Blocked, events.Queued),
		}},
		{"C14: one that waits is discarded", "law 3", []events.Transition{
			session, locked(), move(&events.MessageDiscarded{Lock: "boat"}, 2, events.Queued, events.Discarded),
		}},
		{"an orphaned permit is left out", "", []events.Transition{session, orphaned}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLaws()
			for i, transition := range test.log {
				err := l.event(record(transition))
				if i == len(test.log)-1 && test.law == "" {
					err = l.settled()
					test.law = "law 7"
				} else if i < len(test.log)-1 {
					if err != nil {
						t.Fatalf("event %d: %v", i+1, err)
					}
					continue
				}
				if err == nil || !strings.Contains(err.Error(), test.law) {
					t.Fatalf("the last event: got %v, want that it breaks %s", err, test.law)
				}
			}
		})
	}
}

// Each list is a log after which something is left as no commit may leave it. C05 is the second: what a sweep would leave that gives back
// messages and no locks.
func TestTheLawsFindWhatACommitMustNotLeave(t *testing.T) {
	stopped := events.Recorded{
		Transition: move(&events.WorkerStopped{}, 2, events.Live, events.Stopped), Entity: events.WorkerEntity(ann), Commit: &events.Commit{At: start},
	}
	requeued := func(reason events.Reason) events.Transition {
		return move(&events.MessageRequeued{Reason: reason, Token: 2}, 3, events.Running, events.Queued)
	}
	running := []events.Transition{acquired(1, 5, 1), locked(), runs(2, 2, 5, 1)}
	for _, test := range []struct {
		name, law string
		log       []events.Transition
		also      []events.Recorded
	}{
		{"its claim ended and its permit is out", "law 7: the claim that took permit 5 has ended", append(running[:3:3], requeued(events.ReasonRetry)), nil},
		{"C05: the message came back, and its lock did not", "law 7: the claim that took permit 5 has ended", append(running[:3:3],
			move(&events.MessageOrphaned{Token: 2, Evidence: events.Evidence{Claimer: ann}}, 3, events.Running, events.Orphaned),
			move(&events.MessageRequeued{Reason: events.ReasonOrphan, Token: 2}, 4, events.Orphaned, events.Queued)), nil},
		{"its handler was told to stop", "", append(running[:3:3], requeued(events.ReasonTakenBack)), nil},
		{"its worker has stopped", "law 7: the holder of permit 5 is stopped", append(running[:3:3], requeued(events.ReasonTakenBack)), []events.Recorded{stopped}},
		{"nobody told the waiter", "law 3: lock boat is free", []events.Transition{
			move(&events.LockAcquired{Token: 5, Worker: ann, Held: 1}, 1, events.Absent, events.Held),
			locked(), move(&events.MessageBlocked{Lock: "boat"}, 2, events.Queued, events.Blocked), released(2, 5),
		}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLaws()
			for _, transition := range test.log {
				if err := l.event(record(transition)); err != nil {
					t.Fatal(err)
				}
			}
			for _, r := range test.also {
				if err := l.event(r); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.settled(); test.law == "" && err != nil || test.law != "" && (err == nil || !strings.Contains(err.Error(), test.law)) {
				t.Fatalf("got %v, want %q", err, test.law)
			}
		})
	}
}

// What is kept of locks and permits must be what the log tells, so a check finds a log that goes on without them.
func TestCheckFindsWhatThePermitsDoNotHave(t *testing.T) {
	for _, test := range []struct {
		name, law string
		change    func(*laws)
	}{
		{"a permit is not kept", "is out, and is not kept", func(l *laws) { l.lock("cart").out[99] = &permit{} }},
		{"a permit is kept that is not out", "is kept, and is not out", func(l *laws) { clear(l.lock("boat").out) }},
		{"a permit is kept as another's", "its event says", func(l *laws) {
			for _, p := range l.lock("boat").out {
				p.Worker = events.ID{9}
			}
		}},
		{"a lock has another number of permits", "permits are out of 3", func(l *laws) { l.lock("boat").permits = 3 }},
		{"a lock has no row", "whether it has a row is false", func(l *laws) { l.lock("raft").permits = 2 }},
		{"the log does not know a lock", "the log does not know it", func(l *laws) { delete(l.locks, "boat") }},
		{"its claim took another permit", "law 7", func(l *laws) {
			for _, m := range l.messages {
				m.claim.permit++
			}
		}},
		{"it was told to try", "law 3", func(l *laws) {
			for _, m := range l.messages {
				m.trying = true
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := told(t, "lock boat permits=2", "enqueue mail lock=boat", "claim ann mail")
			if err := w.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			test.change(w.laws)
			if err := w.Check(t.Context()); err == nil || !strings.Contains(err.Error(), test.law) {
				t.Errorf("got %v, want %s", err, test.law)
			}
		})
	}
}

// Law 8 is held by the harness: it runs every sweep that was not refused a second time on the spot.
func TestASecondSweepThatWouldChangeSomethingIsFound(t *testing.T) {
	w := told(t, "worker-start ann interval=15s fence=90s", "worker-start bob interval=15s fence=90s", "enqueue mail", "claim bob mail", "silence bob", "advance 121s")
	l, err := parseLine("sweep ann")
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.sweeper(l)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.again(t.Context()); err == nil || !strings.Contains(err.Error(), "law 8") {
		t.Errorf("the first sweep, taken for a second: got %v, want that it breaks law 8", err)
	}
	if _, err := w.Do(t.Context(), "expect", "holder m1 bob"); err != nil {
		t.Errorf("it kept something: %v", err)
	}
	silent := record(move(&events.MessageOrphaned{Evidence: events.Evidence{Reason: events.ReasonSilent}}, 3, events.Running, events.Orphaned))
	if err := untouched([]events.Recorded{silent}); err == nil {
		t.Error("a refused sweep that took silence for death: want that it breaks law 8")
	}
}

// A sweep that has nowhere to commit leaves an error to tell, not a story that goes on.
func TestASweepTellsWhatFailed(t *testing.T) {
	w := told(t, "worker-start ann interval=15s fence=90s", "worker-start bob interval=15s fence=90s", "enqueue mail", "claim bob mail", "silence bob", "advance 121s")
	l, err := parseLine("sweep ann")
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.sweeper(l)
	if err != nil {
		t.Fatal(err)
	}
	s.Decide = func(context.Context, func(calls.Origin) store.Call) (store.Receipt, error) {
		return store.Receipt{}, store.ErrFull
	}
	if err := s.run(t.Context(), new(swept)); !errors.Is(err, store.ErrFull) {
		t.Errorf("got %v, want %v", err, store.ErrFull)
	}
}
