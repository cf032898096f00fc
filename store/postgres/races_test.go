package postgres_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/projections/replay"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/postgres"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// crowd is many clients of one store, through several engines on one database.
type crowd struct {
	t      *testing.T
	ctx    context.Context
	dsn    string
	stores []*postgres.Store
	topics map[string]int // with their limits
	terms  atomic.Int64   // of leaders

	mu       sync.Mutex
	outcomes map[string]int // of commands, by their names
}

func newCrowd(t *testing.T, stores int, topics map[string]int) *crowd {
	t.Helper()
	c := &crowd{t: t, ctx: t.Context(), dsn: template(t).Database(t), topics: topics, outcomes: map[string]int{}}
	for range stores {
		c.stores = append(c.stores, c.open())
	}
	for topic, limit := range topics {
		c.must(c.stores[0].Decide(c.ctx, calls.OperateTopic(c.origin(), fsm.OperateTopic{Topic: topic, Command: fsm.ConfigureTopic{Limit: limit}})))
	}
	return c
}

func (c *crowd) open() *postgres.Store {
	c.t.Helper()
	s, err := postgres.Open(c.ctx, c.dsn, postgres.Options{MaxConns: 8})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			c.t.Error(err)
		}
	})
	return s
}

func newID() events.ID { return uuid.Must(uuid.NewV7()) }

func (c *crowd) origin() calls.Origin { return calls.Origin{ID: newID(), Actor: "races"} }

