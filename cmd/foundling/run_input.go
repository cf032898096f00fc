package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/internal/lines"
	"github.com/foundling-go/foundling/store"
)

const (
	// inputPage is how many lines are made durable at a time.
	inputPage = 500
	// inputBytes is how many bytes of lines wait for that at most.
	inputBytes = 4 << 20
)

// reading is the reading of this process's input. A nil one has no input and is over from the start.
type reading struct {
	batch *batch
	out   *console
	done  chan struct{}
	fault error // set before done is closed: why not all of the input is in the batch

	read    atomic.Int64 // lines that are durable
	refused atomic.Int64 // lines that were too long
}

// startReading reads the input until its end, or until ctx ends.
func (b *batch) startReading(ctx context.Context, out *console) *reading {
	if !b.reads {
		return nil
	}
	r := &reading{batch: b, out: out, done: make(chan struct{})}
	go func() { // blocks in a read that nothing can end; it goes with the process
		err := r.all(ctx)
		select {
		case <-r.done: // the wait was given up
		default:
			r.fault = err
			close(r.done)
		}
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

// hold is the handler of the input's message: it is completed when the input has been read to its end, and given back where it was not.
func (r *reading) hold(ctx context.Context, _ foundling.Message[json.RawMessage]) error {
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

// all makes a message of every line.
func (r *reading) all(ctx context.Context) error {
	reader, err := r.batch.lineReader()
	if err != nil {
		return err
	}
	tally, err := lines.NewTally()
	if err != nil {
		return err
	}
	defer tally.Close()
	for {
		page, err := r.page(reader)
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

// page is the next lines: as many as can be had without waiting, and at least one.
func (r *reading) page(reader *lines.Reader) ([][]byte, error) {
	var page [][]byte
	size := 0
	for len(page) < inputPage && size < inputBytes && (len(page) == 0 || reader.Ready()) {
		record, err := reader.Next()
		var long *lines.TooLongError
		if errors.As(err, &long) {
			r.refused.Add(1)
			r.out.say("foundling: %v: left out", long)
			continue
		}
		if err != nil {
			return page, err
		}
		page = append(page, bytes.Clone(record.Bytes))
		size += len(record.Bytes)
	}
	return page, nil
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
			r.read.Add(int64(len(page)))
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
