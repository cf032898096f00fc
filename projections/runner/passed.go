package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// Passed tells what a projection has not taken because the log could not be read there: where one event is not what was written, the others of
// its commit that the store gives no more are among them. Its zero is nothing.
type Passed struct {
	Events int
	First  int64 // the position of the first of them
	Last   int64 // that of the last
}

// String is what was passed over in words; empty for nothing.
func (p Passed) String() string {
	if p.Events == 0 {
		return ""
	}
	what := "1 event"
	if p.Events > 1 {
		what = fmt.Sprintf("%d events", p.Events)
	}
	return fmt.Sprintf("passed over %s that cannot be read, the first at position %d", what, p.First)
}

func (p *Passed) add(position int64) {
	if p.Events++; p.Events == 1 {
		p.First = position
	}
	p.Last = position
}

// place is how far a log was read.
type place struct {
	store    store.Store
	cursor   store.Cursor
	position int64 // of what stands before the cursor; 0 where that is not known
	passed   Passed
}

// passOver moves the place behind the next event, of which nothing but damage was read. It is an unreadable where no event is at fault, or where
// none is left to be passed over.
func (p *place) passOver(ctx context.Context, damage *events.Corrupt) error {
	next := damage.Position
	if p.position > 0 || p.cursor == "" {
		next = max(p.position+1, damage.Begins) // what is damaged may stand further on in the commit, or before in it
	}
	if damage.Position <= 0 {
		return &unreadable{damage}
	}
	head, err := p.store.Head(ctx)
	if errors.As(err, new(*events.Corrupt)) {
		return &unreadable{err}
	}
	if err != nil {
		return err
	}
	cursor := p.store.After(events.Recorded{Position: next})
	switch first, err := cursor.Earlier(head); {
	case err != nil:
		return err
	case first != cursor: // it is none of the log's events
		return &unreadable{damage}
	}
	p.cursor, p.position = cursor, next
	p.passed.add(next)
	return nil
}

// unreadable is the error of a log that is damaged where no single event can be passed over.
type unreadable struct{ err error }

// Error is what is wrong.
func (u *unreadable) Error() string { return u.err.Error() }

// halt is where a projection stops that cannot read on.
func (u *unreadable) halt() Halt {
	h := Halt{Text: halting(u.Error()), Unread: true}
	if damage := (*events.Corrupt)(nil); errors.As(u.err, &damage) {
		h.Position = damage.Position
	}
	return h
}

// Unwrap is the store's error.
func (u *unreadable) Unwrap() error { return u.err }

// each calls f with up to n events behind the place, all of them where n is 0, and no further than a cursor if one is given. It reports how many there
// were, with those that were passed over: fewer than n is that the end was reached.
func (p *place) each(ctx context.Context, n int, upto store.Cursor, f func(events.Recorded) error) (seen int, err error) {
	for (n == 0 || seen < n) && (upto == "" || p.cursor != upto) {
		read, err := p.run(ctx, max(0, n-seen), upto, f)
		seen += read
		damage := (*events.Corrupt)(nil)
		switch {
		case !errors.As(err, &damage):
			return seen, err
		case read > 0:
			continue // whoever reads from here is told what is wrong here
		}
		if err := p.passOver(ctx, damage); err != nil {
			return seen, err
		}
		seen++
	}
	return seen, nil
}

// run is each up to where the store's answer ends.
func (p *place) run(ctx context.Context, n int, upto store.Cursor, f func(events.Recorded) error) (seen int, err error) {
	for r, err := range p.store.Read(ctx, p.cursor, store.Filter{Limit: n}) {
		if err == nil {
			err = f(r)
		}
		if err != nil {
			return seen, err
		}
		p.cursor, p.position = p.store.After(r), r.Position
		if seen++; upto != "" && p.cursor == upto {
			break
		}
	}
	return seen, nil
}
