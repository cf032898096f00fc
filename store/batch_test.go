package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"go.uber.org/goleak"
)

// put is the call that makes a topic known.
func put(topic string) store.Call {
	id, err := uuid.NewV7()
	if err != nil {
		panic(err)
	}
	change := store.Change{
		Row:         store.Row{Entity: events.TopicEntity(topic), Version: 1, State: events.Active, Fields: []byte("{}")},
		Transitions: []events.Transition{{Event: &events.TopicConfigured{}, Version: 1, To: events.Active}},
	}
	return store.Call{ID: id, Command: events.Command{Name: topic}, Fn: func(store.View) (store.Changes, error) {
		return store.Changes{Rows: []store.Change{change}}, nil
	}}
}

// gate is a store whose commits wait to be let through, and fail as they are told to.
type gate struct {
	store.Store
	open chan struct{}
	fail func(topics []string) error // nil: none fails

	mu      sync.Mutex
	commits [][]string // the topics of each
	ctx     context.Context
}

func newGate() *gate { return &gate{Store: memory.New(memory.Options{}), open: make(chan struct{})} }

func (g *gate) Decide(ctx context.Context, calls ...store.Call) ([]store.Receipt, error) {
	var topics []string
	for _, call := range calls {
		topics = append(topics, call.Command.Name)
	}
	g.mu.Lock()
	g.commits = append(g.commits, topics)
	g.ctx = ctx
	g.mu.Unlock()
	<-g.open
	if g.fail != nil {
		if err := g.fail(topics); err != nil {
			return nil, err
		}
	}
	return g.Store.Decide(context.WithoutCancel(ctx), calls...)
}

// seen is the topics of each commit so far.
func (g *gate) seen() [][]string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.commits)
}

// answer is what one caller got.
type answer struct {
	receipts []store.Receipt
	err      error
}

// caller is a goroutine that has some topics put in one Decide.
type caller struct {
	cancel context.CancelFunc
	got    chan answer
}

// call starts a caller and waits until it waits: for the gate, or for those who do.
func call(t *testing.T, s store.Store, topics ...string) caller {
	ctx, cancel := context.WithCancel(t.Context())
	c := caller{cancel, make(chan answer, 1)}
	var calls []store.Call
	for _, topic := range topics {
		calls = append(calls, put(topic))
	}
	go func() {
		receipts, err := s.Decide(ctx, calls...)
		c.got <- answer{receipts, err}
	}()
	synctest.Wait()
	return c
}

// kept ends the test unless the caller's topics were all kept, and its receipts are its own.
func (c caller) kept(t *testing.T, topics ...string) {
	t.Helper()
	got := <-c.got
	if got.err != nil {
		t.Fatal(got.err)
	}
	var list []string
	for _, r := range got.receipts {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		list = append(list, r.Events[0].Entity.Name)
	}
	if diff := cmp.Diff(topics, list); diff != "" {
		t.Fatalf("receipts: (-want +got)\n%s", diff)
	}
}

func (c caller) fails(t *testing.T, want error) {
	t.Helper()
	if got := <-c.got; !errors.Is(got.err, want) || got.receipts != nil {
		t.Errorf("receipts %v, error %v, want %v", got.receipts, got.err, want)
	}
}

func wantCommits(t *testing.T, g *gate, want ...[]string) {
	t.Helper()
	if diff := cmp.Diff(want, g.seen()); diff != "" {
		t.Errorf("commits: (-want +got)\n%s", diff)
	}
}

func TestBatchSharesTheCommitsOfThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		b := store.Batch(g)
		first := call(t, b, "first")
		var waiting []caller
		want := []string{}
		for i := range 20 {
			topics := []string{fmt.Sprint(i), fmt.Sprint(i, "b")}
			waiting = append(waiting, call(t, b, topics...))
			want = append(want, topics...)
		}
		close(g.open)
		first.kept(t, "first")
		for i, c := range waiting {
			c.kept(t, fmt.Sprint(i), fmt.Sprint(i, "b"))
		}
		wantCommits(t, g, []string{"first"}, want)
	})
}

func TestBatchWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		close(g.open)
		b := store.Batch(g)
		for _, topic := range []string{"a", "b", "c"} {
			call(t, b, topic).kept(t, topic)
		}
		wantCommits(t, g, []string{"a"}, []string{"b"}, []string{"c"})
		if receipts, err := b.Decide(t.Context()); receipts != nil || err != nil {
			t.Errorf("no calls: receipts %v, error %v", receipts, err)
		}
		wantCommits(t, g, []string{"a"}, []string{"b"}, []string{"c"})
	})
}

func TestBatchBoundsACommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		b := store.Batch(g)
		sizes := []int{1, 200, 200, 200, 700, 1}
		var callers []caller
		for i, n := range sizes {
			var topics []string
			for j := range n {
				topics = append(topics, fmt.Sprint(i, "/", j))
			}
			callers = append(callers, call(t, b, topics...))
		}
		close(g.open)
		for _, c := range callers {
			if got := <-c.got; got.err != nil {
				t.Fatal(got.err)
			}
		}
		var got []int
		for _, topics := range g.seen() {
			got = append(got, len(topics))
		}
		// What is over the bound by itself still goes, alone: the bound is on company.
		if diff := cmp.Diff([]int{1, 400, 200, 700, 1}, got); diff != "" {
			t.Errorf("calls of each commit: (-want +got)\n%s", diff)
		}
	})
}

func TestBatchTriesEachAloneWhenTheJointCommitFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		g.fail = func(topics []string) error {
			if slices.Contains(topics, "bad") {
				return store.ErrFull
			}
			return nil
		}
		b := store.Batch(g)
		first, good, bad, more := call(t, b, "first"), call(t, b, "good"), call(t, b, "worse", "bad"), call(t, b, "more", "most")
		close(g.open)
		first.kept(t, "first")
		good.kept(t, "good")
		bad.fails(t, store.ErrFull)
		more.kept(t, "more", "most")
		wantCommits(t, g, []string{"first"}, []string{"good", "worse", "bad", "more", "most"},
			[]string{"good"}, []string{"worse", "bad"}, []string{"more", "most"})
	})
}

func TestBatchPassesDoubtOnToAll(t *testing.T) {
	for _, err := range []error{store.ErrUnknown, store.ErrClosed} {
		synctest.Test(t, func(t *testing.T) {
			g := newGate()
			g.fail = func(topics []string) error {
				if len(topics) > 1 {
					return fmt.Errorf("commit: %w", err)
				}
				return nil
			}
			b := store.Batch(g)
			first, one, two := call(t, b, "first"), call(t, b, "one"), call(t, b, "two")
			close(g.open)
			first.kept(t, "first")
			one.fails(t, err)
			two.fails(t, err)
			wantCommits(t, g, []string{"first"}, []string{"one", "two"}) // nobody tries again what may have happened
		})
	}
}

func TestBatchWithdrawsWhoeverStillWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		b := store.Batch(g)
		first, one, two, three := call(t, b, "first"), call(t, b, "one"), call(t, b, "two"), call(t, b, "three")
		two.cancel()
		two.fails(t, context.Canceled)
		first.cancel() // its commit is on its way, which no context stops
		synctest.Wait()
		if len(first.got) > 0 {
			t.Error("a caller was answered while its commit was under way")
		}
		close(g.open)
		first.kept(t, "first")
		one.kept(t, "one")
		three.kept(t, "three")
		wantCommits(t, g, []string{"first"}, []string{"one", "three"})
	})
}

func TestBatchEndsWhenAllHaveWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		b := store.Batch(g)
		first, one := call(t, b, "first"), call(t, b, "one")
		one.cancel()
		one.fails(t, context.Canceled)
		close(g.open)
		first.kept(t, "first")
		wantCommits(t, g, []string{"first"})
		call(t, b, "next").kept(t, "next")
	})
}

// The engine withdraws a joint commit that has not begun when nobody wants it any more, and not before.
func TestBatchGivesUpAJointCommitWithItsLastCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		b := store.Batch(g)
		first, one, two := call(t, b, "first"), call(t, b, "one"), call(t, b, "two")
		g.open <- struct{}{}
		first.kept(t, "first")
		synctest.Wait()
		joint := g.ctx
		one.cancel()
		one.fails(t, context.Canceled)
		synctest.Wait()
		if joint.Err() != nil {
			t.Error("the joint commit was given up with one of its callers")
		}
		two.cancel()
		two.fails(t, context.Canceled)
		synctest.Wait()
		if joint.Err() == nil {
			t.Error("the joint commit goes on without a caller")
		}
		close(g.open)
		synctest.Wait()
		wantTopics(t, g, "first")
	})
}

