package runner_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/projections/internal/history"
	"github.com/foundling-go/foundling/projections/runner"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/faulty"
)

// Whatever happens all the time, a checkpoint is saved every ten seconds, and none where nothing happens.
func TestSavesAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := history.New(rand.New(rand.NewPCG(21, 4)).IntN)
		s := faulty.New(h.Store, faulty.Never)
		r := start(t, s, runner.Options{}, totals)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		for range 600 {
			if err := h.Busy(10); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second / 10)
		}
		if saves := s.CallsOf(faulty.Save); saves < 6 || saves > 8 {
			t.Errorf("%d saves in a minute", saves)
		}
		time.Sleep(11 * time.Second)
		saves := s.CallsOf(faulty.Save)
		time.Sleep(time.Hour)
		same(t, s.CallsOf(faulty.Save), saves)
		same(t, string(current(t, s, "totals").Bytes), folded(t, h, &projections.Totals{}))
		same(t, r.Status()[0].Saved, r.Status()[0].AsOf)
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	})
}

// Much that happens at once is saved by the count, not by the time.
func TestSavesComeByTheCount(t *testing.T) {
	h := busy(t, 22, 2000)
	s := faulty.New(h.Store, faulty.Never)
	catchUp(t, start(t, s, runner.Options{Events: 300, Page: 100, Every: time.Hour}, totals))
	list, err := h.Log(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	most := 2 + (len(list)+299)/300 // the first page, every 300 events, and the end
	if saves := s.CallsOf(faulty.Save); saves > most || saves < most-2 {
		t.Errorf("%d saves for %d events", saves, len(list))
	}
}

// A process that starts again and again saves what is due all the same.
func TestShortLivesSave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		for range 10 {
			d.entry(t)
			d.now = d.now.Add(4 * time.Second)
			time.Sleep(4 * time.Second)
			if _, err := start(t, d, runner.Options{}, made(tally{name: "tally", version: 1})).Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(checkpoints(t, d, store.CheckpointFilter{})); n < 3 || n > 5 {
			t.Errorf("%d checkpoints in 40 s", n)
		}
	})
}

// A store that is out of reach for a while is waited for; one that is closed ends it.
func TestRunOutlivesAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := busy(t, 23, 200)
		began := time.Now()
		s := faulty.New(h.Store, func(faulty.Call) faulty.Fault {
			if age := time.Since(began); age > 10*time.Second && age < time.Minute {
				return faulty.Fail
			}
			return faulty.None
		})
		r := start(t, s, runner.Options{}, totals)
		ended := make(chan error)
		go func() { ended <- r.Run(t.Context()) }()
		time.Sleep(30 * time.Second)
		if status := r.Status()[0]; !errors.Is(status.Err, faulty.ErrPlanned) || status.Phase != runner.Following {
			t.Errorf("in the outage it is %s: %v", status.Phase, status.Err)
		}
		if err := h.Busy(100); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		same(t, string(current(t, h.Store, "totals").Bytes), folded(t, h, &projections.Totals{}))
		same(t, r.Status()[0].Err, nil)
		if err := h.Store.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, store.ErrClosed) {
			t.Errorf("it ended with %v", err)
		}
	})
}

func TestLagSaysHowFarItIsBehind(t *testing.T) {
	h := busy(t, 24, 200)
	r := start(t, h.Store, small, totals)
	if _, err := r.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := h.Log(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	behind := len(list) - small.Page
	cursor := r.Status()[0].Cursor
	for most, want := range map[int]runner.Lag{
		10:         {Events: 10, More: true, For: h.Now().Sub(list[small.Page].At())},
		behind - 1: {Events: behind - 1, More: true, For: h.Now().Sub(list[small.Page].At())},
		behind:     {Events: behind, For: h.Now().Sub(list[small.Page].At())},
	} {
		lag, err := runner.LagOf(t.Context(), h.Store, cursor, most)
		same(t, err, nil)
		same(t, lag, want)
	}
	catchUp(t, r)
	lag, err := runner.LagOf(t.Context(), h.Store, r.Status()[0].Cursor, 10)
	same(t, err, nil)
	same(t, lag, runner.Lag{})
}

// Whoever shows a projection adds what has come since it was saved, up to a bound.
func TestReadAddsWhatHasCome(t *testing.T) {
	h := busy(t, 25, 100)
	reading, err := runner.Read(t.Context(), h.Store, totals, 100_000) // that nobody ever ran
	same(t, err, nil)
	same(t, view(t, reading.What), folded(t, h, &projections.Totals{}))

	catchUp(t, start(t, h.Store, small, totals))
	was, saves := current(t, h.Store, "totals"), len(checkpoints(t, h.Store, store.CheckpointFilter{}))
	if err := h.Busy(100); err != nil {
		t.Fatal(err)
	}
	reading, err = runner.Read(t.Context(), h.Store, totals, 100_000)
	same(t, err, nil)
	same(t, view(t, reading.What), folded(t, h, &projections.Totals{}))
	same(t, reading.More, false)

	reading, err = runner.Read(t.Context(), h.Store, totals, 5)
	same(t, err, nil)
	same(t, reading.More, true)
	same(t, reading.AsOf.Position, was.AsOf.Position+6)
	same(t, len(checkpoints(t, h.Store, store.CheckpointFilter{})), saves)
}
