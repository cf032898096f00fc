package sqlite

import (
	"slices"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// This file holds locks for a call: their rows, or the newest events of those that rest, and who waits for them.

// Who waits for some locks: per topic the first message that is blocked and the first that is trying. The index is walked from one of them
// to the next, past all who stand behind the first (see walks).
var selectWaiters = (&bulk{"WITH RECURSIVE wanted (lock) AS (VALUES ", "(?)", `),
firsts (place) AS (
  SELECT (SELECT place FROM messages INDEXED BY messages_waiting WHERE waiting <> 0 AND lock = w.lock
          ORDER BY topic, waiting, priority, place LIMIT 1)
  FROM wanted w
  UNION
  SELECT (SELECT n.place FROM messages n INDEXED BY messages_waiting
          WHERE n.waiting <> 0 AND n.lock = m.lock AND (n.topic, n.waiting) > (+m.topic, +m.waiting)
          ORDER BY n.topic, n.waiting, n.priority, n.place LIMIT 1)
  FROM firsts f CROSS JOIN messages m ON m.place = f.place
)
SELECT ` + messageColumns + " FROM messages WHERE place IN (SELECT place FROM firsts)", 1})

// Those who wait for a lock in one way, of one topic.
const waitersQuery = "SELECT " + messageColumns + " FROM messages INDEXED BY messages_waiting" +
	" WHERE waiting <> 0 AND lock = ? AND topic = ? AND waiting = ? ORDER BY priority, place LIMIT ?"

// lockable leaves out the messages whose lock is not what was written. Nobody can be granted one, and what stands behind them goes on.
func (v *viewer) lockable(list []*cell) ([]*cell, error) {
	var locks []*cell
	for _, c := range list {
		if c.row.Lock != "" {
			locks = append(locks, v.blank(events.LockEntity(c.row.Lock)))
		}
	}
	if len(locks) == 0 {
		return list, nil
	}
	if err := v.lookUp(events.KindLock, locks); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(c *cell) bool {
		return c.row.Lock != "" && v.cells[events.LockEntity(c.row.Lock)].err != nil
	}), nil
}

// lookUp makes sure that cells of one kind are known, with their histories where they have no row.
func (o *overlay) lookUp(kind events.Kind, cells []*cell) error {
	var unknown []*cell
	for _, c := range cells {
		if !c.known {
			c.known = true // they may stand twice in the list
			unknown = append(unknown, c)
		}
	}
	if err := o.load(tables[kind], unknown); err != nil {
		return err
	}
	untold := slices.DeleteFunc(slices.Clone(cells), func(c *cell) bool { return c.kept || c.told })
	if len(untold) == 0 {
		return nil
	}
	if err := o.flushLog(); err != nil {
		return err
	}
	return o.loadHistories(slices.Values(untold))
}

// holdLockOf holds the lock of a claimable message, which was looked up, and who waits for it where the message is the one that was sent to
// try.
func (v *viewer) holdLockOf(row *store.Row) {
	if row.Lock == "" {
		return
	}
	v.take(v.cells[events.LockEntity(row.Lock)])
	if row.Waiting == store.Trying {
		v.waits = append(v.waits, row.Lock)
	}
}

// holdEstate holds what a worker holds: its claims and their permits, its other permits, and the locks of them all. A permit that is not what
// was written, or whose lock is not, is left out: what else the worker holds must not stay with it for that.
func (v *viewer) holdEstate(holder store.Holder) error {
	claims, err := v.selected(picking{query: claimsQuery, n: holder.N, args: []any{holder.Worker[:]}})
	if err != nil {
		return err
	}
	v.view.Claims[holder.Worker] = claims
	var permits []*permitCell
	for i := range claims {
		if row := &claims[i]; row.LockToken != 0 {
			permits = append(permits, v.blankPermit(store.PermitKey{Lock: row.Lock, Token: row.LockToken}))
		}
	}
	if err := v.loadPermits(permits); err != nil {
		return err
	}
	others, err := v.pickPermits(workerPermitsQuery, holder.N, holder.Worker[:])
	if err != nil {
		return err
	}
	permits = slices.DeleteFunc(append(permits, others...), func(p *permitCell) bool { return !p.out || p.err != nil })
	locks := make([]*cell, len(permits))
	for i, p := range permits {
		locks[i] = v.blank(events.LockEntity(p.Lock))
	}
	if err := v.lookUp(events.KindLock, locks); err != nil {
		return err
	}
	for i, p := range permits {
		if locks[i].err == nil {
			v.take(locks[i])
			v.holdPermit(p)
			v.waits = append(v.waits, p.Lock)
		}
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

// holdLocks holds the locks and permits that a call names, and the first permits of locks.
func (v *viewer) holdLocks(need *store.Need) error {
	for _, lock := range need.Locks {
		if err := v.hold(events.LockEntity(lock)); err != nil {
			return err
		}
		v.waits = append(v.waits, lock)
	}
	for _, key := range need.Permits {
		p := v.permits[key]
		if p.err != nil {
			return p.err
		}
		v.holdPermit(p)
	}
	for _, page := range need.Holders {
		list, err := v.pickPermits(lockPermitsQuery, page.N, page.Lock)
		if err != nil {
			return err
		}
		for _, p := range list {
			v.holdPermit(p)
		}
	}
	return nil
}

// holdWaiters holds who waits for the locks of the view.
func (v *viewer) holdWaiters(*store.Need) error {
	if len(v.waits) == 0 {
		return nil
	}
	if err := v.flushWaiting(); err != nil {
		return err
	}
	slices.Sort(v.waits)
	var locks []any
	for _, lock := range slices.Compact(v.waits) {
		locks = append(locks, lock)
		v.view.Waiting[lock] = nil
	}
	var spoilt [][]any // who stands first is not what was written: lock, topic and way of waiting
	r := newRecord(messageColumns)
	err := v.w.selectAll(selectWaiters, locks, r, func() error {
		c := v.found(tables[events.KindMessage], r)
		if c.err != nil {
			spoilt = append(spoilt, []any{r.values[lockAt], r.values[topicAt], r.values[waitingAt]})
			return nil
		}
		v.view.Waiting[c.row.Lock] = append(v.view.Waiting[c.row.Lock], c.row)
		return nil
	})
	if err != nil {
		return err
	}
	for _, args := range spoilt {
		next, err := v.selected(picking{query: waitersQuery, n: 1, args: args})
		if err != nil {
			return err
		}
		for _, row := range next {
			v.view.Waiting[row.Lock] = append(v.view.Waiting[row.Lock], row)
		}
	}
	return nil
}
