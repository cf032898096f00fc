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

	// stagedPages bounds how many such commits are made before what is staged is looked at from the beginning again: where more keeps coming, a
	// transaction that has staged early and committed late must not wait for an end of it.
	stagedPages = 20

	// stagedLate is how long a place stays among those that are looked at each time. Those before are looked at every stagedEvery: where an old snapshot
	// is held in the database, each look steps over all that was moved since.
	stagedLate = 5 * time.Second

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
	var seen lookout
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
		f := store.StagedFilter{After: seen.from(began)}
		p, err := c.unstage(context.WithoutCancel(ctx), ctx.Done(), stager, &f) // nobody has to find out what became of it
		if err != nil {
			c.opts.Logger.ErrorContext(ctx, "what is staged was not moved into the log; it is tried again", keyError, err)
		}
		seen.upTo(f.After, began)
		if wait *= 2; p.moved {
			wait = stagedSoon
		}
		wait = min(wait, max(stagedEvery, stagedShare*time.Since(began)))
		timer.Reset(wait)
	}
}

// lookout is up to where somebody has looked.
type lookout struct {
	whole  time.Time // when it was last looked at from the beginning
	turned time.Time // when newer took the place of older
	older  int64     // place that was looked up to stagedLate ago, or before
	newer  int64     // and one not that long ago
}

// from is the place to look behind.
func (s *lookout) from(now time.Time) int64 {
	if now.Sub(s.whole) < stagedEvery {
		return s.older
	}
	s.whole = now
	return 0
}

// upTo takes in that a look has come up to a place.
func (s *lookout) upTo(place int64, now time.Time) {
	if now.Sub(s.turned) >= stagedLate {
		s.older, s.newer, s.turned = s.newer, place, now
	}
}

// pass is what came of moving what is staged.
type pass struct {
	moved bool  // something was
	stays error // why something cannot be; of the first
}

// unstage moves into the log what is staged and passes a filter, in its order, and takes the filter's place on with it, until it has seen all of it, has
// moved many pages or is to stop. What somebody else is about to move it leaves to him, and what cannot be moved stays.
func (c *Client) unstage(ctx context.Context, stop <-chan struct{}, stager store.Stager, f *store.StagedFilter) (p pass, err error) {
	var errs error
	for pages := 0; ; {
		page, more, err := c.stagedAfter(ctx, stager, f, &p)
		if err != nil {
			return p, errors.Join(errs, err)
		}
		moved, err := c.move(ctx, page, &p)
		errs = errors.Join(errs, err)
		if moved {
			p.moved = true
			pages++
		}
		if !more || pages == stagedPages || isClosed(stop) {
			return p, errs
		}
	}
}

func isClosed(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// kept is something that is staged, and whose it is.
type kept struct {
	store.Staged
	actor string
}

// stagedAfter is a page of what is staged behind the filter's place, which it takes on with it. There is more where the page is full. What cannot be
// read is logged, and stays.
func (c *Client) stagedAfter(ctx context.Context, stager store.Stager, f *store.StagedFilter, p *pass) (page []kept, more bool, err error) {
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
			c.stays(ctx, one, err, p)
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
func (c *Client) stays(ctx context.Context, one store.Staged, err error, p *pass) {
	if p.stays == nil {
		p.stays = err
	}
	if c.staged.once(one.Place) {
		c.opts.Logger.ErrorContext(ctx, "staged message cannot enter the log", keyMessage, one.Message, keyError, err)
	}
}

// move moves a page into the log in one commit: a call for each run of one actor's.
func (c *Client) move(ctx context.Context, page []kept, p *pass) (moved bool, err error) {
	if len(page) == 0 {
		return false, nil
	}
	runs := runsOf(page)
	list := make([]store.Call, len(runs))
	for i, run := range runs {
		if list[i], err = c.unstaging(ctx, run); err != nil {
			return false, err
		}
	}
	bounded, cancel := c.within(ctx)
	defer cancel()
	receipts, err := c.store.Decide(bounded, list...)
	if err != nil {
		return false, fmt.Errorf("move what is staged: %w", err)
	}
	var errs error
	for i, receipt := range receipts {
		some := len(receipt.Events) > 0
		if receipt.Err != nil {
			some, err = c.moveEach(ctx, runs[i], receipt.Err, p)
			errs = errors.Join(errs, err)
		}
		c.entered(receipt)
		moved = moved || some
	}
	return moved, errs
}

// runsOf is a page in parts, each of what one actor staged without another's between.
func runsOf(page []kept) (runs [][]kept) {
	from := 0
	for i := range page {
		if i+1 == len(page) || page[i+1].actor != page[i].actor {
			runs, from = append(runs, page[from:i+1]), i+1
		}
	}
	return runs
}

// moveEach moves each of some by itself, since something that one of them is of is damaged: the others must not wait for it.
func (c *Client) moveEach(ctx context.Context, run []kept, refused error, p *pass) (moved bool, err error) {
	if len(run) == 1 {
		c.stays(ctx, run[0].Staged, refused, p)
		return false, nil
	}
	for i := range run {
		some, err := c.move(ctx, run[i:i+1], p)
		if err != nil {
			return moved, err
		}
		moved = moved || some
	}
	return moved, nil
}

// unstaging is the call that moves a run.
func (c *Client) unstaging(ctx context.Context, run []kept) (store.Call, error) {
	bounded, cancel := c.within(ctx)
	defer cancel()
	id, err := c.mint(bounded)
	if err != nil {
		return store.Call{}, err
	}
	list := make([]store.Staged, len(run))
	for i := range run {
		list[i] = run[i].Staged
	}
	return calls.Unstage(calls.Origin{ID: id, Actor: run[0].actor}, list, c.topics.known)
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
		p, err := c.unstage(ctx, ctx.Done(), stager, &store.StagedFilter{Messages: ids})
		switch {
		case err != nil && !errors.Is(err, ErrUnknown):
			return err
		case p.moved:
		case p.stays != nil: // waiting would be in vain
			return p.stays
		case !sleep(ctx, pace.NextBackOff()):
			return ctx.Err()
		}
	}
}
