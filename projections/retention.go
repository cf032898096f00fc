package projections

import (
	"time"

	"github.com/foundling-go/foundling/events"
)

// Pruning is one time that the beginning of the log was let go. Its mark is that of the event that says so.
type Pruning struct {
	Mark
	Through   int64         // the position of the last event that went
	UntilAt   time.Time     // when the last commit that went was decided
	Events    int           // how many went
	Total     int           // how many ever went
	Retention time.Duration // how old what went had to be; 0 where somebody gave a time
	Decider   events.ID     // who did it, or was asked to
	By        string        // who asked; empty where the beat did it
	Detail    string
}

// recentPrunings is how many are kept.
const recentPrunings = 16

// Retention adds up what was let go of the log. Its zero is the beginning of the log.
type Retention struct {
	asOf   Mark
	recent []Pruning
}

// Apply takes the next event.
func (p *Retention) Apply(r events.Recorded) {
	if !p.asOf.pass(r) {
		return
	}
	if e, ok := r.Event.(*events.LogPruned); ok {
		p.recent = latest(p.recent, Pruning{
			Mark: markOf(r), Through: e.Through, UntilAt: e.UntilAt, Events: e.Events, Total: e.Total,
			Retention: e.Retention, Decider: e.Decider, By: e.By, Detail: e.Detail,
		}, recentPrunings)
	}
}

// AsOf is the last event that was applied.
func (p *Retention) AsOf() Mark { return p.asOf }

// Last is the last time that something was let go; its zero is that nothing ever was.
func (p *Retention) Last() Pruning {
	if len(p.recent) == 0 {
		return Pruning{}
	}
	return p.recent[len(p.recent)-1]
}

// Recent is the last times, the oldest first.
func (p *Retention) Recent() []Pruning { return append([]Pruning(nil), p.recent...) }
