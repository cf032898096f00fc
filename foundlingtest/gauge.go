package foundlingtest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/foundling-go/foundling"
)

// gauge tells by the log and the queue whether there is something to do.
type gauge struct {
	client  *Client
	begun   bool
	after   foundling.Cursor
	seen    int // events
	running map[foundling.ID]struct{}
	paused  map[string]bool
}

// look is what a gauge shows.
type look struct {
	idle bool
	next time.Time // when the next message of the handled topics is due; zero where none waits for time
}

func newGauge(c *Client) *gauge {
	return &gauge{client: c, running: map[foundling.ID]struct{}{}, paused: map[string]bool{}}
}

// look reads the log on to its head and then, where nothing runs, the queues. What it says is true of one time: the log has not grown meanwhile.
func (g *gauge) look() (look, error) {
	for {
		before, err := g.client.Head(ctx())
		if err != nil {
			return look{}, err
		}
		if err := g.read(ctx(), foundling.StopAtHead, func() bool { return false }); err != nil || len(g.running) > 0 {
			return look{}, err
		}
		next, err := g.next()
		if err != nil {
			return look{}, err
		}
		after, err := g.client.Head(ctx())
		if err != nil {
			return look{}, err
		}
		if before == after {
			return look{idle: next.IsZero() || next.After(g.client.Now()), next: next}, nil
		}
	}
}

// follow waits until the log goes on and nothing runs.
func (g *gauge) follow(ctx context.Context) error {
	return g.read(ctx, foundling.StopNever, func() bool { return len(g.running) == 0 || g.seen > maxEvents })
}

// read takes the log in until it stops or that is enough.
func (g *gauge) read(ctx context.Context, stop foundling.Stop, enough func() bool) error {
	if !g.begun {
		oldest, err := g.client.Oldest(ctx)
		if err != nil {
			return err
		}
		g.after, g.begun = oldest, true
	}
	for r, err := range g.client.Events(ctx, g.after, foundling.EventFilter{Stop: stop}) {
		if err != nil {
			return err
		}
		g.after = g.client.After(r)
		g.seen++
		switch kind := r.Entity.Kind.String(); {
		case r.Version == 0: // it moves nothing
		case kind == "message" && r.To == foundling.Running:
			g.running[r.Entity.ID] = struct{}{}
		case kind == "message":
			delete(g.running, r.Entity.ID)
		case kind == "topic":
			g.paused[r.Entity.Name] = r.To.String() == "paused"
		}
		if enough() {
			return nil
		}
	}
	return nil
}

// next is when the first queued message of the handled topics is due.
func (g *gauge) next() (first time.Time, err error) {
	topics := slices.DeleteFunc(g.client.engine.handled(), func(topic string) bool { return g.paused[topic] })
	for _, topic := range topics {
		list := foundling.ListOptions{Topic: topic, States: []foundling.State{foundling.Queued}, Limit: 1000}
		for more := true; more; more = list.After != "" {
			page, err := g.client.List(ctx(), list)
			if err != nil {
				return time.Time{}, err
			}
			if len(page.Unread) > 0 {
				return time.Time{}, fmt.Errorf("messages cannot be read: %w", page.Unread[0])
			}
			for _, m := range page.Messages {
				if first.IsZero() || m.DueAt.Before(first) {
					first = m.DueAt
				}
			}
			list.After = page.Next
		}
	}
	return first, nil
}
