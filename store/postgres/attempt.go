package postgres

import (
	"bytes"
	"fmt"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/jackc/pgx/v5/pgxpool"
)

// attempt is one transaction of a Decide: what it holds, what it knows of it, and what its calls have changed. The tables see that at the end.
type attempt struct {
	s     *Store
	plan  *plan
	conn  *pgxpool.Conn
	blind bool   // nothing was read: what callers know must be right
	looks bool   // nothing is held: it is a glance
	span  span   // of the log, in which its events are to lie
	start string // of the server, which must be the one that it began with

	now     time.Time
	fence   int64
	pruned  pruned
	dropped time.Time // ids up to then were dropped
	guarded logState  // where nothing was read: what must still be so
	number  int64     // of the transaction, once it is drawn

	cells      map[events.Entity]*cell
	keys       map[store.Key]*keyCell
	permits    map[store.PermitKey]*permitCell
	used       map[store.CommitID]usedID
	calls      map[store.CommitID]bool // that were decided here and change something
	pages      pages
	moved      moved
	offered    stretch // what the call that is being decided may prune
	untold     []untold
	beheaded   []beheaded
	unprunable error // why the call may prune nothing
	repeated   map[store.CommitID]store.Receipt
	unheldSet  map[events.Entity]bool // that a view may have without their being held: they must not have moved
	staged     map[int64]bool         // places of what is staged and held, and was not moved by a call before

	dirty        []*cell
	deltas       map[string]int // of topics that were not read
	dirtyKeys    []*keyCell
	dirtyPermits []*permitCell
	payloads     []*cell
	results      []result
	snapshots    []toldAt
	events       int
	log          []*store.Recording
	fills        []fill
	erase        []store.Erasure
	unstaged     []int64 // places of what goes, since it was moved
	prune        stretch
	woken        []string
	ended        []events.ID // workers that have no row any more
}

// cell is an entity as the transaction has it.
type cell struct {
	entity  events.Entity
	row     store.Row // where it is kept; with its payload where that was read or given
	place   int64     // of a message: the position of its first event; 0 where that is not written yet
	ordinal int       // of that event among those of the transaction, where it is not written yet
	from    int       // the version of its row in the table
	delta   int       // of a topic: what its count moved by
	kept    bool      // the entity has a row now
	stored  bool      // its table has a row
	dirty   bool
	known   bool // it was looked up, so that no row means no row
	held    bool // nobody else can change it before the commit
	alone   bool // nor hold it

	history []events.Recorded // of what has no row
	told    bool              // history was read
	err     error             // its row or its history is not what was written
}

type keyCell struct {
	store.KeyChange
	dirty bool
	err   error // it is not what was written
}

// permitCell is a permit as the transaction has it.
type permitCell struct {
	store.Permit
	out    bool // it is out now
	stored bool // its table has a row
	dirty  bool
	known  bool  // it was looked up
	err    error // its row is not what was written
}

// result is the result of a message, and which of the transaction's events it came with.
type result struct {
	ordinal int
	*store.Payload
}

// toldAt is an event that says all of its entity's state.
type toldAt struct {
	ordinal int
	entity  events.Entity
}

func newAttempt(s *Store, p *plan) *attempt {
	return &attempt{
		s: s, plan: p, span: s.ranges.current(), start: s.epochs.of(),
		cells: map[events.Entity]*cell{}, keys: map[store.Key]*keyCell{}, permits: map[store.PermitKey]*permitCell{},
		used: map[store.CommitID]usedID{}, calls: map[store.CommitID]bool{}, deltas: map[string]int{}, unheldSet: map[events.Entity]bool{}, staged: map[int64]bool{},
		pages: newPages(), moved: newMoved(),
	}
}

// close gives the connection back.
func (a *attempt) close() {
	if a.conn != nil {
		a.s.release(a.conn)
		a.conn = nil
	}
}

