package foundling

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// This file moves into the log what was staged in transactions of users' own. The row goes in the commit that appends the message's event, so that any
// number of processes may move the same, and an answer that was lost needs no settling: who looks again finds the row, or does not.
const (
	// stagedPage and stagedBytes bound what one commit moves.
	stagedPage  = 500
	stagedBytes = 8 << 20

	// While something comes it is looked for every stagedSoon, ever less often while nothing does, down to every stagedEvery, and less often still
	// where a look in vain takes long: no more than one part in stagedShare of the time goes into such looks.
	stagedSoon  = 10 * time.Millisecond
	stagedEvery = time.Second
	stagedShare = 20

	// stagedTold bounds how many staged messages are remembered to have been logged.
	stagedTold = 1000
)

// staging is what a client knows of what is staged. However many of its workers claim, one of them looks.
type staging struct {
	turn chan struct{} // full while somebody looks over and over

	mu   sync.Mutex
	told map[int64]struct{} // places of what cannot be moved, and was logged
}

func newStaging() *staging { return &staging{turn: make(chan struct{}, 1), told: map[int64]struct{}{}} }

// once reports whether what is at a place is still to be logged.
func (s *staging) once(place int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, told := s.told[place]; told {
		return false
	}
	if len(s.told) == stagedTold {
		clear(s.told)
	}
	s.told[place] = struct{}{}
	return true
}

// stagedLoop moves what is staged until ctx ends, while nobody else of the client does. Claims pay nothing for it: it looks by itself, at hints and as
// time goes by.
func (c *Client) stagedLoop(ctx context.Context) {
	stager, ok := store.As[store.Stager](c.store)
	if !ok {
		return
	}
	select {
	case <-ctx.Done():
		return
	case c.staged.turn <- struct{}{}:
	}
	defer func() { <-c.staged.turn }()
	hints, stop := stager.WatchStaged()
	defer stop()
	wait := stagedSoon
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hints:
		case <-timer.C:
		}
		began := time.Now()
		moved, err := c.unstage(context.WithoutCancel(ctx), stager) // nobody has to find out what became of it
		if err != nil {
			c.opts.Logger.ErrorContext(ctx, "what is staged was not moved into the log; it is tried again", keyError, err)
		}
		if wait *= 2; moved {
			wait = stagedSoon
		}
		wait = min(wait, max(stagedEvery, stagedShare*time.Since(began)))
		timer.Reset(wait)
	}
}

// unstage moves what is staged into the log, or of it what some messages are to be, in its order, until it has seen all of it. What somebody else is
// about to move it leaves to him, and what cannot be moved stays. It is false where nothing was moved.
func (c *Client) unstage(ctx context.Context, stager store.Stager, ids ...ID) (moved bool, err error) {
	f := store.StagedFilter{Messages: ids}
	var errs error
	for {
		page, more, err := c.stagedAfter(ctx, stager, &f)
		if err != nil {
			return moved, errors.Join(errs, err)
		}
		some, err := c.move(ctx, page)
		moved, errs = moved || some, errors.Join(errs, err)
		if !more {
			return moved, errs
		}
	}
}

// kept is something that is staged, and whose it is.
type kept struct {
	store.Staged
	actor string
}

// stagedAfter is a page of what is staged behind the filter's place, which it takes on with it. There is more where the page is full. What cannot be
// read is logged, and stays.
func (c *Client) stagedAfter(ctx context.Context, stager store.Stager, f *store.StagedFilter) (page []kept, more bool, err error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	bytes := 0
	for one, err := range stager.Staged(ctx, *f) {
		var draft calls.Staging
		if err == nil {
			draft, err = calls.Unstaged(one)
		}
		if err != nil && !isCorrupt(err) {
			return nil, false, err
		}
		f.After = max(f.After, one.Place)
		if err != nil {
			c.stays(ctx, one, err)
			continue
		}
		page = append(page, kept{one, draft.Actor})
		if bytes += len(one.Payload.Bytes); len(page) == stagedPage || bytes >= stagedBytes {
			return page, true, nil
		}
	}
	return page, false, nil
}

