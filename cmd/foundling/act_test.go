package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
)

// desk is an operator's place: a store, and what the commands print.
type desk struct {
	t      *testing.T
	app    *app
	store  store.Store
	client *foundling.Client
	out    bytes.Buffer
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t}
	path := filepath.Join(t.TempDir(), "store.db")
	d.app = &app{stdin: strings.NewReader(""), stdout: &d.out, stderr: io.Discard, store: path, env: func(string) string { return "" }}
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	d.store = s
	if d.client, err = foundling.NewClient(s, foundling.ClientOptions{Logger: d.app.logger()}); err != nil {
		t.Fatal(err)
	}
	return d
}

// enqueue makes messages of one lock, or of none.
func (d *desk) enqueue(n int, lock string) []foundling.ID {
	d.t.Helper()
	topic := foundling.NewTopic[string]("mail", foundling.TopicOptions{})
	drafts := make([]foundling.Draft, n)
	for i := range drafts {
		drafts[i] = topic.Draft("x", foundling.EnqueueOptions{Lock: lock})
	}
	list, err := d.client.EnqueueMany(d.t.Context(), drafts...)
	if err != nil {
		d.t.Fatal(err)
	}
	ids := make([]foundling.ID, n)
	for i, m := range list {
		ids[i] = m.ID
	}
	return ids
}

// cancelling is an action that asks by calling f.
func (d *desk) cancelling(f func()) action {
	return action{
		wish: wish{reason: "why"}, name: "cancel", done: "cancelled", command: fsm.CancelMessage{}, after: time.Minute,
		carry: func(ctx context.Context, c *foundling.Client, ids ...events.ID) error {
			return c.Cancel(ctx, "why", ids...)
		},
		ask: func(string) error { f(); return nil },
	}
}

// state is where a message is; absent where it has ended.
func (d *desk) state(id foundling.ID) events.State {
	d.t.Helper()
	for row, err := range d.store.Rows(d.t.Context(), store.RowFilter{Entities: []events.Entity{events.MessageEntity(id)}}) {
		if err != nil {
			d.t.Fatal(err)
		}
		return row.State
	}
	return events.Absent
}

// handling has a worker hold a message until release is called.
func (d *desk) handling() (release func()) {
	d.t.Helper()
	worker, err := foundling.NewWorker(d.client, foundling.WorkerOptions{Concurrency: 1, DrainTimeout: foundling.None})
	if err != nil {
		d.t.Fatal(err)
	}
	began, over := make(chan struct{}, 10), make(chan struct{})
	foundling.NewTopic[string]("mail", foundling.TopicOptions{}).Handle(worker, func(context.Context, foundling.Message[string]) error {
		began <- struct{}{}
		<-over
		return foundling.Snooze(time.Hour)
	})
	ctx, stop := context.WithCancel(d.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	<-began
	return func() {
		stop()
		close(over)
		if err := <-ended; err != nil {
			d.t.Error(err)
		}
	}
}

// What moved since the plan was shown is left alone, which is exit status 6, and the others are done.
func TestWhatMovedSinceThePlanIsLeftAlone(t *testing.T) {
	d := newDesk(t)
	ids := d.enqueue(2, "user:ann")
	release := func() {}
	err := d.app.act(t.Context(), d.store, d.cancelling(func() { release = d.handling() }), ids) // one of them is claimed before the yes
	defer release()
	if codeOf(err) != exitConflict || !strings.Contains(err.Error(), "was left alone: it moved since") {
		t.Errorf("%v", err)
	}
	if s := d.state(ids[0]); s != events.Running {
		t.Errorf("the message that moved is %s", s)
	}
	if s := d.state(ids[1]); s != events.Absent {
		t.Errorf("the message that did not is %s", s)
	}
	if got := d.out.String(); !strings.Contains(got, "cancelled: 1\n") {
		t.Error(got)
	}
}

// Where nobody says yes, nothing is done.
func TestWithoutAYesNothingIsDone(t *testing.T) {
	d := newDesk(t)
	ids := d.enqueue(1, "user:ann")
	x := d.cancelling(nil)
	x.ask = func(what string) error { return errors.New("no " + what) }
	if err := d.app.act(t.Context(), d.store, x, ids); err == nil || err.Error() != "no cancel 1 message" {
		t.Errorf("%v", err)
	}
	if s := d.state(ids[0]); s != events.Queued {
		t.Errorf("it is %s", s)
	}
}

// Permits that came back, or changed hands, since they were shown are not taken.
func TestPermitsThatMovedAreNotReleased(t *testing.T) {
	d := newDesk(t)
	d.enqueue(1, "user:ann")
	release := d.handling()
	r := releasing{wish: wish{reason: "why"}, lock: "user:ann", after: time.Minute, ask: func(string) error { release(); return nil }}
	err := d.app.releaseLock(t.Context(), r)
	if codeOf(err) != exitConflict || !strings.Contains(err.Error(), "nothing was done: the permits of lock user:ann are not those that were said") {
		t.Errorf("%v\n%s", err, d.out.String())
	}
	if strings.Contains(d.out.String(), "released") {
		t.Error(d.out.String())
	}
}

// Many messages are acted on, and a plan of them stays readable.
func TestAPlanOfManyMessagesIsShort(t *testing.T) {
	d := newDesk(t)
	ids := append(d.enqueue(800, ""), d.enqueue(1, "")...)
	if err := d.app.act(t.Context(), d.store, d.cancelling(func() {}), ids); err != nil {
		t.Fatal(err)
	}
	got := d.out.String()
	if n := strings.Count(got, "\n"); n != mostShown+3 || !strings.Contains(got, "and 751 more\ncancelled: 801\n") {
		t.Errorf("%d lines:\n%s", n, got)
	}
}
