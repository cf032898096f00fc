package main

import (
	"context"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// actOutcome is what became of a message in an action.
type actOutcome string

const (
	plannedOutcome actOutcome = "planned" // nobody said yes
	doneOutcome    actOutcome = "done"
	refusedOutcome actOutcome = "refused" // the rules leave it alone, and the plan said so
	movedOutcome   actOutcome = "moved"   // it was not as the plan had it any more
	nothingOutcome actOutcome = "nothing" // there is nothing to be done to it
)

// prospect is what would become of a message.
type prospect struct {
	message fsm.Message  // as it is
	becomes events.State // after it; absent where it is refused
	lock    string       // that its claim holds; empty is none
	freed   bool         // the lock's permit comes back with it
	holder  *vital       // who has the claim; nil is nobody
	refusal *fsm.Refusal // why it is left alone

	outcome actOutcome
	late    *fsm.Refusal // why it was left alone although the plan said otherwise
}

// same reports whether a message is as it was, as far as it matters to what is done to it.
func (p prospect) same(q prospect) bool {
	return p.message.Version == q.message.Version && p.becomes == q.becomes && p.freed == q.freed && (p.refusal == nil) == (q.refusal == nil)
}

// foresight is what would become of messages, decided by the same rules over what is read; nothing is written.
type foresight struct {
	name      string // of the command
	otherwise string
	now       time.Time
	list      []prospect
	procs     map[events.ID]process
	names     *events.Names
}

// foresee says what an action would do.
func (x action) foresee(ctx context.Context, s store.Store, ids []events.ID) (*foresight, error) {
	f := &foresight{name: x.name, otherwise: x.otherwise, procs: map[events.ID]process{}}
	shown := slices.Clone(ids)
	for page := range slices.Chunk(ids, maxActed) {
		list, err := x.foreseePage(ctx, s, page)
		if err != nil {
			return nil, err
		}
		f.list = append(f.list, list...)
	}
	for _, p := range f.list {
		if p.holder == nil {
			continue
		}
		id := p.message.Worker
		shown = append(shown, id)
		if _, known := f.procs[id]; known {
			continue
		}
		proc, err := processOf(ctx, s, id)
		if err != nil {
			return nil, err
		}
		f.procs[id] = proc
	}
	f.names = namesFor(shorten(0, shown...))
	var err error
	f.now, err = s.Now(ctx)
	return f, err
}

func (x action) foreseePage(ctx context.Context, s store.Store, ids []events.ID) ([]prospect, error) {
	entities := make([]events.Entity, len(ids))
	for i, id := range ids {
		entities[i] = events.MessageEntity(id)
	}
	staged, err := stagedRows(ctx, s, ids) // first: what leaves that meanwhile has a row
	if err != nil {
		return nil, err
	}
	var rows []store.Row
	var workers []events.ID
	for row, err := range s.Rows(ctx, store.RowFilter{Entities: entities}) {
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
		if row.Worker != (events.ID{}) {
			workers = append(workers, row.Worker)
		}
	}
	staged = slices.DeleteFunc(staged, func(row store.Row) bool { // it was moved meanwhile
		return slices.ContainsFunc(rows, func(kept store.Row) bool { return kept.Entity == row.Entity })
	})
	command := fsm.Operate{IDs: ids, Command: x.command, Force: x.force, After: x.after}
	v, err := readVitals(ctx, s, x.after, workers)
	if err == nil {
		err = v.doubt // what is done is judged by it
	}
	if err != nil {
		return nil, err
	}
	for id := range v.gone {
		command.Gone = append(command.Gone, id)
	}
	return rehearse(ctx, s, rehearsal{command, append(rows, staged...), staged, v})
}

// stagedRows is the rows that messages which are staged would have in the store: whoever acts on them moves them there first.
func stagedRows(ctx context.Context, s store.Store, ids []events.ID) (rows []store.Row, err error) {
	for kept, err := range stagedOf(ctx, s, store.StagedFilter{Messages: ids}) {
		if err != nil {
			return nil, err
		}
		staging, err := calls.Unstaged(kept)
		if err != nil {
			return nil, err
		}
		m := fsm.Message{ID: kept.Message}
		list, err := m.Decide(staging.EnqueueMessage, kept.At)
		if err != nil {
			return nil, err
		}
		for _, event := range list {
			m = m.Evolve(event, kept.At)
		}
		rows = append(rows, calls.Row(&m))
	}
	return rows, nil
}

// rehearsal is a command on messages that is decided without being carried out.
type rehearsal struct {
	command fsm.Operate
	rows    []store.Row // of the messages that have one, or would
	staged  []store.Row // those of them that are not in the store yet
	vitals  *vitals
}

// rehearse decides on each message by itself: two that have one lock are never in one commit.
func rehearse(ctx context.Context, s store.Store, r rehearsal) ([]prospect, error) {
	type part struct {
		call     store.Call
		refusals *[]*fsm.Refusal
	}
	parts := make([]part, len(r.command.IDs))
	var all store.Need
	for i, id := range r.command.IDs {
		one := r.command
		one.IDs = []events.ID{id}
		var err error
		if parts[i].call, parts[i].refusals, err = calls.Operate(calls.Origin{}, one, r.rows); err != nil {
			return nil, err
		}
		need := parts[i].call.Need
		all.Held, all.Locks = append(all.Held, need.Held...), append(all.Locks, need.Locks...)
		all.Permits, all.Beats = append(all.Permits, need.Permits...), append(all.Beats, need.Beats...)
	}
	seen, err := peek(ctx, s, all)
	if err != nil {
		return nil, err
	}
	list := make([]prospect, len(parts))
	for i, p := range parts {
		view := seen.of(p.call.Need)
		for _, row := range r.staged {
			if row.Entity.ID == r.command.IDs[i] {
				view.Rows[row.Entity] = row
			}
		}
		changes, err := p.call.Fn(view)
		if err != nil {
			return nil, err
		}
		if list[i], err = r.prospect(r.command.IDs[i], view, changes); err != nil {
			return nil, err
		}
		if list[i].refusal = (*p.refusals)[0]; list[i].refusal != nil {
			list[i].becomes, list[i].outcome = events.Absent, refusedOutcome
		}
	}
	return list, nil
}

// prospect is what a rule said of a message.
func (r rehearsal) prospect(id events.ID, view store.View, changes store.Changes) (prospect, error) {
	entity := events.MessageEntity(id)
	m, err := messageIn(view, entity)
	p := prospect{message: m, outcome: plannedOutcome}
	for _, c := range changes.Rows {
		if c.Row.Entity == entity {
			p.becomes = c.Row.State
		}
	}
	if m.LockToken != 0 {
		p.lock = m.Lock
		p.freed = slices.ContainsFunc(changes.Permits, func(c store.PermitChange) bool {
			return c.Back && c.Permit.PermitKey == store.PermitKey(m.Permit())
		})
	}
	if m.Worker != (events.ID{}) {
		holder := r.vitals.of(m.Worker)
		p.holder = &holder
	}
	return p, err
}

// outcomes counts what became of the messages.
func (f *foresight) outcomes() map[actOutcome]int {
	n := map[actOutcome]int{}
	for _, p := range f.list {
		n[p.outcome]++
	}
	return n
}
