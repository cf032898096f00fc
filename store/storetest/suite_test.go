package storetest_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/faulty"
	"github.com/foundling-go/foundling/store/memory"
	"github.com/foundling-go/foundling/store/storetest"
)

// Every sentence of the suite is run here, those of several processes included: they share one memory.
func TestSuite(t *testing.T) { suite(sane).Run(t) }

// bare is an engine that has no power.
type bare struct{ store.Store }

func (b bare) Decide(ctx context.Context, list ...store.Call) ([]store.Receipt, error) {
	for i, call := range list {
		if err := call.NoPruner(); err != nil {
			list = slices.Clone(list)
			list[i].Fn = func(store.View) (store.Changes, error) { return store.Changes{}, err }
			list[i].Need.Prune = store.Prunable{}
		}
	}
	return b.Store.Decide(ctx, list...)
}

func openBare(*testing.T) store.Store { return bare{memory.New(memory.Options{})} }

func TestSuiteOfAnEngineWithoutPowers(t *testing.T) {
	storetest.Suite{Open: openBare, Light: true}.Run(t)
}

func TestSuiteSaysWhatItSkips(t *testing.T) {
	if skipped := suite(sane).Skipped(suite(sane).Open(t)); len(skipped) != 4 {
		t.Errorf("skipped of an engine that can do all but prove deaths, and a light suite: %v", skipped)
	}
	skipped := storetest.Suite{Open: openBare}.Skipped(openBare(t))
	for about, why := range map[string]string{
		"a clock that is turned": "Suite.OpenAt", "several processes": "Suite.Again", "hints": "store.Waiter", "heartbeats": "store.Heart",
		"leases": "store.Leaser", "proofs of death": "store.ProcessWatcher", "what may be pruned": "store.Pruner", "pruning": "store.Pruner",
		"what a prune leaves": "store.Pruner", "checkpoints": "store.Shelf",
	} {
		if !strings.Contains(skipped[about], why) {
			t.Errorf("%s: skipped because %q, want one that names %s", about, skipped[about], why)
		}
	}
	if why, ok := skipped["engines that do not prune"]; ok {
		t.Errorf("engines that do not prune: skipped because %q", why)
	}
	deaf := suite(sane)
	deaf.Deaf = true
	if why := deaf.Skipped(deaf.Open(t))["hints"]; !strings.Contains(why, "Suite.Deaf") {
		t.Errorf("hints of a deaf suite: skipped because %q", why)
	}
	if why := deaf.Skipped(deaf.Open(t))["the largest view"]; !strings.Contains(why, "Suite.Light") {
		t.Errorf("the largest view of a light suite: skipped because %q", why)
	}
}

// A name that stands twice would hide a test from -run.
func TestSentencesAreEachSaidOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, says := range storetest.Sentences() {
		if seen[says] || says == "" || strings.Contains(says, "/") {
			t.Errorf("sentence %q", says)
		}
		seen[says] = true
	}
}

// process is a store that others use too: closing it leaves what it keeps to them.
type process struct {
	store.Store
	memory *memory.Store
	closed *atomic.Bool
}

func newProcess(m *memory.Store) process {
	closed := new(atomic.Bool)
	return process{memory: m, closed: closed, Store: faulty.New(m, func(faulty.Call) faulty.Fault {
		if closed.Load() {
			return faulty.StopBefore
		}
		return faulty.None
	})}
}

func (p process) Unwrap() store.Store { return p.Store }

func (p process) Close() error {
	p.closed.Store(true)
	return nil
}
