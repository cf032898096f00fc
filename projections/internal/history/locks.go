package history

import (
	"context"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// Acquire takes a permit of a lock without a message. Its token is 0 where none was free.
func (h *History) Acquire(worker events.ID, lock string, ttl time.Duration) (fsm.Permit, error) {
	call, permit := calls.Acquire(h.origin(), fsm.Acquire{Lock: lock, Worker: worker, TTL: ttl})
	_, err := h.Do(call)
	return *permit, err
}

// Unlock gives a permit back.
func (h *History) Unlock(worker events.ID, key fsm.PermitKey) error {
	call, _ := calls.Unlock(h.origin(), fsm.Unlock{Worker: worker, Permits: []fsm.PermitKey{key}, Recordable: 1})
	_, err := h.Do(call)
	return err
}

// ForceRelease takes permits of a lock from whoever holds them: one, or all where the token is 0.
func (h *History) ForceRelease(lock string, token events.Token) error {
	_, err := h.Do(calls.ForceRelease(h.origin(), fsm.ForceRelease{Lock: lock, Token: token, By: "ann", Detail: "INC-142"}))
	return err
}

// Permits sets how many permits a lock has.
func (h *History) Permits(lock string, n int) error {
	_, err := h.Do(calls.OperateLock(h.origin(), fsm.OperateLock{Lock: lock, ConfigureLock: fsm.ConfigureLock{Permits: n, By: "ann"}}))
	return err
}

func (h *History) lock() string { return Locks[h.draw(len(Locks))] }

// permit is one that is out, where any is.
func (h *History) permit() (store.Permit, bool, error) {
	var list []store.Permit
	for p, err := range h.Store.Permits(context.Background(), store.PermitFilter{}) {
		if err != nil {
			return store.Permit{}, false, err
		}
		list = append(list, p)
	}
	if len(list) == 0 {
		return store.Permit{}, false, nil
	}
	return list[h.draw(len(list))], true, nil
}

// confirm says that the handler of a claim has ended that took a permit, whatever became of the claim.
func (h *History) confirm() error {
	p, out, err := h.permit()
	if err != nil || !out || p.Message == (events.ID{}) {
		return err
	}
	row, known, err := h.row(events.MessageEntity(p.Message))
	if err != nil {
		return err
	}
	settlement := fsm.Settlement{ID: p.Message, Command: fsm.CompleteMessage{Token: 1}, Permit: fsm.PermitKey(p.PermitKey)}
	if known && row.LockToken == p.Token { // its claim is open
		m, err := calls.Message(row)
		if err != nil {
			return err
		}
		settlement.Command = fsm.CompleteMessage{Token: m.Token}
	}
	return h.Settle(p.Worker, settlement)
}

func (h *History) acquire() error {
	_, err := h.Acquire(h.worker(), h.lock(), time.Duration(h.draw(2))*2*time.Second)
	return err
}

// unlock gives back a permit that is held without a message, sometimes in the name of another.
func (h *History) unlock() error {
	p, out, err := h.permit()
	if err != nil || !out {
		return err
	}
	if p.Message != (events.ID{}) || h.draw(4) == 0 {
		p.Worker = h.ID()
	}
	return h.Unlock(p.Worker, fsm.PermitKey(p.PermitKey))
}

func (h *History) force() error {
	p, out, err := h.permit()
	if err != nil || !out {
		return err
	}
	return h.ForceRelease(p.Lock, p.Token*events.Token(h.draw(2)))
}

func (h *History) expire() error {
	_, err := h.Do(calls.ExpireLocks(h.origin(), fsm.ExpireLocks{Lock: h.lock()}))
	return err
}

// permits sets how many permits a lock has; 0 is as before anybody set it.
func (h *History) permits() error { return h.Permits(h.lock(), h.draw(4)) }

func (h *History) repair() error {
	_, err := h.Do(calls.RepairLock(h.origin(), fsm.RepairLock{Lock: h.lock()}))
	return err
}
