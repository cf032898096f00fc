package postgres_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/postgres"
	"github.com/jackc/pgx/v5"
)

// This file is what a client of the crowd does as leaders and operators do, and as who moves into the log what is staged.

// upkeep is more of what a client may do.
func (c *client) upkeep() map[string]func() []store.Call {
	lock := func() string { return []string{"a", "b", "c"}[rand.N(3)] }
	return map[string]func() []store.Call{
		"acquire briefly": func() []store.Call {
			call, _ := calls.Acquire(c.origin(), fsm.Acquire{Lock: lock(), Worker: c.worker, TTL: time.Millisecond})
			return []store.Call{call}
		},
		"expire": func() []store.Call { return []store.Call{calls.ExpireLocks(c.origin(), fsm.ExpireLocks{Lock: lock()})} },
		"force release": func() []store.Call {
			return []store.Call{calls.ForceRelease(c.origin(), fsm.ForceRelease{Lock: lock(), By: "races"})}
		},
		"force release one": c.forcing,
		"configure lock": func() []store.Call {
			return []store.Call{calls.OperateLock(c.origin(), fsm.OperateLock{Lock: lock(), ConfigureLock: fsm.ConfigureLock{Permits: 1 + rand.N(3), By: "races"}})}
		},
		"repair lock": func() []store.Call { return []store.Call{calls.RepairLock(c.origin(), fsm.RepairLock{Lock: lock()})} },
		"elect": func() []store.Call {
			return []store.Call{calls.OperateLeader(c.origin(), fsm.OperateLeader{Leadership: fsm.Beat,
				Command: fsm.ElectLeader{Worker: c.worker, Term: int(c.terms.Add(1))}})}
		},
		"step clock": func() []store.Call {
			now := time.Now()
			step := fsm.StepClock{FromAt: now.Add(-time.Duration(rand.N(10)) * time.Minute), ToAt: now, Worker: c.worker, Tolerance: time.Second}
			return []store.Call{calls.OperateClock(c.origin(), fsm.OperateClock{StepClock: step})}
		},
		"record sweep": func() []store.Call {
			finished := &events.SweepFinished{Decider: c.worker, Thresholds: events.Thresholds{After: time.Minute, Limit: 5}}
			return []store.Call{calls.RecordSweep(c.origin(), fsm.RecordSweep{Sweep: newID(), Event: finished})}
		},
		"reclaim": c.reclaiming,
		"prune":   c.pruning,
		"stage":   c.staging,
		"unstage": c.unstaging,
	}
}

// forcing takes one permit of those that are out.
func (c *client) forcing() []store.Call {
	var list []store.Permit
	for p, err := range c.s.Permits(c.ctx, store.PermitFilter{Lock: []string{"a", "b", "c"}[rand.N(3)]}) {
		if err != nil {
			c.t.Error(err)
			return nil
		}
		list = append(list, p)
	}
	if len(list) == 0 {
		return nil
	}
	p := list[rand.N(len(list))]
	return []store.Call{calls.ForceRelease(c.origin(), fsm.ForceRelease{Lock: p.Lock, Token: p.Token, By: "races"})}
}

// reclaiming takes from one of the youngest workers what it holds, as from one that is proven to have ended, although it goes on.
func (c *client) reclaiming() []store.Call {
	var workers []events.ID
	for row, err := range c.s.Rows(c.ctx, store.RowFilter{Kind: events.KindWorker, After: events.WorkerEntity(newID()), Order: store.Falling, Limit: 8}) {
		if err != nil {
			c.t.Error(err)
			return nil
		}
		workers = append(workers, row.Entity.ID)
	}
	if len(workers) == 0 {
		return nil
	}
	call, _ := calls.Reclaim(c.origin(), fsm.Reclaim{BeganAt: time.Now(), Page: 5, Evidence: events.Evidence{
		Claimer: workers[rand.N(len(workers))], Decider: c.worker, Sweep: newID(), Reason: events.ReasonProcessGone, After: time.Minute, Limit: 5,
	}})
	return []store.Call{call}
}

