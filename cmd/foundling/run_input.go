package main

import (
	"context"
	"errors"
	"fmt"
	"io"
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

	held    atomic.Bool  // this process holds its own input's message
	tooLong atomic.Int64 // lines that were left out
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
// The input of a process that is gone is completed with this process's own, which stands for it.
func (r *reading) hold(ctx context.Context, m foundling.Message[process]) error {
	if m.ID == r.batch.input {
		r.held.Store(true)
	} else if wait, err := r.leave(ctx, m); wait || err != nil { // what the store cannot tell now, it can tell later
		return foundling.Snooze(inputPause)
	}
	select {
	case <-r.done:
		if r.fault == nil {
			return nil
		}
	case <-r.batch.ending:
	case <-ctx.Done():
	}
	return foundling.Snooze(0)
}

// leave reports whether another process's input is to be left alone: because it lives, or because this one does not hold its own yet,
// for which it needs one of its two hands.
func (r *reading) leave(ctx context.Context, m foundling.Message[process]) (bool, error) {
	if !r.held.Load() && !r.over() {
		return true, nil
	}
	known, err := r.batch.peers(ctx)
	if err != nil {
		return false, err
	}
	return r.batch.isRead(ctx, reader{m.ID, m.Payload, m.EnqueuedAt}, known)
}

// all makes a message of every line.
func (r *reading) all(ctx context.Context) error {
	pages, err := newPager(r.batch.app.stdin, nulEnded(r.batch.plan.Null).ending(), func(err error) {
		r.tooLong.Add(1)
		r.out.say("foundling: %v: left out", err)
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
		_, err := r.batch.client.EnqueueMany(context.WithoutCancel(ctx), drafts...)
		if err == nil {
			return nil
		}
		if !errors.Is(err, store.ErrFull) {
			return err
		}
		if !said {
			r.out.say("foundling: the disk is full; reading goes on once there is room")
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
