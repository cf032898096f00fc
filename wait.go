package foundling

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// Wait blocks until a message has ended for good or is a dead letter, which MessageInfo.State tells apart, and gives it with its result. A
// message that has done so already is given at once; one that the store does not know is an ErrNotFound, as is one whose transaction has not committed
// yet. One that is staged Wait moves into the log. A store out of reach is waited for, and logged; only ctx ends that. However many wait, one of them
// follows the log for all of the client.
func (c *Client) Wait(ctx context.Context, id ID) (MessageInfo, error) {
	info, err := c.wait(ctx, id)
	if err != nil {
		return MessageInfo{}, fmt.Errorf("wait for message %s: %w", id, err)
	}
	return info, nil
}

func (c *Client) wait(ctx context.Context, id ID) (MessageInfo, error) {
	woken, leave := c.waits.join(id)
	defer leave()
	// First the place in the log, then the look at the message: whatever ends it after that look stands behind the place.
	if err := c.waits.settle(ctx, c); err != nil {
		return MessageInfo{}, err
	}
	for {
		var info MessageInfo
		err := c.patiently(ctx, "wait for a message", func() (err error) {
			info, err = c.get(ctx, id)
			return err
		})
		if err != nil || rests(info.State) {
			return info, err
		}
		if info.State == Staged { // whoever waits for it moves it on: there may be no worker that does
			err := c.patiently(ctx, "move a staged message", func() error { return c.unstageThese(ctx, id) })
			if err != nil {
				return MessageInfo{}, err
			}
			continue
		}
		if err := c.waits.until(ctx, c, woken); err != nil {
			return MessageInfo{}, err
		}
	}
}

// waits is who waits for which messages, and up to where the log was read for them.
type waits struct {
	mu      sync.Mutex
	waiting map[ID]map[chan struct{}]struct{}
	settled chan struct{} // closed once read is set; nil while nobody waits
	read    Cursor

	turn chan struct{} // full while one of them reads
}

func newWaits() *waits {
	return &waits{waiting: map[ID]map[chan struct{}]struct{}{}, turn: make(chan struct{}, 1)}
}

// join makes a waiter, which is woken when its message has moved to where it may rest.
func (w *waits) join(id ID) (woken chan struct{}, leave func()) {
	woken = make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 { // nobody has read since the last of them left
		w.settled = make(chan struct{})
	}
	if w.waiting[id] == nil {
		w.waiting[id] = map[chan struct{}]struct{}{}
	}
	w.waiting[id][woken] = struct{}{}
	return woken, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if delete(w.waiting[id], woken); len(w.waiting[id]) == 0 {
			delete(w.waiting, id)
		}
	}
}

// settle returns once there is a place in the log from which somebody reads on.
func (w *waits) settle(ctx context.Context, c *Client) error {
	w.mu.Lock()
	settled := w.settled
	w.mu.Unlock()
	select {
	case <-settled:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
		return w.first(ctx, c, settled)
	}
}

// first begins the reading, in its turn, unless somebody has: what stands before the place, those who wait already would never see.
func (w *waits) first(ctx context.Context, c *Client, settled <-chan struct{}) error {
	select {
	case <-settled:
		return nil
	default:
		return w.begin(ctx, c)
	}
}

// begin lets the reading begin at the head. What stands before it, everybody has to look up afterwards.
func (w *waits) begin(ctx context.Context, c *Client) error {
	var head Cursor
	err := c.patiently(ctx, "wait for messages", func() (err error) {
		head, err = c.Head(ctx)
		return err
	})
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read = head
	select {
	case <-w.settled:
	default:
		close(w.settled)
	}
	return nil
}

// until blocks until the waiter is woken. Meanwhile it reads the log for all, where nobody else does.
func (w *waits) until(ctx context.Context, c *Client, woken <-chan struct{}) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-woken:
			return nil
		case w.turn <- struct{}{}:
			err := w.readOn(ctx, c, woken)
			<-w.turn
			if err != nil {
				return err
			}
		}
	}
}

// readOn reads the log until the waiter itself is woken. Where the log cannot be read on, it begins anew at its head, and everybody looks.
func (w *waits) readOn(ctx context.Context, c *Client, woken <-chan struct{}) error {
	if len(woken) > 0 { // by who had the turn before
		return nil
	}
	for page, err := range c.pages(ctx, w.place(), reading{}) {
		switch {
		case ctx.Err() != nil || errors.Is(err, store.ErrClosed):
			return err
		case err != nil:
			c.opts.Logger.WarnContext(ctx, "the log cannot be read on; those who wait for messages look them up", keyError, err)
			err := w.begin(ctx, c)
			w.wakeAll()
			return err
		}
		w.take(page, c.store.After(page[len(page)-1]))
		if len(woken) > 0 {
			return nil
		}
	}
	return ctx.Err()
}

func (w *waits) place() Cursor {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.read
}

// take wakes those whose messages some events have ended.
func (w *waits) take(page []events.Recorded, read Cursor) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range page {
		if r.Entity.Kind == events.KindMessage && r.From != r.To && rests(r.To) {
			wake(w.waiting[r.Entity.ID])
		}
	}
	w.read = read
}

func (w *waits) wakeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, all := range w.waiting {
		wake(all)
	}
}

func wake(all map[chan struct{}]struct{}) {
	for woken := range all {
		hint(woken)
	}
}
