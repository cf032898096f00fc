package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/projections/replay"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/postgres"
	"github.com/jackc/pgx/v5"
)

// letter is a message of a storm, told from others by its number.
type letter struct{ N int64 }

// stormLimit is how many letters of the narrow topic may be in hand at once.
const stormLimit = 3

// storm is processes that enqueue, claim and settle while things happen to the server and to the connections to it. Whatever happens, what was
// acknowledged is there, what was refused is not, nothing is left unknown, no limit is exceeded, and every row is the fold of its events.
type storm struct {
	t       *testing.T
	topics  map[string]foundling.Topic[letter]
	stores  []*postgres.Store
	clients []*foundling.Client
	next    atomic.Int64
	kept    atomic.Int64 // enqueues that were acknowledged
	inHand  atomic.Int64 // letters of the narrow topic
	most    atomic.Int64 // of them at once

	mu       sync.Mutex
	acked    map[int64]bool
	refused  map[int64]error // letters of which the sender was told that nothing was done
	open     map[int64]error // that were under way when a client's patience ended
	finished map[int64]bool
	workers  map[*foundling.Client]bool // whose workers have begun
}

// newStorm opens two processes on the server of a connection string.
func newStorm(t *testing.T, dsn string) *storm {
	t.Helper()
	s := &storm{t: t, acked: map[int64]bool{}, refused: map[int64]error{}, open: map[int64]error{}, finished: map[int64]bool{}, workers: map[*foundling.Client]bool{}}
	s.topics = map[string]foundling.Topic[letter]{
		"narrow": foundling.NewTopic[letter]("narrow", foundling.TopicOptions{Limit: stormLimit}),
		"wide":   foundling.NewTopic[letter]("wide", foundling.TopicOptions{}),
	}
	for range 2 {
		one, err := postgres.Open(t.Context(), dsn, postgres.Options{WriteTimeout: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := one.Close(); err != nil {
				t.Error(err)
			}
		})
		client, err := foundling.NewClient(one, foundling.ClientOptions{
			Actor: "storm", Timeout: 2 * time.Minute, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		s.stores, s.clients = append(s.stores, one), append(s.clients, client)
	}
	return s
}

// after is a pause, unless ctx ends before.
func after(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// send enqueues letters until ctx ends. An enqueue that was begun is taken to its end.
func (s *storm) send(ctx context.Context, client *foundling.Client) {
	for ctx.Err() == nil {
		n := s.next.Add(1)
		name := []string{"narrow", "wide"}[rand.N(2)]
		lock := []string{"", "", "a", "b"}[rand.N(4)]
		_, err := s.topics[name].Enqueue(context.WithoutCancel(ctx), client, letter{n}, foundling.EnqueueOptions{Lock: lock})
		s.mu.Lock()
		switch {
		case err == nil:
			s.acked[n] = true
			s.kept.Add(1)
		case errors.Is(err, store.ErrUnknown) || errors.Is(err, context.DeadlineExceeded):
			s.open[n] = err
		default:
			s.refused[n] = err
		}
		s.mu.Unlock()
		if err != nil {
			after(ctx, 20*time.Millisecond) // the server is away
		}
	}
}

// work handles letters until ctx ends.
func (s *storm) work(ctx context.Context, client *foundling.Client) {
	worker, err := foundling.NewWorker(client, foundling.WorkerOptions{
		Concurrency: 4, PollInterval: 20 * time.Millisecond, SettleTimeout: time.Minute,
	})
	if err != nil {
		s.t.Error(err)
		return
	}
	for name, topic := range s.topics {
		topic.Handle(worker, func(ctx context.Context, m foundling.Message[letter]) error {
			if name == "narrow" {
				now := s.inHand.Add(1)
				defer s.inHand.Add(-1)
				for most := s.most.Load(); now > most && !s.most.CompareAndSwap(most, now); most = s.most.Load() {
				}
			}
			after(ctx, rand.N(3*time.Millisecond))
			s.mu.Lock()
			s.finished[m.Payload.N], s.workers[client] = true, true
			s.mu.Unlock()
			return nil
		})
	}
	if err := worker.Run(ctx); err != nil {
		s.t.Errorf("a worker ended: %v", err)
	}
}

// rage has the processes at work while weather happens, and ends when all that was acknowledged was handled.
func (s *storm) rage(weather func(ctx context.Context)) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 8*time.Minute)
	defer cancel()
	sending, calm := context.WithCancel(ctx)
	working, rest := context.WithCancel(ctx)
	var senders, workers sync.WaitGroup
	for _, client := range s.clients {
		for range 2 {
			senders.Go(func() { s.send(sending, client) })
		}
		workers.Go(func() { s.work(working, client) })
	}
	s.until(ctx, "the workers have begun", func() bool { // one that cannot begin ends
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.workers) == len(s.clients)
	})
	weather(ctx)
	calm()
	senders.Wait()
	s.until(ctx, "all that was acknowledged is handled", func() bool { return len(s.missing(s.finished)) == 0 })
	rest()
	workers.Wait()
}

