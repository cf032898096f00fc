package runner

import (
	"context"
	"time"

	"github.com/foundling-go/foundling/store"
)

// Keep says how much of a projection's history stays. Its zero is the defaults; below zero is none.
type Keep struct {
	Newest int // checkpoints that are all kept; 0 is 100, and one always is
	Hours  int // for how many hours before the newest checkpoint the last one of each is kept; 0 is 48
	Days   int // for how many days before it the last one of each is kept; 0 is 90
}

func (k Keep) withDefaults() Keep {
	for _, n := range []struct {
		value *int
		usual int
	}{{&k.Newest, 100}, {&k.Hours, 48}, {&k.Days, 90}} {
		if *n.value == 0 {
			*n.value = n.usual
		}
	}
	return Keep{max(k.Newest, 1), max(k.Hours, 0), max(k.Days, 0)}
}

// thinEvery is after how many saves the history is thinned: so many checkpoints more than Keep says may be there.
const thinEvery = 16

// thin drops what is not to be kept of a projection's checkpoints: of a version, and of those before it.
func thin(ctx context.Context, shelf store.Shelf, of store.CheckpointKey, k Keep) error {
	list, err := listed(ctx, shelf, store.CheckpointFilter{Name: of.Name})
	if err != nil {
		return err
	}
	var drop []store.CheckpointKey
	var now time.Time // when the newest checkpoint of the version was saved
	for _, c := range list {
		if c.Version == of.Version {
			now = c.At
		}
	}
	for first := 0; first < len(list); {
		last := first
		for last < len(list) && list[last].Version == list[first].Version {
			last++
		}
		if one := list[first:last]; one[0].Version <= of.Version {
			drop = append(drop, k.surplus(one, now)...)
		}
		first = last
	}
	if len(drop) == 0 {
		return nil
	}
	return shelf.Drop(ctx, drop...)
}

// surplus is those of a version's checkpoints, the oldest first, that are not to be kept. now is when the newest of all was saved.
func (k Keep) surplus(list []store.Checkpoint, now time.Time) []store.CheckpointKey {
	var drop []store.CheckpointKey
	if now.Sub(list[len(list)-1].At) > time.Duration(k.Days)*24*time.Hour { // an older version that nobody runs any more
		for _, c := range list {
			drop = append(drop, c.CheckpointKey)
		}
		return drop
	}
	dense := max(0, len(list)-k.Newest)
	for i, c := range list[:dense] {
		next := list[i+1]
		if !k.marks(c, next, now) {
			drop = append(drop, c.CheckpointKey)
		}
	}
	return drop
}

// marks reports whether a checkpoint is the last one of an hour or a day that is kept. next is the one behind it.
func (k Keep) marks(c, next store.Checkpoint, now time.Time) bool {
	age := now.Sub(c.At)
	for _, span := range []struct {
		length time.Duration
		count  int
	}{{time.Hour, k.Hours}, {24 * time.Hour, k.Days}} {
		last := !c.At.Truncate(span.length).Equal(next.At.Truncate(span.length))
		if last && age <= time.Duration(span.count)*span.length {
			return true
		}
	}
	return false
}
