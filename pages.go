package foundling

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// readPage is how many events are read at a time by who follows the log.
const readPage = 5000

// restShare is how many times as long as it has read somebody who follows the log rests at least, up to tailEvery: a log that grows all the time
// is read some pages at a time, not commit by commit.
const restShare = 3

// reading says what of the log is read, and how far.
type reading struct {
	entity events.Entity // its events alone, unless zero
	stop   Stop
}

// pages yields the events behind a cursor, some at a time and never none. A store out of reach is waited for.
func (c *Client) pages(ctx context.Context, after Cursor, r reading) iter.Seq2[[]events.Recorded, error] {
	return func(yield func([]events.Recorded, error) bool) {
		for {
			count, began := c.tail.count(), time.Now()
			var list []events.Recorded
			slow := false
			err := c.patiently(ctx, "read the log", func() (err error) {
				bounded, cancel := c.within(ctx)
				defer cancel()
				list, err = c.readAll(bounded, after, store.Filter{Entity: r.entity, Limit: readPage})
				if slow = err != nil && len(list) > 0 && ctx.Err() == nil && bounded.Err() != nil; slow {
					return nil // it goes on behind what there was time for
				}
				return err
			})
			rested := time.Now().Add(min(restShare*time.Since(began), tailEvery))
			if len(list) > 0 {
				if !yield(list, nil) {
					return
				}
				after = c.store.After(list[len(list)-1])
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if len(list) == readPage || slow {
				continue
			}
			if r.stop == StopAtHead {
				return
			}
			c.tail.wait(ctx, c.store, count)
			sleep(ctx, time.Until(rested))
		}
	}
}

// patiently tries until it works, fails for good, or ctx ends, whose error it then is. What it waits for is logged.
func (c *Client) patiently(ctx context.Context, doing string, try func() error) error {
	pace := retryPace()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := try()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case isFinal(err):
			return err
		}
		c.opts.Logger.ErrorContext(ctx, "store is out of reach; it is tried again", keyDoing, doing, keyError, err)
		sleep(ctx, pace.NextBackOff())
	}
}

// isFinal reports whether an error of a reading would come again.
func isFinal(err error) bool {
	for _, class := range []error{
		store.ErrPruned, store.ErrCursor, store.ErrAhead, store.ErrClosed, store.ErrForeign, store.ErrNewer, ErrNotFound, ErrInvalid, errBeginningLost,
	} {
		if errors.Is(err, class) {
			return true
		}
	}
	return isCorrupt(err)
}
