package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/projections/findings"
	"github.com/foundling-go/foundling/store"
)

// vitals is what a store can tell of who lives, at one time. Whoever asks judges by the rule that a sweep judges by.
type vitals struct {
	now   time.Time
	after time.Duration // how old a heartbeat may be before its worker counts as dead
	clock fsm.Clock
	beats map[events.ID]store.Beat
	gone  map[events.ID]bool // proven to have ended
	doubt error              // what could not be read of some, and concerns no other; nil as a rule
}

// readVitals asks the store for the newest heartbeats, and which of the workers are proven to have ended.
func readVitals(ctx context.Context, s store.Store, after time.Duration, workers []events.ID) (*vitals, error) {
	v := &vitals{after: after, beats: map[events.ID]store.Beat{}, gone: map[events.ID]bool{}}
	if heart, ok := store.As[store.Heart](s); ok {
		beats, err := heart.Beats(ctx)
		if err != nil && len(beats) == 0 {
			return nil, err
		}
		v.doubt = err
		for _, b := range beats {
			v.beats[b.Worker] = b
		}
	}
	if watcher, ok := store.As[store.ProcessWatcher](s); ok {
		gone, err := watcher.Gone(ctx, workers...)
		v.doubt = errors.Join(v.doubt, err)
		for _, id := range gone {
			v.gone[id] = true
		}
	}
	var err error
	if v.clock, err = calls.Clock(ctx, s); err != nil {
		return nil, err
	}
	v.now, err = s.Now(ctx) // last: no heartbeat that was read is newer
	return v, err
}

// warnings is what could not be read, a line each.
func (v *vitals) warnings() []string {
	if v.doubt == nil {
		return nil
	}
	return strings.Split(v.doubt.Error(), "\n")
}

// age is how long ago something was stored.
func (v *vitals) age(then time.Time) time.Duration { return v.clock.Age(v.now, then) }

// vital is whether a worker lives, by which evidence.
type vital struct {
	member fsm.Member
	dead   events.Reason // why it is held to be dead; empty where it lives
	age    time.Duration // of its last heartbeat, as it is judged by
	after  time.Duration // how old that may be, by every bound on it
}

// of judges a worker.
func (v *vitals) of(worker events.ID) vital {
	m := calls.Member(v.beats[worker])
	m.Worker, m.Gone = worker, v.gone[worker]
	x := vital{member: m, dead: fsm.Judge(m, events.Thresholds{After: v.after}, v.clock, v.now), after: m.Bound(v.after)}
	if !m.LastBeatAt.IsZero() {
		x.age = m.Silence(v.clock, v.now)
	}
	return x
}

// text is what a person is told of whether a worker lives. It begins with the answer.
func (x vital) text() string {
	switch x.dead {
	case events.ReasonProcessGone:
		return "dead: its process has ended"
	case events.ReasonNoHeartbeat:
		return "dead: it has no heartbeat"
	case "":
		text := fmt.Sprintf("alive: heartbeat %s ago", findings.Span(x.age))
		if x.age > findings.SilentAfter*x.member.Interval {
			text += fmt.Sprintf(", dead after %s", findings.Span(x.after))
		}
		return text
	}
	return fmt.Sprintf("dead: silent for %s, more than %s", findings.Span(x.age), findings.Span(x.after))
}

// jsonVital is whether a worker lives as JSON has it.
type jsonVital struct {
	Alive        bool     `json:"alive"`
	Evidence     string   `json:"evidence"` // heartbeat, process_gone, silent or no_heartbeat
	HeartbeatAge *float64 `json:"heartbeat_age_seconds"`
	DeadAfter    *float64 `json:"dead_after_seconds"`
}

func (x vital) json() jsonVital {
	j := jsonVital{Alive: x.dead == "", Evidence: string(x.dead), DeadAfter: seconds(x.after)}
	if j.Alive {
		j.Evidence = "heartbeat"
	}
	if !x.member.LastBeatAt.IsZero() {
		j.HeartbeatAge = seconds(x.age)
	}
	return j
}
