package foundling_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/projections/replay"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
)

// deaf is a store on which one process's heartbeats do not come through while it is mute.
type deaf struct {
	store.Store
	heart store.Heart
	mute  atomic.Bool
}

func newDeaf(s *memory.Store) *deaf { return &deaf{Store: s, heart: s} }

func (d *deaf) Unwrap() store.Store { return d.Store }

func (d *deaf) Beat(ctx context.Context, b store.Beat) (time.Time, error) {
	if d.mute.Load() {
		return time.Time{}, errors.New("nobody hears it")
	}
	return d.heart.Beat(ctx, b)
}

func (d *deaf) Beats(ctx context.Context) ([]store.Beat, error)   { return d.heart.Beats(ctx) }
func (d *deaf) Still(ctx context.Context, worker events.ID) error { return d.heart.Still(ctx, worker) }

func clientOf(t *testing.T, s store.Store) *foundling.Client {
	t.Helper()
	c, err := foundling.NewClient(s, foundling.ClientOptions{Actor: "test", Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// types is how often each type of event is in the log, those of messages aside.
func types(t *testing.T, s store.Store, want ...events.Type) map[events.Type]int {
	t.Helper()
	n := map[events.Type]int{}
	for r, err := range s.Read(t.Context(), "", store.Filter{Types: want}) {
		if err != nil {
			t.Fatal(err)
		}
		n[r.Event.Type()]++
	}
	return n
}

func clean(t *testing.T, s store.Store) {
	t.Helper()
	report, err := replay.Verify(t.Context(), s, replay.Options{Payloads: true})
	if err != nil || !report.Clean() {
		t.Errorf("verify: %v %v", err, report.Violations)
	}
}

func TestAWorkerThatIsNotHeardFencesItselfFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New(memory.Options{})
		s := newDeaf(inner)
		c := clientOf(t, s)
		w := newWorker(t, c, foundling.WorkerOptions{})
		fenced, warned := foundling.NewTopic[string]("fenced", foundling.TopicOptions{}), foundling.NewTopic[string]("warned", foundling.TopicOptions{Fence: foundling.FenceWarns})
		var silentSince, ended time.Time
		var runs atomic.Int32
		fenced.Handle(w, func(ctx context.Context, _ foundling.Message[string]) error {
			if runs.Add(1) > 1 {
				return nil
			}
			<-ctx.Done()
			if ended = time.Now(); !errors.Is(context.Cause(ctx), foundling.ErrFenced) {
				t.Errorf("its cause is %v", context.Cause(ctx))
			}
			return ctx.Err()
		})
		warned.Handle(w, func(ctx context.Context, _ foundling.Message[string]) error {
			time.Sleep(3 * time.Minute)
			return ctx.Err()
		})
		one, err := fenced.Enqueue(t.Context(), c, "x", foundling.EnqueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		two, err := warned.Enqueue(t.Context(), c, "y", foundling.EnqueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		stop := running(t, w)
		time.Sleep(time.Minute + time.Second) // the last heartbeat was a second ago
		silentSince = time.Now().Add(-time.Second)
		s.mute.Store(true)
		time.Sleep(2 * time.Minute)
		synctest.Wait() // the handler has returned
		if after := ended.Sub(silentSince); after < 90*time.Second || after > 105*time.Second {
			t.Errorf("the handler was ended %s after the last heartbeat, want 90 s and less than one interval more", after)
		}
		if got := history(t, inner, one); got != "enqueued claimed requeued:released" {
			t.Errorf("while it is not heard: %s", got)
		}
		s.mute.Store(false)
		time.Sleep(time.Minute)
		stop()
		if got := history(t, inner, one); got != "enqueued claimed requeued:released claimed completed" {
			t.Errorf("once it is heard again: %s", got)
		}
		if got := history(t, inner, two); got != "enqueued claimed completed" {
			t.Errorf("with a fence that warns: %s", got)
		}
		clean(t, inner)
	})
}

// slowAnswer is a store on which the answer to the first claim that is granted something takes a minute, and no heartbeat comes through until shortly
// before it.
type slowAnswer struct {
	*deaf
	once sync.Once
}

func (s *slowAnswer) Decide(ctx context.Context, list ...store.Call) ([]store.Receipt, error) {
	receipts, err := s.Store.Decide(ctx, list...)
	for _, r := range receipts {
		for _, e := range r.Events {
			if e.Event.Type() == events.TypeMessageClaimed {
				s.once.Do(func() {
					s.mute.Store(true)
					time.Sleep(time.Minute)
					s.mute.Store(false)
					time.Sleep(3 * time.Second)
				})
			}
		}
	}
	return receipts, err
}

// A claim may be answered when the worker was held to be dead meanwhile, though it is heard again: then somebody else may have the message, and its
// lock.
func TestAClaimThatIsAnsweredAfterALapseBeginsNoHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New(memory.Options{})
		c := clientOf(t, &slowAnswer{deaf: newDeaf(inner)})
		mail := foundling.NewTopic[string]("mail", foundling.TopicOptions{})
		w := newWorker(t, c, foundling.WorkerOptions{HeartbeatInterval: time.Second, ReclaimAfter: 10 * time.Second})
		var tokens []foundling.Token
		mail.Handle(w, func(_ context.Context, m foundling.Message[string]) error {
			tokens = append(tokens, m.Token)
			return nil
		})
		id, err := mail.Enqueue(t.Context(), c, "x", foundling.EnqueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		stop := running(t, w)
		time.Sleep(2 * time.Minute)
		stop()
		m, err := c.Get(t.Context(), id)
		if len(tokens) != 1 || tokens[0] == 2 || err != nil || m.State != foundling.Completed || m.Spent != 1 {
			t.Errorf("handlers began with tokens %v, want one, and not that of the first claim; the message is %s, spent %d, %v", tokens, m.State, m.Spent, err)
		}
		clean(t, inner)
	})
}

