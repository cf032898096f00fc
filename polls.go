package foundling

import (
	"sync"
	"time"

	"github.com/foundling-go/foundling/fsm"
)

// polls is the looks for work that the workers of one client make while nothing hints at any. What one of them has looked for and found nothing more
// of, the others need not look for within their own intervals: a hundred idle workers ask the store no more often than one.
type polls struct {
	// turn has who waits with free slots look at once: another had no slots for all that it found. It hands the turn on in the same way, so that as many
	// look as there is work for. One whose topics are others ends that; for what is left then the intervals are good.
	turn chan struct{}

	mu sync.Mutex
	at map[string]time.Time // by topic, when the last claim began that left nothing, as far as is known by now
}

func newPolls() *polls { return &polls{turn: make(chan struct{}, 1), at: map[string]time.Time{}} }

// wakes is why a worker looks for work.
type wakes uint8

const (
	byHint wakes = iota // there may be something that was not there before, or a slot is free that was not
	byTime
	byTurn
)

// wait is how long a worker has to wait with its look since others have looked for the same. Where it is zero the look has begun.
func (p *polls) wait(asks []fsm.Ask, why wakes, interval time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	wait := time.Duration(0)
	if why == byTime {
		wait = interval
		for _, ask := range asks {
			wait = max(0, min(wait, interval-now.Sub(p.at[ask.Topic])))
		}
	}
	if wait == 0 {
		for _, ask := range asks {
			p.at[ask.Topic] = now
		}
	}
	return wait
}

// leaves is where a look has left something, or has failed: nobody may rely on it.
func (p *polls) leaves(asks []fsm.Ask) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, ask := range asks {
		delete(p.at, ask.Topic)
	}
}
