package postgres

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store"
)

// let lets go of what Foundling's own calls may, up to a cursor.
func (b *beds) let(upto store.Cursor, most int) store.Receipt {
	b.t.Helper()
	now, err := b.s.Now(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	command := fsm.Prune{Before: now.Add(time.Hour), Events: most, Rows: 100, Decider: b.id(), By: "tests"}
	call, _ := calls.Prune(b.origin(), command, calls.Known{Now: now, Upto: upto})
	return b.commit(call)
}

// Who reads on from a cursor must learn of what ended behind it what it was: so what ends while a prune is under way ends behind the prune.
func TestNothingEndsWhileItsBeginningGoes(t *testing.T) {
	s := openAt(t, pgtest.Database(t), Options{})
	b, h := &beds{t: t, s: s}, newHand(t, s)
	b.enqueue("mail", "", 1)
	rows := b.claim(b.id(), "mail", 1)
	upto, err := s.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h.do("BEGIN")
	h.do("DELETE FROM @messages") // as whoever ends it does
	now, err := s.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	asked := store.Prunable{Before: now.Add(time.Hour), Upto: upto, Events: 100, Rows: 100}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	look := func(ctx context.Context) (p store.Pruning, err error) {
		call, _ := calls.Prune(b.origin(), fsm.Prune{Before: asked.Before, Events: 100, Rows: 100, Decider: b.id()}, calls.Known{Now: now, Upto: upto})
		call.Fn = func(view store.View) (store.Changes, error) {
			p = view.Pruning
			return store.Changes{}, nil
		}
		_, err = s.Decide(ctx, call)
		return p, err
	}
	if p, err := look(ctx); err == nil {
		t.Errorf("%d events may go of what is about to end", p.Events)
	}
	h.do("ROLLBACK")
	if p, err := look(t.Context()); err != nil || p.Events == 0 {
		t.Errorf("%d events may go, %v, want some where it goes on", p.Events, err)
	}
	b.settle(rows[0].Worker, rows)
	if p, err := look(t.Context()); err != nil || p.Events != 0 {
		t.Errorf("%d events may go, %v, want none of what has ended behind the cursor", p.Events, err)
	}
}

// A transaction has the commits of several calls, and the first of them may go alone.
func TestPruneEndsWithinATransaction(t *testing.T) {
	s := openAt(t, pgtest.Database(t), Options{})
	b := &beds{t: t, s: s}
	topic := func(name string) store.Call {
		return calls.OperateTopic(b.origin(), fsm.OperateTopic{Topic: name, Command: fsm.ConfigureTopic{Limit: 3}})
	}
	receipts, err := s.Decide(t.Context(), topic("a"), topic("b"), topic("c"))
	if err != nil {
		t.Fatal(err)
	}
	log := read(t, s, "", store.Filter{})
	if len(log) != 3 || numberOf(log[0].Position) != numberOf(log[2].Position) {
		t.Fatalf("%d events, want 3 of one transaction", len(log))
	}
	b.let("", 1)
	first, err := s.First(t.Context())
	if err != nil || first != s.After(log[0]) {
		t.Fatalf("first is %q, %v, want %q", first, err, s.After(log[0]))
	}
	left := read(t, s, first, store.Filter{})
	if got, want := places(left[:2]), places(log[1:]); !slices.Equal(got, want) {
		t.Errorf("what is left begins with %v, want %v", got, want)
	}
	for i, entity := range []events.Entity{events.TopicEntity("a"), events.TopicEntity("b")} {
		if got := read(t, s, first, store.Filter{Entity: entity}); len(got) != 1 {
			t.Errorf("%d: %d events of %s", i, len(got), entity)
		}
	}
	for i, want := range []error{store.ErrPruned, nil, nil} {
		again, committed, err := s.Outcome(t.Context(), receipts[i].ID)
		if err != nil || !committed || !errors.Is(again.Err, want) {
			t.Errorf("outcome of call %d: %v, %t, %v, want %v", i, again.Err, committed, err, want)
		}
	}
}