func TestAWorkerHeldToBeLostSaysThatItReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New(memory.Options{})
		s := newDeaf(inner)
		topic := foundling.NewTopic[string]("mail", foundling.TopicOptions{Limit: 1})
		lonely := newWorker(t, clientOf(t, s), foundling.WorkerOptions{FenceAfter: foundling.None, Sweeps: foundling.SweepsOff})
		var cause error
		topic.Handle(lonely, func(ctx context.Context, _ foundling.Message[string]) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return nil // too late
		})
		c := clientOf(t, inner)
		id, err := topic.Enqueue(t.Context(), c, "x", foundling.EnqueueOptions{Lock: "user:4411"})
		if err != nil {
			t.Fatal(err)
		}
		stopLonely := running(t, lonely)
		time.Sleep(time.Second)
		other := newWorker(t, c, foundling.WorkerOptions{})
		topic.Handle(other, func(context.Context, foundling.Message[string]) error { return nil })
		stopOther := running(t, other)
		time.Sleep(5 * time.Minute)
		s.mute.Store(true)
		time.Sleep(10 * time.Minute)
		synctest.Wait() // its handler has returned
		if got := history(t, inner, id); !strings.HasPrefix(got, "enqueued claimed orphaned requeued:orphan claimed completed") {
			t.Fatalf("while it is not heard: %s", got)
		}
		if n := types(t, inner, events.TypeWorkerLost, events.TypeWorkerReturned); n[events.TypeWorkerLost] != 1 {
			t.Errorf("lost and returned: %v", n)
		}
		if !errors.Is(cause, foundling.ErrClaimLost) {
			t.Errorf("its handler's context ended with %v", cause)
		}
		s.mute.Store(false)
		time.Sleep(time.Minute)
		if n := types(t, inner, events.TypeWorkerReturned); n[events.TypeWorkerReturned] != 1 {
			t.Errorf("returned: %v", n)
		}
		stopLonely()
		stopOther()
		if got := history(t, inner, id); got != "enqueued claimed orphaned requeued:orphan claimed completed refused:wrong_state" {
			t.Errorf("in the end: %s", got)
		}
		n := types(t, inner, events.TypeLockAcquired, events.TypeLockReclaimed, events.TypeLockReleased)
		if n[events.TypeLockAcquired] != 2 || n[events.TypeLockReclaimed] != 1 || n[events.TypeLockReleased] != 1 {
			t.Errorf("its lock: %v", n)
		}
		clean(t, inner)
	})
}

func TestAHandlerKeepsItsLockUntilItReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newClient(t)
		w := newWorker(t, c, foundling.WorkerOptions{})
		topic := foundling.NewTopic[int]("mail", foundling.TopicOptions{})
		var inside, most atomic.Int32
		var mu sync.Mutex
		var began []string
		topic.Handle(w, func(_ context.Context, m foundling.Message[int]) error {
			most.Store(max(most.Load(), inside.Add(1)))
			mu.Lock()
			began = append(began, fmt.Sprintf("%d#%d", m.Payload, m.Attempt))
			mu.Unlock()
			defer inside.Add(-1)
			if m.Payload == 1 && m.Attempt == 1 {
				time.Sleep(5 * time.Minute) // whatever its context says
			}
			if m.Lock != "user:4411" || m.LockToken == 0 {
				t.Errorf("lock %q with token %d", m.Lock, m.LockToken)
			}
			return nil
		})
		stop := running(t, w)
		var ids []foundling.ID
		for n := 1; n <= 3; n++ {
			id, err := topic.Enqueue(t.Context(), c, n, foundling.EnqueueOptions{Lock: "user:4411"})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		time.Sleep(time.Second)
		err := c.Requeue(t.Context(), foundling.RequeueOptions{Reason: "no patience"}, ids[0])
		if !errors.Is(err, &foundling.Refusal{Reason: events.ReasonAlive}) {
			t.Errorf("requeue of a live worker's message: %v", err)
		}
		if err := c.Requeue(t.Context(), foundling.RequeueOptions{Reason: "INC-142", Force: foundling.Forced}, ids[0]); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Minute)
		if got := history(t, s, ids[0]); got != "enqueued claimed requeued:taken_back blocked" {
			t.Errorf("while its first handler runs on: %s", got)
		}
		mu.Lock()
		if len(began) != 1 {
			t.Errorf("began %v, want the lock to stay with the first", began)
		}
		mu.Unlock()
		time.Sleep(2 * time.Minute)
		stop()
		slices.Sort(began[1:])
		if got := fmt.Sprint(began); got != "[1#1 1#2 2#1 3#1]" || most.Load() != 1 {
			t.Errorf("began %s, %d at once", got, most.Load())
		}
		clean(t, s)
	})
}

func TestALockIsOneForAllTopicsAndWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newClient(t)
		if err := c.ConfigureLock(t.Context(), "pool", foundling.LockSettings{Permits: 3}); err != nil {
			t.Fatal(err)
		}
		topics := []foundling.Topic[int]{
			foundling.NewTopic[int]("a", foundling.TopicOptions{}), foundling.NewTopic[int]("b", foundling.TopicOptions{Limit: 2}),
			foundling.NewTopic[int]("c", foundling.TopicOptions{}),
		}
		var inside, most, done atomic.Int32
		var stops []func()
		for range 2 {
			w := newWorker(t, c, foundling.WorkerOptions{Concurrency: 8})
			for _, topic := range topics {
				topic.Handle(w, func(context.Context, foundling.Message[int]) error {
					now := inside.Add(1)
					for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
					}
					time.Sleep(time.Second)
					inside.Add(-1)
					done.Add(1)
					return nil
				})
			}
			stops = append(stops, running(t, w))
		}
		const each = 20
		began := time.Now()
		for n := range each {
			for _, topic := range topics {
				if _, err := topic.Enqueue(t.Context(), c, n, foundling.EnqueueOptions{Lock: "pool"}); err != nil {
					t.Fatal(err)
				}
			}
		}
		for done.Load() < each*int32(len(topics)) {
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(began); most.Load() != 3 || took > 25*time.Second {
			t.Errorf("%d at once, want the lock's 3; %s for what takes 20 s where the lock is never idle", most.Load(), took)
		}
		for _, stop := range stops {
			stop()
		}
		if n := types(t, s, events.TypeMessageUnblocked); n[events.TypeMessageUnblocked] == 0 {
			t.Error("nobody ever waited")
		}
		clean(t, s)
	})
}