// until ends the test unless something becomes so.
func (s *storm) until(ctx context.Context, what string, is func() bool) {
	s.t.Helper()
	for !is() {
		if s.t.Failed() || !after(ctx, 5*time.Millisecond) {
			s.t.Fatalf("in vain: %s", what)
		}
	}
}

// progress waits until so many more enqueues were acknowledged.
func (s *storm) progress(ctx context.Context, n int64) {
	s.t.Helper()
	from := s.kept.Load()
	s.until(ctx, fmt.Sprint(n, " more enqueues are acknowledged"), func() bool { return s.kept.Load() >= from+n })
}

// missing is the acknowledged letters that are not in a set.
func (s *storm) missing(set map[int64]bool) (list []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range s.acked {
		if !set[n] {
			list = append(list, n)
		}
	}
	return list
}

// check reads what the server has, by an engine of its own.
func (s *storm) check(dsn string) {
	s.t.Helper()
	one, err := postgres.Open(s.t.Context(), dsn, postgres.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	defer one.Close()
	for n, err := range s.open {
		s.t.Errorf("letter %d: whether it was kept was never settled: %v", n, err)
	}
	there := s.there(one)
	if lost := s.missing(there); len(lost) > 0 {
		s.t.Errorf("%d of %d letters were acknowledged and are lost", len(lost), len(s.acked))
	}
	for n, err := range s.refused {
		if there[n] {
			s.t.Errorf("letter %d is there, its sender was told: %v", n, err)
		}
	}
	if most := s.most.Load(); most > stormLimit {
		s.t.Errorf("%d letters of the narrow topic were in hand at once, its limit is %d", most, stormLimit)
	}
	report, err := replay.Verify(s.t.Context(), one, replay.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, v := range report.Violations {
		s.t.Errorf("verify: %v", v)
	}
	s.t.Logf("%d letters acknowledged, %d refused, %d handled", len(s.acked), len(s.refused), len(s.finished))
}

// there is the letters that are in the log.
func (s *storm) there(one *postgres.Store) map[int64]bool {
	s.t.Helper()
	set := map[int64]bool{}
	for r, err := range one.Read(s.t.Context(), "", store.Filter{Types: []events.Type{events.TypeMessageEnqueued}}) {
		if err != nil {
			s.t.Fatal(err)
		}
		contents, err := one.Contents(s.t.Context(), r.Entity.ID)
		if err != nil {
			s.t.Fatal(err)
		}
		var n int64
		if _, err := fmt.Sscanf(string(contents.Payload.Bytes), `{"N":%d}`, &n); err != nil {
			s.t.Fatalf("%s: payload %s: %v", r.Entity, contents.Payload.Bytes, err)
		}
		set[n] = true
	}
	return set
}

// times is how often something happens: a few times, and often where the long tests are asked for.
func times(few, often int) int {
	if os.Getenv("FOUNDLING_LONG") != "" {
		return often
	}
	return few
}

func TestServerKilledUnderLoadLosesNothing(t *testing.T) {
	server := pgtest.NewServer(t, pgtest.Options{})
	s := newStorm(t, server.DSN())
	s.rage(func(ctx context.Context) {
		for range times(3, 20) {
			s.progress(ctx, 20)
			server.Kill9()
			after(ctx, rand.N(50*time.Millisecond))
			server.Start()
		}
		s.progress(ctx, 20)
	})
	s.check(server.DSN())
}

func TestConnectionsCutAroundCommitLoseNothing(t *testing.T) {
	dsn := pgtest.Database(t)
	proxy := pgtest.NewProxy(t, dsn)
	s := newStorm(t, proxy.DSN())
	s.rage(func(ctx context.Context) {
		for range times(40, 400) {
			fault := pgtest.Fault{
				From: []pgtest.Side{pgtest.Client, pgtest.Backend}[rand.N(2)], Match: pgtest.Says("commit"), Skip: rand.N(10),
				Do: []pgtest.Action{pgtest.CutBefore, pgtest.CutWithin, pgtest.CutAfter}[rand.N(3)],
			}
			select {
			case <-proxy.Inject(fault):
			case <-ctx.Done():
				t.Fatal("a fault did not happen")
			}
		}
	})
	s.check(dsn)
}

func TestBackendsTerminatedAtRandomLoseNothing(t *testing.T) {
	dsn := pgtest.Database(t)
	s := newStorm(t, dsn)
	admin, err := pgx.Connect(t.Context(), pgtest.Admin(t, dsn))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	const some = "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity WHERE datname = current_database()" +
		" AND application_name = 'foundling' ORDER BY random() LIMIT 1 + floor(random() * 3)::int) q"
	s.rage(func(ctx context.Context) {
		for range times(40, 400) {
			if _, err := admin.Exec(ctx, some); err != nil {
				t.Fatal(err)
			}
			after(ctx, rand.N(50*time.Millisecond))
			s.progress(ctx, 1)
		}
	})
	s.check(dsn)
}
