package postgres

import (
	"fmt"
	"slices"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// viewer makes the view of one call, of what its transaction holds.
type viewer struct {
	*attempt
	view  store.View
	seen  map[store.PermitKey]bool // permits that the view has
	waits []string                 // locks whose waiters it is to have
}

// see gives a call what it needs. It is errCut where the tables do not show what earlier calls of the transaction have changed of it.
func (a *attempt) see(need *store.Need) (store.View, error) {
	if err := askable(need); err != nil {
		return store.View{}, atFault{err}
	}
	v := &viewer{attempt: a, view: store.View{
		Now: a.now, Rows: make(map[events.Entity]store.Row, len(need.Held)+len(need.Known)), History: map[events.Entity][]events.Recorded{},
		Claimable: map[string][]store.Row{}, Claims: map[events.ID][]store.Row{}, Uncounted: map[string][]store.Row{},
		Keys: make(map[store.Key]store.KeyRow, len(need.Keys)), Waiting: map[string][]store.Row{}, PrunedAt: a.pruned.at,
	}}
	if a.fence > 0 {
		v.view.Fence = events.Token(a.fence + int64(a.events) + 1) // each permit is an event at least
	}
	for _, hold := range []func(*store.Need) error{v.holdNamed, v.holdClaimable, v.holdPages, v.holdLocks, v.holdWaiters, v.holdPrunable, v.holdStaged} {
		if err := hold(need); err != nil {
			return v.view, err
		}
	}
	return v.view, nil
}

// holdNamed holds what is named by id.
func (v *viewer) holdNamed(need *store.Need) error {
	for _, entity := range need.Held {
		if err := v.hold(entity); err != nil {
			return err
		}
	}
	for i := range need.Known {
		if err := v.hold(need.Known[i].Entity); err != nil {
			return err
		}
	}
	for _, key := range need.Keys {
		k := v.keys[key]
		if k.err != nil {
			return k.err
		}
		if k.Row != (store.KeyRow{}) {
			v.view.Keys[key] = k.Row
		}
	}
	for _, worker := range need.Beats {
		if err := v.holdBeat(worker); err != nil {
			return err
		}
	}
	return nil
}

// holdBeat gives a heartbeat, where there is one. Whoever judges by heartbeats judges nothing without those that are damaged.
func (v *viewer) holdBeat(worker events.ID) error {
	b, ok := v.pages.beats[worker]
	if !ok {
		return nil
	}
	if b.err != nil {
		return atFault{fmt.Errorf("heartbeats: %w", b.err)}
	}
	if v.view.Beats == nil {
		v.view.Beats = map[events.ID]store.Beat{}
	}
	v.view.Beats[worker] = b.Beat
	return nil
}

func (v *viewer) hold(entity events.Entity) error {
	c := v.blank(entity)
	if c.err != nil {
		return c.err
	}
	if c.gone() {
		return errCut
	}
	v.take(c)
	return nil
}

// take gives the view an entity that was looked up.
func (v *viewer) take(c *cell) {
	switch {
	case c.kept:
		v.view.Rows[c.entity] = c.row
	case len(c.history) > 0:
		v.view.History[c.entity] = c.history
	}
}

// holdTopic holds the row of a topic, if it has one.
func (v *viewer) holdTopic(topic string) error {
	c := v.blank(events.TopicEntity(topic))
	if c.err != nil {
		return c.err
	}
	if c.kept {
		v.view.Rows[c.entity] = c.row
	}
	return nil
}

// holdClaimable gives the first n due messages of each topic, with their locks. Messages whose lock somebody else has are left to the next claim.
func (v *viewer) holdClaimable(need *store.Need) error {
	for _, page := range need.Claim {
		if err := v.holdTopic(page.Topic); err != nil {
			return err
		}
		if v.moved.due[page.Topic] {
			return errCut
		}
		list := []store.Row{}
		missed := false
		for _, c := range v.pages.claimable[page.Topic] {
			if len(list) == page.N {
				break
			}
			if c.dirty {
				missed = true
			} else if v.lockable(c) {
				if err := v.holdLockOf(&c.row); err != nil {
					return err
				}
				list = append(list, c.row)
			}
		}
		if len(list) < page.N && missed && v.pages.cut[page.Topic] {
			return errCut
		}
		v.view.Claimable[page.Topic] = list
	}
	return nil
}

// lockable reports whether a message's lock can be decided on. One whose lock is not what was written cannot be granted, and what stands behind it
// goes on.
func (v *viewer) lockable(c *cell) bool {
	if c.row.Lock == "" {
		return true
	}
	lock := v.blank(events.LockEntity(c.row.Lock))
	return lock.held && lock.err == nil
}

// holdLockOf gives the lock of a claimable message, and who waits for it where the message is the one that was sent to try.
func (v *viewer) holdLockOf(row *store.Row) error {
	if row.Lock == "" {
		return nil
	}
	if row.Waiting == store.Trying {
		v.waits = append(v.waits, row.Lock)
	}
	return v.hold(events.LockEntity(row.Lock))
}

// holdPages gives what else is selected among messages.
func (v *viewer) holdPages(need *store.Need) error {
	for _, page := range need.Uncounted {
		if err := v.holdTopic(page.Topic); err != nil {
			return err
		}
		if v.moved.claimed[page.Topic] {
			return errCut
		}
		v.view.Uncounted[page.Topic] = rowsOf(v.pages.uncounted[page.Topic], page.N)
	}
	for _, holder := range need.Claims {
		if v.moved.workers[holder.Worker] || v.moved.permitWorkers[holder.Worker] {
			return errCut
		}
		if err := v.holdBeat(holder.Worker); err != nil {
			return err
		}
		if err := v.holdEstate(holder); err != nil {
			return err
		}
	}
	return nil
}

func rowsOf(list []*cell, n int) []store.Row {
	rows := make([]store.Row, min(len(list), max(n, 0)))
	for i := range rows {
		rows[i] = list[i].row
	}
	return rows
}

// holdEstate gives what a worker holds: its claims and their permits, its other permits, and the locks of them all. A permit that is not what was
// written, or whose lock is not, is left out: what else the worker holds must not stay with it for that.
func (v *viewer) holdEstate(holder store.Holder) error {
	claims := rowsOf(v.pages.claims[holder.Worker], holder.N)
	v.view.Claims[holder.Worker] = claims
	var permits []*permitCell
	for i := range claims {
		if row := &claims[i]; row.LockToken != 0 {
			permits = append(permits, v.blankPermit(store.PermitKey{Lock: row.Lock, Token: row.LockToken}))
		}
	}
	others := v.pages.belongs[holder.Worker]
	for _, p := range append(permits, others[:min(len(others), holder.N)]...) {
		lock := v.blank(events.LockEntity(p.Lock))
		if !p.out || p.err != nil || lock.err != nil {
			continue
		}
		if err := v.hold(lock.entity); err != nil {
			return err
		}
		v.holdPermit(p)
		v.waits = append(v.waits, p.Lock)
	}
	return nil
}

// holdPermit adds a permit to the view, once.
func (v *viewer) holdPermit(p *permitCell) {
	if !p.out || v.seen[p.PermitKey] {
		return
	}
	if v.seen == nil {
		v.seen = map[store.PermitKey]bool{}
	}
	v.seen[p.PermitKey] = true
	v.view.Permits = append(v.view.Permits, p.Permit)
}

// holdLocks gives the locks and permits that a call names, and the first permits of locks.
func (v *viewer) holdLocks(need *store.Need) error {
	for _, lock := range need.Locks {
		if err := v.hold(events.LockEntity(lock)); err != nil {
			return err
		}
		v.waits = append(v.waits, lock)
	}
	for _, key := range need.Permits {
		p := v.blankPermit(key)
		if p.err != nil {
			return p.err
		}
		v.holdPermit(p)
	}
	for _, page := range need.Holders {
		if v.moved.permitLocks[page.Lock] {
			return errCut
		}
		list := v.pages.holders[page.Lock]
		for _, p := range list[:min(len(list), page.N)] {
			v.holdPermit(p)
		}
	}
	return nil
}

// holdWaiters gives who waits for the locks of the view.
func (v *viewer) holdWaiters(*store.Need) error {
	slices.Sort(v.waits)
	for _, lock := range slices.Compact(v.waits) {
		if v.moved.waits[lock] {
			return errCut
		}
		list, read := v.pages.waiting[lock]
		if !read { // whoever frees it would tell nobody
			return fmt.Errorf("who waits for lock %q was not read", lock)
		}
		v.view.Waiting[lock] = nil
		for _, c := range list {
			row := c.row
			row.Payload = nil
			v.view.Waiting[lock] = append(v.view.Waiting[lock], row)
		}
	}
	return nil
}