// foresee takes what calls know for what is so. It is false where they must see more than that.
func (a *attempt) foresee(calls []store.Call) bool {
	if a.s.ranges.older(a.span) && a.span.begun.IsZero() {
		return false
	}
	for i := range calls {
		need := &calls[i].Need
		if len(need.Held)+len(need.Claim)+len(need.Claims)+len(need.Uncounted)+len(need.Keys)+len(need.Locks)+len(need.Permits)+
			len(need.Holders)+len(need.Beats)+len(need.Staged) > 0 || need.Prune != (store.Prunable{}) {
			return false
		}
		for j := range need.Known {
			row := &need.Known[j]
			if row.Entity.Kind != events.KindMessage || row.Version == 0 || a.cells[row.Entity] != nil {
				return false
			}
			a.cells[row.Entity] = &cell{
				entity: row.Entity, row: given(*row, row.Payload), from: row.Version, kept: true, stored: true, known: true, held: true,
			}
		}
	}
	return true
}

// blank is the entity's cell, which may be still to be looked up.
func (a *attempt) blank(entity events.Entity) *cell {
	c := a.cells[entity]
	if c == nil {
		c = &cell{entity: entity}
		a.cells[entity] = c
	}
	return c
}

// version is the entity's version as far as the transaction knows it.
func (c *cell) version() int {
	if c.kept {
		return c.row.Version
	}
	for i := len(c.history) - 1; i >= 0; i-- {
		if v := c.history[i].Version; v > 0 {
			return v
		}
	}
	return 0
}

// check makes sure that the changes stand on what the store has. That they do not is a fault of the engine or of the call's Fn.
func (a *attempt) check(changes store.Changes) error {
	var hold errHold
	for i := range changes.Rows {
		change := &changes.Rows[i]
		c := a.blank(change.Row.Entity)
		if !c.known && change.From == 0 && a.trusts(c.entity) {
			continue
		}
		if !a.holds(c) {
			hold.entities = append(hold.entities, c.entity)
			continue
		}
		if c.err != nil {
			return c.err
		}
		if c.gone() {
			return errCut
		}
		if version := c.version(); version != change.From {
			return atFault{fmt.Errorf("change of %s from version %d, it has %d", c.entity, change.From, version)}
		}
	}
	if err := a.checkCounts(changes.Counts, &hold); err != nil {
		return err
	}
	for i := range changes.Permits {
		if c := a.blank(events.LockEntity(changes.Permits[i].Permit.Lock)); !a.holds(c) {
			hold.entities = append(hold.entities, c.entity)
		}
	}
	if len(hold.entities)+len(hold.topics) > 0 {
		return &hold
	}
	return a.checkPermits(changes.Permits)
}

// trusts reports whether an entity that is said to be new is believed to be.
func (a *attempt) trusts(entity events.Entity) bool {
	if entity.Kind != events.KindMessage && entity.Kind != events.KindSweep || a.plan.doubting {
		return false
	}
	return a.s.ranges.trusts(a.span, entity.ID) && !a.pruned.hides(entity.ID, a.now)
}

// holds reports whether a change of the entity may be kept: it was looked up, and nobody else can change it. Whoever changes what others hold too
// (the clock, a topic that they claim from) must have it alone.
func (a *attempt) holds(c *cell) bool {
	if !c.known || !c.held && !a.unheldSet[c.entity] {
		return false
	}
	return c.entity.Kind == events.KindMessage || c.alone
}

// checkCounts makes sure that the rows of topics whose counts move are there. Where rows of topics are held, all are, in their order; where none
// is, they are taken in their order as they are written.
func (a *attempt) checkCounts(counts []store.Count, hold *errHold) error {
	for _, count := range counts {
		c := a.cells[events.TopicEntity(count.Topic)]
		switch {
		case c != nil && c.known && !c.kept && c.err == nil:
			return atFault{fmt.Errorf("count of topic %q: it has no row", count.Topic)}
		case c != nil && c.err != nil:
			return c.err
		case a.pages.rowed[count.Topic]:
		case len(a.pages.rowed) > 0 || c != nil && c.known || a.plan.topics[count.Topic]:
			hold.topics = append(hold.topics, count.Topic)
		}
	}
	return nil
}

// given is a row for a caller or of one, who owns it and shares it with no other.
func given(row store.Row, payload *store.Payload) store.Row {
	row.Fields = bytes.Clone(row.Fields)
	row.Payload = nil
	if payload != nil {
		row.Payload = &store.Payload{Salt: payload.Salt, Bytes: bytes.Clone(payload.Bytes)}
	}
	return row
}
