package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/foundling-go/foundling/store"
)

// Suite says what an engine offers. Open is all that it must have.
type Suite struct {
	// Open gives a new empty store, whose time is the machine's. The suite closes it; what else is to be cleaned up is registered with t.
	Open func(t *testing.T) store.Store
	// OpenAt is Open with the store's time read from a clock. Without it the tests that turn the clock are skipped.
	OpenAt func(t *testing.T, clock func() time.Time) store.Store
	// Again opens what a store keeps once more, as another process would, while it is open or after it was closed. Without it the tests
	// of several processes are skipped.
	Again func(t *testing.T, s store.Store) store.Store
	// Deaf says that hints of the store's Waiter may be lost, so that nothing can be asked of them.
	Deaf bool
	// Light says that the largest payload and the largest view are not tried, which take some hundred megabytes: for further runs of an engine of
	// which one run has tried them.
	Light bool
}

// Run tests an engine of which no more is known than how to open a new empty store.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	t.Helper()
	Suite{Open: open}.Run(t)
}

// Run tests the engine: each sentence of the contract on a store of its own. What an engine need not have and has not is a skipped test that
// says so.
func (s Suite) Run(t *testing.T) {
	t.Helper()
	lacks := s.lacks(s.bed(t).s)
	for _, g := range groups() {
		if why := g.skipped(lacks); why != "" {
			t.Run(g.about, func(t *testing.T) { t.Skip(why) })
			continue
		}
		for _, it := range g.sentences {
			t.Run(it.says, func(t *testing.T) { it.test(s.bed(t)) })
		}
	}
}

// sentence is one sentence of the contract with its test.
type sentence struct {
	says string
	test func(*bed)
}

// group is sentences about one thing.
type group struct {
	about     string
	sentences []sentence
	needs     []need // all of them
	without   need   // or the lack of it
}

// need is what not every engine has.
type need string

const (
	aClock   need = "Suite.OpenAt"
	aNext    need = "Suite.Again"
	aWaiter  need = "store.Waiter"
	aHeart   need = "store.Heart"
	aLeaser  need = "store.Leaser"
	aWatcher need = "store.ProcessWatcher"
	aPruner  need = "store.Pruner"
	aShelf   need = "store.Shelf"
	anEar    need = "hint that is sure to arrive, see Suite.Deaf"
	room     need = "room, see Suite.Light"
)

func groups() []group {
	return []group{
		{about: "commits", sentences: commits()},
		{about: "commit ids", sentences: commitIDs()},
		{about: "outcomes", sentences: outcomes()},
		{about: "reads", sentences: reads()},
		{about: "rows", sentences: rows()},
		{about: "pages of rows", sentences: pages()},
		{about: "claims", sentences: claiming()},
		{about: "counts", sentences: counting()},
		{about: "views", sentences: views()},
		{about: "bounds", sentences: bounds()},
		{about: "the largest payload", sentences: largest(), needs: []need{room}},
		{about: "contents", sentences: contents()},
		{about: "locks", sentences: locking()},
		{about: "permits", sentences: permits()},
		{about: "waiting", sentences: waits()},
		{about: "lifetimes", sentences: lifetimes()},
		{about: "exact bytes", sentences: exactness()},
		{about: "a clock that is turned", sentences: times(), needs: []need{aClock}},
		{about: "several processes", sentences: neighbours(), needs: []need{aNext}},
		{about: "hints", sentences: hints(), needs: []need{aWaiter, anEar}},
		{about: "heartbeats", sentences: beats(), needs: []need{aHeart}},
		{about: "leases", sentences: leases(), needs: []need{aLeaser}},
		{about: "leases of several processes", sentences: sharedLeases(), needs: []need{aLeaser, aNext}},
		{about: "proofs of death", sentences: proofs(), needs: []need{aWatcher}},
		{about: "what may be pruned", sentences: prunable(), needs: []need{aPruner}},
		{about: "pruning", sentences: pruning(), needs: []need{aPruner}},
		{about: "what a prune leaves", sentences: leftovers(), needs: []need{aPruner}},
		{about: "pruning while a clock is turned", sentences: prunedTimes(), needs: []need{aPruner, aClock}},
		{about: "pruning by several processes", sentences: sharedPruning(), needs: []need{aPruner, aNext}},
		{about: "engines that do not prune", sentences: unprunable(), without: aPruner},
		{about: "checkpoints", sentences: checkpoints(), needs: []need{aShelf}},
		{about: "the largest view", sentences: largestCheckpoint(), needs: []need{aShelf, room}},
		{about: "checkpoints of several processes", sentences: sharedCheckpoints(), needs: []need{aShelf, aNext}},
	}
}

// lacks is what the engine of a store has not.
func (s Suite) lacks(probe store.Store) []need {
	var list []need
	for n, has := range map[need]bool{
		aClock: s.OpenAt != nil, aNext: s.Again != nil, anEar: !s.Deaf, room: !s.Light,
		aWaiter: can[store.Waiter](probe), aHeart: can[store.Heart](probe), aLeaser: can[store.Leaser](probe),
		aWatcher: can[store.ProcessWatcher](probe), aPruner: can[store.Pruner](probe), aShelf: can[store.Shelf](probe),
	} {
		if !has {
			list = append(list, n)
		}
	}
	return list
}

func can[T any](s store.Store) bool {
	_, ok := store.As[T](s)
	return ok
}

// skipped is why nothing of the group is tested; empty where all of it is.
func (g group) skipped(lacks []need) string {
	for _, n := range g.needs {
		if slices.Contains(lacks, n) {
			return fmt.Sprintf("not tested: there is no %s", n)
		}
	}
	if g.without != "" && !slices.Contains(lacks, g.without) {
		return fmt.Sprintf("not for this engine: it has %s", g.without)
	}
	return ""
}