func TestAMessageThatDoesNotWaitIsDiscarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newClient(t)
		w := newWorker(t, c, foundling.WorkerOptions{})
		topic := foundling.NewTopic[int]("digest", foundling.TopicOptions{})
		topic.Handle(w, func(context.Context, foundling.Message[int]) error { time.Sleep(time.Minute); return nil })
		stop := running(t, w)
		o := foundling.EnqueueOptions{Lock: "digest", OnLocked: foundling.SkipIfLocked}
		first, err := topic.Enqueue(t.Context(), c, 1, o)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		second, err := topic.Enqueue(t.Context(), c, 2, o)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		stop()
		if a, b := history(t, s, first), history(t, s, second); a != "enqueued claimed completed" || b != "enqueued discarded" {
			t.Errorf("the first: %s, the second: %s", a, b)
		}
	})
}

func TestASweepThatSomebodyAsksFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New(memory.Options{})
		dying := newDeaf(inner)
		topic := foundling.NewTopic[int]("mail", foundling.TopicOptions{Limit: 1})
		w := newWorker(t, clientOf(t, dying), foundling.WorkerOptions{FenceAfter: foundling.None, Sweeps: foundling.SweepsOff})
		release := make(chan struct{})
		topic.Handle(w, func(context.Context, foundling.Message[int]) error { <-release; return nil })
		c := clientOf(t, inner)
		id, err := topic.Enqueue(t.Context(), c, 1, foundling.EnqueueOptions{Lock: "l"})
		if err != nil {
			t.Fatal(err)
		}
		stop := running(t, w)
		time.Sleep(time.Minute)
		if r, err := c.Sweep(t.Context(), foundling.SweepOptions{}); err != nil || r.Refused != "" || len(r.Dead) != 0 || r.Live != 2 {
			t.Errorf("while all live: %v, %+v", err, r)
		}
		dying.mute.Store(true)
		time.Sleep(3 * time.Minute)
		plan, err := c.PlanSweep(t.Context(), foundling.SweepOptions{})
		if err != nil || plan.Refused != "" || plan.Requeued != 1 || plan.LocksReleased != 1 || plan.Live != 0 {
			t.Errorf("plan while nobody lives, but whoever will sweep: %v, %+v", err, plan)
		}
		if r, err := c.Sweep(t.Context(), foundling.SweepOptions{Wait: foundling.None}); err != nil || r.Refused != string(events.ReasonLivenessUnproven) {
			t.Errorf("without waiting: %v, %+v", err, r)
		}
		var told time.Duration
		began := time.Now()
		r, err := c.Sweep(t.Context(), foundling.SweepOptions{Waiting: func(_, _ string, wait time.Duration) { told = wait }})
		if err != nil || r.Refused != "" || r.Requeued != 1 || r.LocksReleased != 1 || len(r.Dead) != 1 || r.Dead[0].Evidence != "silent" {
			t.Errorf("sweep: %v, %+v", err, r)
		}
		if took := time.Since(began); took < fsm.DefaultReclaimAfter || told < fsm.DefaultReclaimAfter || took > told+time.Minute {
			t.Errorf("it took %s and said %s", took, told)
		}
		close(release)
		stop()
		if got := history(t, inner, id); !strings.HasPrefix(got, "enqueued claimed orphaned requeued:orphan") {
			t.Errorf("the message: %s", got)
		}
		n := types(t, inner, events.TypeSweepRefused, events.TypeSweepFinished)
		if n[events.TypeSweepRefused] != 1 || n[events.TypeSweepFinished] != 1 {
			t.Errorf("sweeps in the log: %v", n)
		}
		clean(t, inner)
	})
}
