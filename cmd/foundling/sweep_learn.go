package main

import (
	"bytes"
	"context"
	"slices"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// deceased is a worker that a sweep held to be dead, with what was given back.
type deceased struct {
	id       events.ID
	process  process
	vital    vital
	messages []givenBack
	locks    []string // that came free without a message
}

// givenBack is a message that a dead worker held.
type givenBack struct {
	id      events.ID
	topic   string
	attempt int
	most    int          // attempts that it has
	becomes events.State // what became of it; absent in a plan
	lock    string       // that came free with it; empty is none
}

// learn reads from the log what the sweep did: all that was decided by its incarnation since.
func (w *swept) learn(ctx context.Context, s store.Store, before store.Cursor) error {
	dead := map[events.ID]*deceased{}
	known := func(e events.Evidence) *deceased {
		d := dead[e.Claimer]
		if d == nil {
			d = &deceased{id: e.Claimer, vital: vitalOf(e)}
			dead[e.Claimer] = d
		}
		return d
	}
	orphans := map[events.Entity]*deceased{} // messages and locks between the two events of a commit
	for r, err := range s.Read(ctx, before, store.Filter{}) {
		if err != nil {
			return err
		}
		switch e := r.Event.(type) {
		case *events.WorkerLost:
			if e.Evidence.Decider == w.report.Worker {
				known(e.Evidence)
			}
		case *events.MessageOrphaned:
			if e.Evidence.Decider == w.report.Worker {
				orphans[r.Entity] = known(e.Evidence)
			}
		case *events.MessageRequeued, *events.MessageDeadLettered:
			if d := orphans[r.Entity]; d != nil {
				delete(orphans, r.Entity)
				d.messages = append(d.messages, givenBack{id: r.Entity.ID, becomes: r.To})
			}
		case *events.LockOrphaned:
			if e.Evidence.Decider == w.report.Worker {
				d := known(e.Evidence)
				d.locks = append(d.locks, r.Entity.Name)
			}
		}
	}
	for _, d := range dead {
		w.dead = append(w.dead, *d)
	}
	return w.complete(ctx, s)
}

// vitalOf is what the log says of a worker's death.
func vitalOf(e events.Evidence) vital {
	m := fsm.Member{Worker: e.Claimer, LastBeatAt: e.LastBeatAt, Interval: e.Interval, FenceAfter: e.FenceAfter}
	return vital{member: m, dead: e.Reason, age: e.Age, after: m.Bound(e.After)}
}

// learnPlan reads what those hold who would be held to be dead.
func (w *swept) learnPlan(ctx context.Context, s store.Store) error {
	ids := make([]events.ID, len(w.report.Dead))
	for i, d := range w.report.Dead {
		ids[i] = d.ID
	}
	v, err := readVitals(ctx, s, w.after, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		d := deceased{id: id, vital: v.of(id)}
		for row, err := range s.Rows(ctx, store.RowFilter{Kind: events.KindMessage, Worker: id}) {
			if err != nil {
				return err
			}
			m, err := calls.Message(row)
			if err != nil {
				return err
			}
			d.messages = append(d.messages, givenBack{id: m.ID})
		}
		for p, err := range s.Permits(ctx, store.PermitFilter{Worker: id}) {
			if err != nil {
				return err
			}
			d.locks = append(d.locks, p.Lock)
		}
		w.dead = append(w.dead, d)
	}
	return w.complete(ctx, s)
}

// complete finds out what the dead and their messages were.
func (w *swept) complete(ctx context.Context, s store.Store) error {
	slices.SortFunc(w.dead, func(a, b deceased) int { return bytes.Compare(a.id[:], b.id[:]) })
	var shown []events.ID
	for i := range w.dead {
		d := &w.dead[i]
		shown = append(shown, d.id)
		var err error
		if d.process, err = processOf(ctx, s, d.id); err != nil {
			return err
		}
		for j := range d.messages {
			shown = append(shown, d.messages[j].id)
			if err := d.look(ctx, s, &d.messages[j]); err != nil {
				return err
			}
		}
	}
	w.names = w.inFull(namesFor(shorten(0, shown...)))
	var err error
	w.now, err = s.Now(ctx)
	return err
}

// look reads what the log says of a message that the dead one held.
func (d *deceased) look(ctx context.Context, s store.Store, m *givenBack) error {
	lock := ""
	for r, err := range logOf(ctx, s, store.Filter{Entity: events.MessageEntity(m.id)}) {
		if err != nil {
			return err
		}
		switch e := r.Event.(type) {
		case *events.MessageEnqueued:
			m.topic, m.most, lock = e.Topic, fsm.MaxAttempts(e.Limits), e.Lock
		case *events.MessageClaimed:
			if e.Worker == d.id { // others may have claimed it since
				m.attempt = e.Attempt
			}
		}
	}
	if i := slices.Index(d.locks, lock); i >= 0 && lock != "" {
		m.lock = lock
		d.locks = slices.Delete(d.locks, i, i+1)
	}
	return nil
}
