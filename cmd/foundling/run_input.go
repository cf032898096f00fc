package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/internal/lines"
	"github.com/foundling-go/foundling/store"
)

// inputPause is after how long an input that is not this process's is looked at again.
const inputPause = 200 * time.Millisecond

// reading is the reading of this process's input. A nil one has no input and is over from the start.
type reading struct {
	batch *batch
	out   *console
	done  chan struct{}
	fault error // set before done is closed: why not all of the input is in the batch

	known   atomic.Int64 // lines that the batch had before
	tooLong atomic.Int64 // lines that were left out
	cutOff  sync.Map     // *standing of inputs that were cut off, by the ids of their messages
}

// startReading reads the input until its end, or until ctx ends.
func (b *batch) startReading(ctx context.Context, out *console) *reading {
	if !b.reads {
		return nil
	}
	r := &reading{batch: b, out: out, done: make(chan struct{})}
	go func() { // blocks in a read that nothing can end; it goes with the process
		r.fault = r.all(ctx)
		close(r.done)
	}()
	return r
}

// over reports whether there is nothing more to come from this process's input.
func (r *reading) over() bool {
	if r == nil {
		return true
	}
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// err is why not all of the input is in the batch; nil while it is being read.
func (r *reading) err() error {
	if r == nil || !r.over() {
		return nil
	}
	return r.fault
}

// hold is the handler of an input's message. It is completed when the input has been read to its end, and given back where it was not.
// One that was cut off is held too, and completed if this process's input is found to stand for it.
func (r *reading) hold(ctx context.Context, m foundling.Message[process]) error {
	read := r.done
	if m.ID != r.batch.input {
		if alive, err := r.reads(ctx, m); alive || err != nil { // what the store cannot tell now, it can tell later
			return foundling.Snooze(inputPause)
		}
		read = r.stands(m.ID).done
	}
	select {
	case <-read:
		if r.err() == nil {
			return nil
		}
	case <-r.batch.ending:
	case <-ctx.Done():
	}
	return foundling.Snooze(0)
}

// reads reports whether the process that an input's message names is alive, and so the one to hold it.
func (r *reading) reads(ctx context.Context, m foundling.Message[process]) (bool, error) {
	known, err := r.batch.peers(ctx)
	if err != nil {
		return false, err
	}
	return r.batch.isRead(ctx, reader{m.ID, m.Payload, m.EnqueuedAt}, known)
}

// cover reports whether this process's input, read to its end, stands for one that was cut off: it held as many lines that the batch had
// before as the cut-off one had put there. Whoever holds the cut-off one completes it then.
func (r *reading) cover(in openInput, t *tally) bool {
	if r == nil || in.alive || r.known.Load() < int64(t.added[in.by.actor()]) {
		return false
	}
	s := r.stands(in.id)
	s.once.Do(func() { close(s.done) })
	return true
}

// standing is told when this process's input stands for another one.
type standing struct {
	once sync.Once
	done chan struct{}
}

func (r *reading) stands(id foundling.ID) *standing {
	s, _ := r.cutOff.LoadOrStore(id, &standing{done: make(chan struct{})})
	return s.(*standing)
}

// all makes a message of every line.
func (r *reading) all(ctx context.Context) error {
	pages, err := newPager(r.batch.app.stdin, nulEnded(r.batch.plan.Null).ending(), func(err error) {
		r.tooLong.Add(1)
		r.out.warn("foundling: %v: left out", err)
	})
	if err != nil {
		return err
	}
	tally, err := lines.NewTally()
	if err != nil {
		return err
	}
	defer tally.Close()
	for {
		page, err := pages.next()
		if len(page) > 0 {
			if err := r.keep(ctx, page, tally); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("standard input: %w", err)
		case ctx.Err() != nil:
			return ctx.Err()
		}
	}
}

// keep makes the lines durable. While the disk is full it waits for room: nothing is lost, the rest of the input is simply not read yet.
func (r *reading) keep(ctx context.Context, page [][]byte, tally *lines.Tally) error {
	sums := make([]lines.Sum, len(page))
	for i, line := range page {
		sums[i] = lines.SumOf(line)
	}
	before, err := tally.Add(sums)
	if err != nil {
		return err
	}
	drafts := make([]foundling.Draft, len(page))
	for i, line := range page {
		id := foundling.ID(lines.Name(r.batch.created, line, before[i]))
		drafts[i] = r.batch.lines.Draft(line, foundling.EnqueueOptions{ID: id})
	}
	for said := false; ; said = true {
		answers, err := r.batch.client.EnqueueMany(context.WithoutCancel(ctx), drafts...)
		if err == nil {
			for _, answer := range answers {
				if answer.Known {
					r.known.Add(1)
				}
			}
			return nil
		}
		if !errors.Is(err, store.ErrFull) {
			return err
		}
		if !said {
			r.out.warn("foundling: the disk is full; reading goes on once there is room")
		}
		timer := time.NewTimer(time.Second)
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C:
		}
	}
}
