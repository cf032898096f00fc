package scenario

import (
	"context"
	"errors"
	"fmt"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// prepareLock makes a command on a lock that no worker sends.
func prepareLock(_ context.Context, w *World, l *line, _ string) (*step, error) {
	o, err := w.origin()
	name := l.word("lock")
	var call store.Call
	switch l.verb {
	case "lock":
		c := fsm.ConfigureLock{Permits: l.number("permits", 1), By: l.text("by"), Detail: l.text("detail")}
		call = calls.OperateLock(o, fsm.OperateLock{Lock: name, ConfigureLock: c})
	case "force-release":
		c := fsm.ForceRelease{Lock: name, Token: w.even.permit(l.token()), By: l.text("by"), Detail: l.text("detail")}
		call = calls.ForceRelease(o, c)
	case "expire":
		call = calls.ExpireLocks(o, fsm.ExpireLocks{Lock: name})
	case "repair":
		call = calls.RepairLock(o, fsm.RepairLock{Lock: name})
	}
	return &step{call: call}, err
}

// prepareAcquire takes a permit without a message.
func prepareAcquire(_ context.Context, w *World, l *line, _ string) (*step, error) {
	o, err := w.origin()
	worker, unknown := w.names.id(l.word("worker"))
	call, _ := calls.Acquire(o, fsm.Acquire{Worker: worker, Lock: l.word("lock"), TTL: l.length("ttl")})
	return &step{call: call}, errors.Join(err, unknown)
}

// prepareUnlock gives a permit back: the newest that the worker had of the lock, where no token says which, whether it is out or not.
func prepareUnlock(_ context.Context, w *World, l *line, _ string) (*step, error) {
	o, err := w.origin()
	worker, unknown := w.names.id(l.word("worker"))
	key := fsm.PermitKey{Lock: l.word("lock"), Token: w.even.permit(l.token())}
	if key.Token == 0 {
		key.Token = w.newestPermit(worker, key.Lock)
	}
	if key.Token == 0 {
		unknown = errors.Join(unknown, fmt.Errorf("unlock: the worker never had lock %s", key.Lock))
	}
	c := fsm.Unlock{Worker: worker, Permits: []fsm.PermitKey{key}, Recordable: l.number("recordable", 60)}
	call, refusals := calls.Unlock(o, c)
	return &step{call: call, notes: refused(refusals)}, errors.Join(err, unknown)
}

// newestPermit is the token of the newest permit of a lock that a worker had; 0 where it had none.
func (w *World) newestPermit(worker events.ID, lock string) events.Token {
	var newest events.Token
	for _, r := range w.log {
		if e, ok := r.Event.(*events.LockAcquired); ok && r.Entity.Name == lock && e.Worker == worker {
			newest = e.Token
		}
	}
	return newest
}
