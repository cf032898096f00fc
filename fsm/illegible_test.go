package fsm_test

import (
	"errors"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/google/go-cmp/cmp"
)

// A lock whose row cannot be read is given to nobody, and whoever names it is told. What else a command does goes on without it.
func TestUnreadableLock(t *testing.T) {
	damaged := errors.New("damaged")
	m, _ := running(1, workerA, now.Add(-time.Hour), 4)
	other, _ := running(2, workerA, now.Add(-time.Hour), 0)
	held := fsm.Held{
		Now: now, Unread: map[string]error{"l": damaged}, Fence: 9, Beats: beating(time.Hour), Claims: map[events.ID][]fsm.Message{workerA: {m, other}},
		Messages: map[events.ID]fsm.Message{m.ID: m, {3}: trying(3, "mail")}, Waiting: map[string][]fsm.Message{"l": {waiting(7, "mail")}},
		Workers: map[events.ID]fsm.Worker{workerA: workerIn(events.Live)}, Claimable: map[string][]fsm.Message{"mail": {locked(8, "mail")}},
	}
	tests := []struct {
		name   string
		decide func() (fsm.Outcome, error)
		want   map[string]string // nil is the lock's error
	}{
		{"acquire", func() (fsm.Outcome, error) {
			o, _, err := fsm.Acquire{Lock: "l", Worker: workerB}.Decide(held)
			return o, err
		}, nil},
		{"force-release", func() (fsm.Outcome, error) { return fsm.ForceRelease{Lock: "l"}.Decide(held) }, nil},
		{"configure", func() (fsm.Outcome, error) {
			return fsm.OperateLock{Lock: "l", ConfigureLock: fsm.ConfigureLock{Permits: 3}}.Decide(held)
		}, nil},
		{"claim of one that takes it", func() (fsm.Outcome, error) {
			return fsm.Claim{Worker: workerB, Asks: []fsm.Ask{{Topic: "mail", N: 1}}}.Decide(held)
		}, nil},
		{"repair", func() (fsm.Outcome, error) { return fsm.RepairLock{Lock: "l"}.Decide(held) }, map[string]string{}},
		{"expiry", func() (fsm.Outcome, error) { return fsm.ExpireLocks{Lock: "l"}.Decide(held) }, map[string]string{}},
		{"cancel of one that was sent to try", func() (fsm.Outcome, error) {
			o, _, err := fsm.Operate{IDs: []events.ID{{3}}, Command: fsm.CancelMessage{}}.Decide(held)
			return o, err
		}, map[string]string{"m3": "cancelled"}},
		{"the result of one that has it", func() (fsm.Outcome, error) {
			c := fsm.Settle{Sender: workerA, Items: []fsm.Settlement{{ID: m.ID, Command: fsm.CompleteMessage{Token: 2}, Permit: m.Permit()}}}
			o, _, err := c.Decide(held)
			return o, err
		}, map[string]string{"m1": "completed"}},
		{"a sweep", func() (fsm.Outcome, error) {
			o, _, err := sweeping().Decide(held)
			return o, err
		}, map[string]string{"wa": "lost", "m1": "orphaned requeued", "m2": "orphaned requeued"}},
	}
	for _, tt := range tests {
		outcome, err := tt.decide()
		if tt.want == nil {
			if !errors.Is(err, damaged) || len(outcome.Changes)+len(outcome.Permits) > 0 {
				t.Errorf("%s: %v, %v", tt.name, err, told(outcome))
			}
			continue
		}
		if diff := cmp.Diff(tt.want, told(outcome)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
		}
	}
}

// Claims that cannot be read fill a page like others, and whoever has one holds something.
func TestUnreadableClaims(t *testing.T) {
	m, _ := running(1, workerA, now, 0)
	many := make([]fsm.Message, fsm.StopPage-1)
	for i := range many {
		many[i] = m
		many[i].ID[15] = byte(i)
	}
	tests := []struct {
		name    string
		claims  []fsm.Message
		spoilt  int
		stopped bool
	}{
		{"the page is full of both", many, 1, false},
		{"it is not full", many[1:], 1, true},
		{"nothing else is left", nil, 1, true},
	}
	for _, tt := range tests {
		held := fsm.Held{
			Now: now, Workers: map[events.ID]fsm.Worker{workerA: workerIn(events.Live)}, Claims: map[events.ID][]fsm.Message{workerA: tt.claims},
			Spoilt: map[events.ID]int{workerA: tt.spoilt},
		}
		outcome, err := fsm.OperateWorker{Worker: workerA, Command: fsm.StopWorker{}}.Decide(held)
		if stopped := told(outcome)["wa"] == "stopped"; err != nil || stopped != tt.stopped {
			t.Errorf("%s: %v, stopped %v", tt.name, err, stopped)
		}
	}
	lost := fsm.Worker{ID: workerA, Version: 2, State: events.Lost, LostAt: now.Add(-48 * time.Hour)}
	held := fsm.Held{Now: now, Workers: map[events.ID]fsm.Worker{workerA: lost}, Spoilt: map[events.ID]int{workerA: 1}}
	if outcome, err := (fsm.OperateWorker{Worker: workerA, Command: fsm.PurgeWorker{TTL: time.Hour}}).Decide(held); err != nil || len(outcome.Changes) > 0 {
		t.Errorf("a lost worker with a claim that cannot be read: %v, %v", err, told(outcome))
	}
}

// What was due once stays due, whatever becomes of the clock: it waits for its turn and not for the clock to come round again.
func TestDueAfterTheClockWasSetBack(t *testing.T) {
	m := after(t, fsm.Message{ID: thisID}, fsm.EnqueueMessage{Topic: "mail", Lock: "l"})
	back := now.Add(-time.Hour)
	blocked := after(t, m, fsm.BlockMessage{})
	claimed := after(t, m, fsm.ClaimMessage{Worker: workerA, LockToken: 7})
	tests := []struct {
		name    string
		message fsm.Message
		command fsm.MessageCommand
		due     time.Time
	}{
		{"unblocked", blocked, fsm.UnblockMessage{}, back},
		{"released", claimed, fsm.ReleaseMessage{Token: 2, Reason: events.ReasonReleased}, back},
		{"orphaned", claimed, fsm.OrphanMessage{Evidence: events.Evidence{Claimer: workerA}}, back},
		{"taken back", claimed, fsm.TakeBackMessage{}, back},
		{"snoozed", claimed, fsm.ReleaseMessage{Token: 2, Reason: events.ReasonSnoozed, Delay: time.Minute}, back.Add(time.Minute)},
	}
	for _, tt := range tests {
		if next, _ := decide(t, tt.message, tt.command, back); !next.DueAt.Equal(tt.due) {
			t.Errorf("%s: due at %s, want %s", tt.name, next.DueAt, tt.due)
		}
	}
	if next := after(t, blocked, fsm.UnblockMessage{}); !next.DueAt.Equal(now) {
		t.Errorf("unblocked in time: due at %s", next.DueAt)
	}
}
