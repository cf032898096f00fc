package memory_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
	"github.com/google/uuid"
)

// giving is a call that changes what it is told to.
func giving(changes store.Changes, asked store.Prunable) store.Call {
	return store.Call{ID: uuid.Must(uuid.NewV7()), Need: store.Need{Prune: asked}, Fn: func(view store.View) (store.Changes, error) {
		if !asked.Asks() {
			return changes, nil
		}
		through := view.Pruning.Through
		log := changed(events.LogEntity(), 0, &events.LogPruned{Through: through})
		if history := view.History[events.LogEntity()]; len(history) > 0 {
			log = changed(events.LogEntity(), history[0].Version, &events.LogPruned{Through: through})
		}
		log.Gone = true
		return store.Changes{Rows: []store.Change{log}, Prune: through}, nil
	}}
}

func changed(e events.Entity, from int, event events.Event) store.Change {
	return store.Change{
		From: from, Row: store.Row{Entity: e, Topic: "a", Version: from + 1, Fields: []byte("{}")},
		Transitions: []events.Transition{{Event: event, Version: from + 1}},
	}
}

func decide(t *testing.T, s store.Store, call store.Call) {
	t.Helper()
	receipts, err := s.Decide(t.Context(), call)
	if err != nil || receipts[0].Err != nil {
		t.Fatal(err, receipts)
	}
}

// used is how many bytes are in use.
func used() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// A store that runs for months in one process must not grow with all that ever happened in it.
func TestPrunedMemoryIsFree(t *testing.T) {
	const commits, page = 30_000, 1_000
	now := time.Now()
	s := memory.New(memory.Options{Clock: func() time.Time { return now }})
	before := used()
	for range commits {
		c := changed(events.MessageEntity(uuid.New()), 0, &events.MessageSnapshotted{})
		c.Gone, c.Payload, c.Result = true, &store.Payload{Bytes: make([]byte, 400)}, &store.Payload{Bytes: make([]byte, 100)}
		decide(t, s, giving(store.Changes{Rows: []store.Change{c}}, store.Prunable{}))
	}
	full := used() - before
	now = now.Add(2 * store.Horizon)
	for range commits/page + 1 {
		call := giving(store.Changes{}, store.Prunable{Before: now, Events: page, Rows: 10})
		call.ID, call.Need.Held = mint(now), []events.Entity{events.LogEntity()}
		fn := call.Fn
		call.Fn = func(view store.View) (store.Changes, error) {
			if view.Pruning.Through == 0 {
				return store.Changes{}, nil
			}
			return fn(view)
		}
		decide(t, s, call)
	}
	if left := used() - before; left > full/100 {
		t.Errorf("%d bytes are in use once all was pruned, %d were before", left, full)
	}
	if full < commits*500 {
		t.Errorf("%d bytes were in use for %d bytes of contents", full, commits*500)
	}
	runtime.KeepAlive(s)
}

// mint is a UUIDv7 of a time.
func mint(at time.Time) store.CommitID {
	id := uuid.Must(uuid.NewV7())
	ms := at.UnixMilli()
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	return id
}