// stays logs once that something cannot be moved.
func (c *Client) stays(ctx context.Context, one store.Staged, err error) {
	if c.staged.once(one.Place) {
		c.opts.Logger.ErrorContext(ctx, "staged message cannot enter the log", keyMessage, one.Message, keyError, err)
	}
}

// move moves a page into the log in one commit: a call for each run of one actor's.
func (c *Client) move(ctx context.Context, page []kept) (moved bool, err error) {
	if len(page) == 0 {
		return false, nil
	}
	var runs [][]store.Staged
	var list []store.Call
	for len(page) > 0 {
		var run []store.Staged
		actor := page[0].actor
		for len(page) > 0 && page[0].actor == actor {
			run, page = append(run, page[0].Staged), page[1:]
		}
		call, err := c.unstaging(ctx, actor, run)
		if err != nil {
			return false, err
		}
		runs, list = append(runs, run), append(list, call)
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	receipts, err := c.store.Decide(ctx, list...)
	if err != nil {
		return false, fmt.Errorf("move what is staged: %w", err)
	}
	var errs error
	for i, receipt := range receipts {
		some := len(receipt.Events) > 0
		if receipt.Err != nil {
			some, err = c.moveEach(ctx, list[i].Command.Actor, runs[i], receipt.Err)
			errs = errors.Join(errs, err)
		}
		c.entered(receipt)
		moved = moved || some
	}
	return moved, errs
}

// moveEach moves each of some by itself, since something that one of them is of is damaged: the others must not wait for it.
func (c *Client) moveEach(ctx context.Context, actor string, run []store.Staged, refused error) (moved bool, err error) {
	if len(run) == 1 {
		c.stays(ctx, run[0], refused)
		return false, nil
	}
	for _, one := range run {
		some, err := c.move(ctx, []kept{{one, actor}})
		if err != nil {
			return moved, err
		}
		moved = moved || some
	}
	return moved, nil
}

// unstaging is the call that moves a run.
func (c *Client) unstaging(ctx context.Context, actor string, run []store.Staged) (store.Call, error) {
	id, err := c.mintCommit(ctx)
	if err != nil {
		return store.Call{}, err
	}
	return calls.Unstage(calls.Origin{ID: id, Actor: actor}, run, c.topics.known)
}

// mintCommit makes the id of a commit that nobody has to find again, without asking for the time where the store knows it by itself.
func (c *Client) mintCommit(ctx context.Context) (ID, error) {
	if stager, ok := store.As[store.Stager](c.store); ok {
		if near := stager.Near(); !near.IsZero() {
			return c.source.ID(near)
		}
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	return c.mint(ctx)
}

// entered takes in what was moved.
func (c *Client) entered(receipt store.Receipt) {
	c.committed(receipt)
	for _, r := range receipt.Events {
		if r.Entity.Kind == events.KindTopic {
			c.topics.learn(r.Entity.Name)
		}
	}
}

// unstageThese moves messages into the log that are staged, and returns when none of them is any more, whoever moved it.
func (c *Client) unstageThese(ctx context.Context, ids ...ID) error {
	stager, ok := store.As[store.Stager](c.store)
	if !ok || len(ids) == 0 {
		return nil
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	pace := retryPace()
	for {
		left := false
		for _, err := range stager.Staged(ctx, store.StagedFilter{Messages: ids, Limit: 1}) {
			if left = true; err != nil {
				return err
			}
		}
		if !left {
			return nil
		}
		moved, err := c.unstage(ctx, stager, ids...)
		if err != nil && !errors.Is(err, ErrUnknown) {
			return err
		}
		if !moved && !sleep(ctx, pace.NextBackOff()) {
			return ctx.Err()
		}
	}
}
