package postgres

import (
	"fmt"

	"github.com/foundling-go/foundling/store"
)

// blankPermit is the permit's cell, which may be still to be looked up.
func (a *attempt) blankPermit(key store.PermitKey) *permitCell {
	c := a.permits[key]
	if c == nil {
		c = &permitCell{Permit: store.Permit{PermitKey: key}}
		a.permits[key] = c
	}
	return c
}

// foundPermit takes in the permit that was read.
func (a *attempt) foundPermit(r *record) *permitCell {
	permit, err := r.permit()
	c := a.blankPermit(permit.PermitKey)
	c.Permit, c.out, c.stored, c.known, c.err = permit, true, true, true, err
	return c
}

// checkPermits makes sure that what is given out is not out, and what is taken back is.
func (a *attempt) checkPermits(changes []store.PermitChange) error {
	for i := range changes {
		change := &changes[i]
		key := change.Permit.PermitKey
		c := a.blankPermit(key)
		switch {
		case c.err != nil:
			return c.err
		case c.out && !change.Back:
			return atFault{fmt.Errorf("permit %d of lock %q is given out, and is out already", key.Token, key.Lock)}
		case c.known && !c.out && change.Back:
			return atFault{fmt.Errorf("permit %d of lock %q is taken back, and is not out", key.Token, key.Lock)}
		case !c.known && (change.Back || a.plan.doubting):
			return &errHold{permits: []store.PermitKey{key}} // else it is believed to be new
		}
	}
	return nil
}

func (a *attempt) putPermit(change *store.PermitChange) {
	c := a.blankPermit(change.Permit.PermitKey)
	if !c.stored || change.Back { // who had it is what the table says
		a.moved.permitLocks[c.Lock], a.moved.permitWorkers[change.Permit.Worker] = true, true
	}
	a.moved.permitWorkers[c.Worker] = true
	c.Permit, c.out, c.known = change.Permit, !change.Back, true
	if !c.dirty {
		c.dirty = true
		a.dirtyPermits = append(a.dirtyPermits, c)
	}
}
