package foundlingtest

import (
	"fmt"
	"strings"
	"sync"
	"testing/synctest"
	"time"
)

// clock is the store's time.
type clock interface {
	now() time.Time
	// advance lets d go by.
	advance(d time.Duration)
	// settle returns when nothing goes on without more time, as far as that can be known.
	settle()
	// poll is how often a worker that is hinted looks all the same.
	poll() time.Duration
}

// newClock is the clock for where the caller stands.
func newClock(start time.Time) (clock, error) {
	bubble := inBubble()
	switch {
	case bubble && !start.IsZero():
		return nil, fmt.Errorf("options: Start %s in a bubble, whose time it is: leave it zero", start.Format(time.RFC3339))
	case bubble:
		return bubbleClock{}, nil
	case start.IsZero():
		start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return &handClock{at: start.UTC()}, nil
}

// inBubble reports whether the caller runs in a bubble of testing/synctest. Only Wait knows it, by a panic; that of two who wait at once is of a
// bubble as well.
func inBubble() (yes bool) {
	defer func() {
		if p := recover(); p != nil {
			yes = !strings.Contains(fmt.Sprint(p), "not in a bubble")
		}
	}()
	synctest.Wait()
	return true
}

// bubbleClock is the time of the bubble that it is asked in.
type bubbleClock struct{}

func (bubbleClock) now() time.Time          { return time.Now() }
func (bubbleClock) advance(d time.Duration) { time.Sleep(d) }
func (bubbleClock) settle()                 { synctest.Wait() }

// poll is long, since a bubble goes from one timer to the next: a retry after a day must not cost 345,600 looks.
func (bubbleClock) poll() time.Duration { return 24 * time.Hour }

// handClock stands still until it is moved.
type handClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *handClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *handClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func (*handClock) settle() {}

// poll is real time, in which a test ends before it matters.
func (*handClock) poll() time.Duration { return 250 * time.Millisecond }