// must ends the test where calls were not kept.
func (c *crowd) must(receipts []store.Receipt, err error) []store.Receipt {
	c.t.Helper()
	for _, r := range receipts {
		err = cmp.Or(err, r.Err)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return receipts
}

func (c *crowd) enqueueing(topic, lock string, n int) store.Call {
	e := fsm.Enqueue{Topics: map[string]fsm.TopicStart{}}
	payloads := make([]store.Payload, n)
	for i := range n {
		id := newID()
		payloads[i] = store.Payload{Salt: [16]byte(id), Bytes: []byte("payload of " + id.String())}
		e.Drafts = append(e.Drafts, fsm.Draft{ID: id, EnqueueMessage: fsm.EnqueueMessage{Topic: topic, Lock: lock,
			Payload: events.Facts{Size: len(payloads[i].Bytes), Commitment: events.Commitment(payloads[i].Salt, payloads[i].Bytes)}}})
	}
	call, _ := calls.Enqueue(c.origin(), e, payloads)
	return call
}

// settling is the call that completes claims, from what the claimer knows of them.
func (c *crowd) settling(worker events.ID, rows []store.Row) store.Call {
	s := fsm.Settle{Sender: worker, Recordable: len(rows)}
	for _, row := range rows {
		m, err := calls.Message(row)
		if err != nil {
			panic(err)
		}
		s.Items = append(s.Items, fsm.Settlement{ID: m.ID, Command: fsm.CompleteMessage{Token: m.Token}, Permit: m.Permit()})
	}
	call, _ := calls.Settle(c.origin(), s, rows)
	return call
}

func claimed(r store.Receipt) []store.Row {
	return slices.DeleteFunc(slices.Clone(r.Rows), func(row store.Row) bool { return row.Worker == (events.ID{}) })
}

// drain has workers claim and complete until so many messages are completed.
func (c *crowd) drain(workers, want int) {
	var done atomic.Int64
	var wg sync.WaitGroup
	ctx, cancel := context.WithTimeout(c.ctx, 100*time.Second)
	defer cancel()
	for i := range workers {
		s := c.stores[i%len(c.stores)]
		wg.Go(func() {
			if err := c.work(ctx, s, &done, int64(want)); err != nil {
				cancel()
				c.t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := done.Load(); got != int64(want) {
		c.t.Errorf("%d messages were completed, want %d", got, want)
	}
}

func (c *crowd) work(ctx context.Context, s *postgres.Store, done *atomic.Int64, want int64) error {
	worker := newID()
	for done.Load() < want {
		var asks []fsm.Ask
		for topic := range c.topics {
			asks = append(asks, fsm.Ask{Topic: topic, N: 1 + rand.N(6)})
		}
		receipts, err := s.Decide(ctx, calls.Claim(c.origin(), fsm.Claim{Worker: worker, Asks: asks}))
		if err != nil || receipts[0].Err != nil {
			return fmt.Errorf("claim: %w", cmp.Or(err, receipts[0].Err))
		}
		rows := claimed(receipts[0])
		for _, row := range rows {
			if row.Payload == nil || string(row.Payload.Bytes) != "payload of "+row.Entity.ID.String() {
				return fmt.Errorf("%s came with payload %v", row.Entity, row.Payload)
			}
		}
		if len(rows) == 0 {
			continue
		}
		receipts, err = s.Decide(ctx, c.settling(worker, rows))
		if err != nil || receipts[0].Err != nil {
			return fmt.Errorf("settle: %w", cmp.Or(err, receipts[0].Err))
		}
		for _, e := range receipts[0].Events {
			if e.Event.Type() == events.TypeMessageCompleted {
				done.Add(1)
			}
		}
	}
	return nil
}

// log is all events, whose versions of each entity must follow each other.
func (c *crowd) log() []events.Recorded {
	c.t.Helper()
	var list []events.Recorded
	versions := map[events.Entity]int{}
	from := c.beginning()
	for r, err := range c.stores[0].Read(c.ctx, from, store.Filter{}) {
		if err != nil {
			c.t.Fatal(err)
		}
		if r.Version > 0 {
			if before, known := versions[r.Entity]; r.Version != before+1 && (known || from == "") {
				c.t.Errorf("%s at position %d has version %d behind %d", r.Entity, r.Position, r.Version, versions[r.Entity])
			}
			versions[r.Entity] = r.Version
		}
		list = append(list, r)
	}
	return list
}

// beginning is where the log begins: not with its first event where some of it was let go.
func (c *crowd) beginning() store.Cursor {
	c.t.Helper()
	for _, err := range c.stores[0].Read(c.ctx, "", store.Filter{Limit: 1}) {
		var pruned *store.PrunedError
		if errors.As(err, &pruned) {
			return pruned.First
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
	return ""
}

// checkClaims folds the log: no limit is exceeded, no lock is held twice, and nothing is claimed twice.
func (c *crowd) checkClaims(list []events.Recorded) {
	c.t.Helper()
	running, topics, holders := map[string]int{}, map[events.ID]string{}, map[string]int{}
	for _, r := range list {
		switch e := r.Event.(type) {
		case *events.MessageEnqueued:
			topics[r.Entity.ID] = e.Topic
		case *events.MessageClaimed:
			topic := topics[r.Entity.ID]
			if running[topic]++; c.topics[topic] > 0 && running[topic] > c.topics[topic] {
				c.t.Fatalf("position %d: %d of topic %s are running, its limit is %d", r.Position, running[topic], topic, c.topics[topic])
			}
		case *events.MessageCompleted:
			running[topics[r.Entity.ID]]--
		case *events.LockAcquired:
			if holders[r.Entity.Name]++; holders[r.Entity.Name] > 1 {
				c.t.Fatalf("position %d: lock %s is held twice", r.Position, r.Entity.Name)
			}
		case *events.LockReleased:
			holders[r.Entity.Name]--
		}
	}
	for topic, n := range running {
		if n != 0 {
			c.t.Errorf("%d of topic %s are running at the end", n, topic)
		}
	}
}

// quiet ends the test where the server has found a deadlock.
func (c *crowd) quiet() {
	c.t.Helper()
	conn, err := pgx.Connect(c.ctx, pgtest.Admin(c.t, c.dsn))
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close(c.ctx)
	var deadlocks int64
	if err := conn.QueryRow(c.ctx, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").Scan(&deadlocks); err != nil {
		c.t.Fatal(err)
	}
	if deadlocks != 0 {
		c.t.Errorf("the server has found %d deadlocks", deadlocks)
	}
}

// verify ends the test unless every row is the fold of its events, and the log obeys its laws.
func (c *crowd) verify() {
	c.t.Helper()
	report, err := replay.Verify(c.ctx, c.stores[len(c.stores)-1], replay.Options{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, v := range report.Violations {
		c.t.Errorf("verify: %v", v)
	}
}

func TestCrowdOfClaimersExceedsNoLimitAndClaimsNothingTwice(t *testing.T) {
	c := newCrowd(t, 2, map[string]int{"narrow": 3, "wide": 0})
	const batches, each = 20, 10
	for range batches {
		c.must(c.stores[0].Decide(c.ctx, c.enqueueing("narrow", "", each), c.enqueueing("wide", "", each)))
	}
	c.drain(12, 2*batches*each)
	c.checkClaims(c.log())
	c.quiet()
}

func TestCrowdOfClaimersHoldsNoLockTwice(t *testing.T) {
	c := newCrowd(t, 2, map[string]int{"narrow": 4, "wide": 0})
	const each = 15
	for lock := range 4 {
		c.must(c.stores[1].Decide(c.ctx, c.enqueueing("narrow", fmt.Sprint("lock", lock), each), c.enqueueing("wide", fmt.Sprint("lock", lock), each)))
	}
	c.drain(8, 2*4*each)
	c.checkClaims(c.log())
	c.quiet()
	c.verify()
}
