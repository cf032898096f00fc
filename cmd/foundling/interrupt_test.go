package main

import (
	"bytes"
	"context"
	"iter"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// cutStore is a store at whose log somebody interrupts after some events.
type cutStore struct {
	store.Store
	after     int
	interrupt func()
}

func (c cutStore) Read(ctx context.Context, after store.Cursor, f store.Filter) iter.Seq2[events.Recorded, error] {
	return func(yield func(events.Recorded, error) bool) {
		n := 0
		for r, err := range c.Store.Read(ctx, after, f) {
			if n == c.after {
				c.interrupt()
				yield(events.Recorded{}, ctx.Err())
				return
			}
			if n++; !yield(r, err) {
				return
			}
		}
	}
}

// An answer that an interrupt cut short is as of where the log was read to; it says so, and it is exit code 130.
func TestAnInterruptedLookIsAsOfWhereItCame(t *testing.T) {
	d := newDesk(t)
	d.enqueue(3, "")
	var errout bytes.Buffer
	d.app.stderr = &errout
	for _, form := range []format{formatTable, formatJSON} {
		d.app.format = form
		d.out.Reset()
		ctx, cancel := context.WithCancel(t.Context())
		l, err := takeLook(ctx, cutStore{d.store, 2, cancel}, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if !l.cut || l.mark().Position != 2 {
			t.Errorf("cut short is %t, as of %d", l.cut, l.mark().Position)
		}
		if err := d.app.topics(l); err != nil {
			t.Fatal(err)
		}
		if err := d.app.footer(l); codeOf(err) != exitInterrupted {
			t.Errorf("%v is exit code %d", err, codeOf(err))
		}
		if form == formatJSON && !bytes.Contains(d.out.Bytes(), []byte(`"as_of":{"position":"2",`)) || form == formatJSON && !bytes.Contains(d.out.Bytes(), []byte(`"truncated":true`)) {
			t.Errorf("%s", d.out.String())
		}
	}
	if !bytes.Contains(errout.Bytes(), []byte("as of position 2")) {
		t.Errorf("%s", errout.String())
	}
}