// pruning lets go of what is older than some seconds. The locks that the last one was not given it asks for.
func (c *client) pruning() []store.Call {
	now, err := c.s.Now(c.ctx)
	if err != nil {
		return nil // the end of the test
	}
	if c.pruned != nil {
		c.known = c.known.See(c.pruned.Unseen)
	}
	c.known.Now = now
	if c.known.Clock, err = calls.Clock(c.ctx, c.s); err != nil {
		return nil
	}
	prune := fsm.Prune{Before: now.Add(-3 * time.Second), Events: 100, Rows: 100, Decider: c.worker, By: "races"}
	call, seen := calls.Prune(c.origin(), prune, c.known)
	c.pruned = seen
	return []store.Call{call}
}

var errChanged = errors.New("the application has changed its mind")

// staging stages some messages in a transaction of its own, which is rolled back at times.
func (c *client) staging() []store.Call {
	err := pgx.BeginFunc(c.ctx, c.app, func(tx pgx.Tx) error {
		var drafts []foundling.Draft
		for range 1 + rand.N(4) {
			topic := foundling.NewTopic[string]([]string{"narrow", "wide", "other"}[rand.N(3)], foundling.TopicOptions{})
			drafts = append(drafts, topic.Draft("hello", foundling.EnqueueOptions{Lock: []string{"", "a", "b"}[rand.N(3)]}))
		}
		_, err := postgres.EnqueueTx(c.ctx, c.client, tx, drafts...)
		if err == nil && rand.N(4) == 0 {
			return errChanged
		}
		return err
	})
	if err != nil && !errors.Is(err, errChanged) {
		c.t.Error(err)
	}
	return nil
}

// unstaging moves the oldest of what is staged, as all others do at the same time.
func (c *client) unstaging() []store.Call {
	var list []store.Staged
	for one, err := range c.s.Staged(c.ctx, store.StagedFilter{Limit: 1 + rand.N(20)}) {
		if err != nil {
			c.t.Error(err)
			return nil
		}
		list = append(list, one)
	}
	if len(list) == 0 {
		return nil
	}
	call, err := calls.Unstage(c.origin(), list, func(string) bool { return rand.N(2) == 0 })
	if err != nil {
		c.t.Error(err)
		return nil
	}
	return []store.Call{call}
}

// TestTheCrowdGivesEveryCommand fails where there is a call that no client of the crowd makes.
func TestTheCrowdGivesEveryCommand(t *testing.T) {
	made := map[string]bool{}
	for _, name := range []string{"races_test.go", "mixed_test.go", "upkeepmixed_test.go"} {
		ast.Inspect(parsed(t, name), func(n ast.Node) bool {
			if call, ok := n.(*ast.SelectorExpr); ok {
				if of, ok := call.X.(*ast.Ident); ok && of.Name == "calls" {
					made[call.Sel.Name] = true
				}
			}
			return true
		})
	}
	files, err := filepath.Glob(filepath.Join("..", "..", "internal", "calls", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, d := range parsed(t, name).Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.IsExported() && givesCall(f) {
				all = append(all, f.Name.Name)
			}
		}
	}
	if len(all) < 17 {
		t.Fatalf("only %d calls were found: %v", len(all), all)
	}
	for _, name := range slices.Sorted(slices.Values(all)) {
		if !made[name] {
			t.Errorf("no client of TestAllCommandsAtOnce makes calls.%s", name)
		}
	}
}

func parsed(t *testing.T, name string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// givesCall reports whether the first of a function's results is a store.Call.
func givesCall(f *ast.FuncDecl) bool {
	if f.Type.Results == nil {
		return false
	}
	first, ok := f.Type.Results.List[0].Type.(*ast.SelectorExpr)
	if !ok || first.Sel.Name != "Call" {
		return false
	}
	of, ok := first.X.(*ast.Ident)
	return ok && of.Name == "store"
}
