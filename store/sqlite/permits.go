package sqlite

import (
	"fmt"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// This file is the permits that are out, as one transaction has them. They stand beside the rows of their locks, as keys do.

const permitColumns = "lock, token, worker, message, acquired_at, expires_at"

var (
	selectPermits = selecting(permitColumns, "permits", "lock, token")
	insertPermits = inserting("permits", permitColumns)
	deletePermits = deleting("permits", "lock, token")
)

// The first permits of a worker and of a lock. Each walks one range of one index.
const (
	workerPermitsQuery = "SELECT " + permitColumns + " FROM permits INDEXED BY permits_worker" +
		" WHERE worker = ? ORDER BY acquired_at, lock, token LIMIT ?"
	lockPermitsQuery = "SELECT " + permitColumns + " FROM permits INDEXED BY permits_lock" +
		" WHERE lock = ? ORDER BY expires_at NULLS LAST, acquired_at, token LIMIT ?"
)

// permitCell is a permit as the transaction has it.
type permitCell struct {
	store.Permit
	out    bool // it is out now
	stored bool // its table has a row
	dirty  bool
	known  bool  // it was looked up
	err    error // its row is not what was written
}

// permit is the permit that was scanned. An error names its lock.
func (r *record) permit() (store.Permit, error) {
	p := store.Permit{
		PermitKey: store.PermitKey{Lock: r.text(0), Token: r.token(1)}, Worker: r.array(2), AcquiredAt: r.time(4), ExpiresAt: r.time(5),
	}
	if !r.null(3) {
		p.Message = r.array(3)
	}
	return p, damaged(events.LockEntity(p.Lock), fmt.Sprintf("its permit %v", r.values[1]), r.err)
}

func permitArgs(args []any, p *store.Permit) []any {
	return append(args, p.Lock, int64(p.Token), p.Worker[:], optional(&p.Message), p.AcquiredAt.UnixMicro(), instant(p.ExpiresAt))
}

// blankPermit is the permit's cell, which may be still to be looked up.
func (o *overlay) blankPermit(key store.PermitKey) *permitCell {
	c := o.permits[key]
	if c == nil {
		c = &permitCell{Permit: store.Permit{PermitKey: key}}
		o.permits[key] = c
	}
	return c
}

// loadPermits looks up those of the cells that were not looked up yet.
func (o *overlay) loadPermits(cells []*permitCell) error {
	var keys []any
	for _, c := range cells {
		if !c.known {
			c.known = true
			keys = append(keys, c.Lock, int64(c.Token))
		}
	}
	r := newRecord(permitColumns)
	return o.w.selectAll(selectPermits, keys, r, func() error {
		o.foundPermit(r)
		return nil
	})
}

// foundPermit takes in the permit that was read, of which the table shows what the transaction knows.
func (o *overlay) foundPermit(r *record) *permitCell {
	permit, err := r.permit()
	c := o.blankPermit(permit.PermitKey)
	c.Permit, c.out, c.stored, c.known, c.err = permit, true, true, true, err
	return c
}

// pickPermits is the first n permits of a query whose arguments are a holder or a lock, then how many rows it gives. What is not what was
// written is passed over, as in selected.
func (o *overlay) pickPermits(query string, n int, of any) ([]*permitCell, error) {
	if err := o.flushPermits(); err != nil {
		return nil, err
	}
	r := newRecord(permitColumns)
	for over := 0; ; over = more(over) {
		var list []*permitCell
		found := 0
		err := o.w.query(r, func() error {
			found++
			if c := o.foundPermit(r); c.err == nil {
				list = append(list, c)
			}
			return nil
		}, query, of, int64(n+over))
		if err != nil || len(list) >= n || found < n+over || over >= maxPassedOver {
			return list[:min(len(list), n)], err
		}
	}
}

// checkPermits makes sure that what is given out is not out, and what is taken back is.
func (o *overlay) checkPermits(changes []store.PermitChange) error {
	for i := range changes {
		change := &changes[i]
		key := change.Permit.PermitKey
		c := o.blankPermit(key)
		if change.Back || o.trust == doubting { // else it is believed to be new
			if err := o.loadPermits([]*permitCell{c}); err != nil {
				return err
			}
		}
		switch {
		case c.err != nil:
			return c.err
		case c.out && !change.Back:
			return atFault{fmt.Errorf("permit %d of lock %q is given out, and is out already", key.Token, key.Lock)}
		case !c.out && change.Back:
			return atFault{fmt.Errorf("permit %d of lock %q is taken back, and is not out", key.Token, key.Lock)}
		}
	}
	return nil
}

func (o *overlay) putPermit(change *store.PermitChange) {
	c := o.blankPermit(change.Permit.PermitKey)
	c.Permit, c.out, c.known = change.Permit, !change.Back, true
	if !c.dirty {
		c.dirty = true
		o.dirtyPermits = append(o.dirtyPermits, c)
	}
}

// flushPermits writes what changed of permits. One that is out is never changed.
func (o *overlay) flushPermits() error {
	if len(o.dirtyPermits) == 0 {
		return nil
	}
	var inserts, deletes []any
	for _, c := range o.dirtyPermits {
		switch {
		case c.out && !c.stored:
			inserts = permitArgs(inserts, &c.Permit)
		case !c.out && c.stored:
			deletes = append(deletes, c.Lock, int64(c.Token))
		}
		c.dirty, c.stored = false, c.out
	}
	o.dirtyPermits = o.dirtyPermits[:0]
	if err := o.w.bulk(insertPermits, inserts); err != nil {
		return err
	}
	return o.w.bulk(deletePermits, deletes)
}