// wantTopics ends the test unless the store knows these topics alone.
func wantTopics(t *testing.T, s store.Store, want ...string) {
	t.Helper()
	var got []string
	for row, err := range s.Rows(context.Background(), store.RowFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, row.Entity.Name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("topics: (-want +got)\n%s", diff)
	}
}

// One who waits with others that have all the time in the world is let go when its own is over, and nothing of it is done later.
func TestBatchWithdrawsOneOfAJointCommit(t *testing.T) {
	for _, fail := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g := newGate()
			if fail {
				g.fail = func(topics []string) error {
					if len(topics) > 1 {
						return store.ErrFull // each is tried alone then
					}
					return nil
				}
			}
			b := store.Batch(g)
			first, one, two := call(t, b, "first"), call(t, b, "one", "more"), call(t, b, "two")
			g.open <- struct{}{}
			first.kept(t, "first")
			synctest.Wait() // one and two are with the store, which has not begun
			one.cancel()
			one.fails(t, context.Canceled)
			close(g.open)
			two.kept(t, "two")
			wantTopics(t, g, "first", "two")
		})
	}
}

// What has begun is told as it ends.
func TestBatchTellsOfACommitThatHasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := store.Batch(memory.New(memory.Options{}))
		deciding, goOn := make(chan struct{}), make(chan struct{})
		slow := func(topic string) store.Call {
			c := put(topic)
			fn := c.Fn
			c.Fn = func(v store.View) (store.Changes, error) {
				deciding <- struct{}{}
				<-goOn
				return fn(v)
			}
			return c
		}
		answers := make(chan answer, 3)
		decide := func(ctx context.Context, c store.Call) {
			go func() {
				receipts, err := b.Decide(ctx, c)
				answers <- answer{receipts, err}
			}()
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		decide(t.Context(), slow("a"))
		<-deciding
		decide(ctx, slow("b"))
		decide(t.Context(), put("c"))
		goOn <- struct{}{}
		<-deciding // b has begun, together with c
		cancel()
		goOn <- struct{}{}
		for range 3 {
			if got := <-answers; got.err != nil || got.receipts[0].Err != nil {
				t.Errorf("answer %+v", got)
			}
		}
		wantTopics(t, b, "a", "b", "c")
	})
}

func TestBatchGivesEachCallerReceiptsOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		b := store.Batch(g)
		first, one, two := call(t, b, "first"), call(t, b, "one"), call(t, b, "two")
		close(g.open)
		first.kept(t, "first")
		got := <-one.got
		_ = append(got.receipts, store.Receipt{Err: errors.New("somebody else's")})
		two.kept(t, "two")
	})
}

func TestBatchUnderLoad(t *testing.T) {
	defer goleak.VerifyNone(t)
	const callers, each = 16, 40
	g := newGate()
	close(g.open)
	b := store.Batch(g)
	kept := make([][]string, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for j := range each {
				ctx, cancel := context.WithCancel(t.Context())
				if j%3 == 0 {
					go cancel() // before, while or after it waits
				}
				topic := fmt.Sprint(i, "/", j)
				receipts, err := b.Decide(ctx, put(topic))
				switch {
				case err == nil && receipts[0].Err == nil && receipts[0].Events[0].Entity.Name == topic:
					kept[i] = append(kept[i], topic)
				case !errors.Is(err, context.Canceled):
					t.Errorf("%s: receipts %+v, error %v", topic, receipts, err)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	wantTopics(t, b, slices.Sorted(slices.Values(slices.Concat(kept...)))...) // what was answered as kept, and nothing else
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAsLooksBehindDecorators(t *testing.T) {
	inner := memory.New(memory.Options{})
	for _, s := range []store.Store{inner, store.Batch(inner), store.Batch(store.Batch(inner))} {
		if engine, ok := store.As[*memory.Store](s); !ok || engine != inner {
			t.Errorf("%T: the engine is out of reach", s)
		}
		if _, ok := store.As[store.Heart](s); !ok {
			t.Errorf("%T: the heart is out of reach", s)
		}
		if _, ok := store.As[store.Leaser](s); !ok {
			t.Errorf("%T: the leaser is out of reach", s)
		}
		if _, ok := store.As[store.Pruner](s); !ok {
			t.Errorf("%T: the pruner is out of reach", s)
		}
		if _, ok := store.As[store.Shelf](s); !ok {
			t.Errorf("%T: the shelf is out of reach", s)
		}
		if watcher, ok := store.As[store.ProcessWatcher](s); ok || watcher != nil {
			t.Errorf("%T: a power was found that nobody has", s)
		}
	}
}
