package main

import (
	"context"
	"sync"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// beats is what was seen of a process's heartbeats. The times are in nanoseconds.
type beats struct {
	Count  int           `json:"count"`  // confirmed
	Late   time.Duration `json:"late"`   // the longest time by which one was confirmed after it was due
	Engine time.Duration `json:"engine"` // the same without the time in which the machine did not let this process run
}

// heart is a store that measures its heartbeats. One is due an interval after the last that was confirmed was sent, whatever the worker
// did meanwhile.
type heart struct {
	store.Store
	store.Heart
	pace pace
	mu   sync.Mutex
	sent map[events.ID]moment // the last that was confirmed
	seen beats
}

func newHeart(s store.Store, inner store.Heart) *heart {
	return &heart{Store: s, Heart: inner, pace: pace{last: time.Now()}, sent: map[events.ID]moment{}}
}

// Unwrap is the store behind the decorator.
func (h *heart) Unwrap() store.Store { return h.Store }

// Beat implements store.Heart.
func (h *heart) Beat(ctx context.Context, b store.Beat) (time.Time, error) {
	sent := h.pace.now()
	at, err := h.Heart.Beat(ctx, b)
	ended := h.pace.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if last, ok := h.sent[b.Worker]; ok {
		late := ended.at.Sub(last.at) - b.Interval
		h.seen.Late = max(h.seen.Late, late)
		h.seen.Engine = max(h.seen.Engine, late-(ended.held-last.held))
	}
	if err != nil {
		return at, err
	}
	h.seen.Count++
	h.sent[b.Worker] = sent
	return at, nil
}

// sum is what was seen until now.
func (h *heart) sum() beats {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen
}

// pace measures for how long the machine does not let this process run, by a tick that does nothing and comes late all the same: other
// processes have the processor, or this one is stopped. What waits for a lock or for the disk does not slow it.
type pace struct {
	mu   sync.Mutex
	last time.Time     // the newest tick
	held time.Duration // until then
}

// moment is a time and for how long the process was held up until then.
type moment struct {
	at   time.Time
	held time.Duration
}

const (
	tick = 10 * time.Millisecond
	// slack is how late a tick may be on a machine that has time.
	slack = 20 * time.Millisecond
)

// run ticks until ctx ends.
func (p *pace) run(ctx context.Context) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		m := p.now()
		p.mu.Lock()
		p.last, p.held = m.at, m.held
		p.mu.Unlock()
	}
}

func (p *pace) now() moment {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := moment{time.Now(), p.held}
	if late := m.at.Sub(p.last) - tick; late > slack {
		m.held += late
	}
	return m
}
