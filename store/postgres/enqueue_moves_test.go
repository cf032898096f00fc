package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/faulty"
	"github.com/foundling-go/foundling/store/postgres"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// patience bounds what fails only when something hangs.
const patience = time.Minute

// until ends the test unless something becomes true.
func (d *desk) until(what string, is func() bool) {
	d.t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(patience); !is(); <-ticker.C {
		if time.Now().After(deadline) {
			d.t.Fatalf("it did not happen: %s", what)
		}
	}
}

// once checks that the log has each message once and no other.
func (d *desk) once(want map[foundling.ID]bool) {
	d.t.Helper()
	enqueued := map[foundling.ID]int{}
	for r, err := range d.store.Read(d.t.Context(), "", store.Filter{Types: []events.Type{events.TypeMessageEnqueued}}) {
		if err != nil {
			d.t.Fatal(err)
		}
		enqueued[r.Entity.ID]++
	}
	for id := range want {
		if enqueued[id] != 1 {
			d.t.Errorf("message %s is %d times in the log", id, enqueued[id])
		}
	}
	if len(enqueued) != len(want) {
		d.t.Errorf("%d messages are in the log, want %d", len(enqueued), len(want))
	}
}

// Any number of processes that move the same have the effect of one.
func TestTwoMoversHaveTheEffectOfOne(t *testing.T) {
	d := newDesk(t, postgres.Options{})
	const rounds, movers, each = 5, 4, 30
	clients := []*foundling.Client{d.client}
	for range movers - 1 {
		s, err := postgres.Open(t.Context(), d.dsn, postgres.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		clients = append(clients, clientOf(t, s))
	}
	all := map[foundling.ID]bool{}
	for round := range rounds {
		var drafts []foundling.Draft
		for i := range each {
			drafts = append(drafts, orders.Draft(order{i}, foundling.EnqueueOptions{Key: fmt.Sprint(round, "-", i)}))
		}
		ids := d.enqueued(drafts...)
		for _, id := range ids {
			all[id] = true
		}
		var movers sync.WaitGroup
		for _, c := range clients {
			movers.Go(func() {
				var refused *foundling.Refusal
				if err := c.Redrive(t.Context(), "tests", ids...); !errors.As(err, &refused) {
					t.Errorf("error %v, want a refusal", err)
				}
			})
		}
		movers.Wait()
	}
	d.once(all)
	d.verify(0)
	d.noDeadlock()
}

// noDeadlock checks that the server has found none.
func (d *desk) noDeadlock() {
	d.t.Helper()
	var n int
	err := d.connect(pgtest.Admin(d.t, d.dsn)).QueryRow(d.t.Context(), "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").Scan(&n)
	if err != nil || n > 0 {
		d.t.Errorf("the server has found %d deadlocks; error %v", n, err)
	}
}

// A process that moves what is staged is killed at each of its calls of the store in turn, or loses an answer there: nothing is lost, and nothing is
// there twice.
func TestAMoveThatIsKilledAnywhereLosesNothing(t *testing.T) {
	d := newDesk(t, postgres.Options{})
	all := map[foundling.ID]bool{}
	try := func(name string, plan faulty.Plan) {
		t.Helper()
		ids := d.enqueued(orders.Draft(order{1}, foundling.EnqueueOptions{Key: name}), orders.Draft(order{2}, foundling.EnqueueOptions{}))
		s := faulty.New(d.store, plan)
		_ = clientOf(t, s).Redrive(t.Context(), "tests", ids...) // which moves them first, and is refused or killed
		if s.CallsOf(faulty.Decide) == 0 && !s.Stopped() {
			t.Errorf("%s: nothing was moved", name)
		}
		d.move(ids...)
		for _, id := range ids {
			all[id] = true
			if got := d.state(id); got != "queued" {
				t.Errorf("%s: the message is %s", name, got)
			}
		}
	}
	for n := 1; n <= 6; n++ {
		for _, fault := range []faulty.Fault{faulty.StopBefore, faulty.StopAfter} {
			try(fmt.Sprintf("%s at call %d", fault, n), faulty.At(n, fault))
		}
	}
	for _, fault := range []faulty.Fault{faulty.Fail, faulty.LostBefore, faulty.LostAfter, faulty.Late, faulty.Twice} {
		try(fmt.Sprintf("%s at the commit", fault), faulty.Only(faulty.Decide, faulty.At(1, fault)))
	}
	d.once(all)
	d.verify(0)
}

// What is not what was staged is told, stays, and keeps nothing else back.
func TestADamagedStagedMessageKeepsNoOtherBack(t *testing.T) {
	d := newDesk(t, postgres.Options{})
	draft := orders.Draft(order{1}, foundling.EnqueueOptions{})
	ids := d.enqueued(draft, draft, draft, draft)
	for i, spoil := range []string{`bytes = '\x00'`, `topic = 'other'`, `salt = '\x01'`} {
		if _, err := d.app.Exec(t.Context(), "UPDATE foundling.staged SET "+spoil+" WHERE id = $1", ids[i].String()); err != nil {
			t.Fatal(err)
		}
		var corrupt *events.Corrupt
		if _, err := d.client.Get(t.Context(), ids[i]); !errors.As(err, &corrupt) || corrupt.Entity.ID != ids[i] {
			t.Errorf("%s: error %v, want one that names the message", spoil, err)
		}
		if err := d.client.Cancel(t.Context(), "tests", ids[i]); !errors.As(err, &corrupt) {
			t.Errorf("%s: cancelled, error %v", spoil, err)
		}
	}
	d.worked(ids[3])
	if got := d.state(ids[3]); got != "completed" {
		t.Errorf("the message that is whole is %s", got)
	}
	report := d.report()
	if len(report.Violations) != 3 || report.Staged != 3 {
		t.Errorf("verify finds %+v", report)
	}
}

// worked runs a worker until a message has ended.
func (d *desk) worked(id foundling.ID) {
	d.t.Helper()
	ctx, stop := context.WithTimeout(d.t.Context(), patience)
	defer stop()
	w, err := foundling.NewWorker(d.client, foundling.WorkerOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	orders.Handle(w, func(context.Context, foundling.Message[order]) error { return nil })
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	d.until("the message is handled", func() bool { return d.state(id) == "completed" })
	stop()
	if err := <-ended; err != nil {
		d.t.Error(err)
	}
}

// A transaction takes one round trip to enqueue, however many messages.
func TestEnqueueTxTakesOneRoundTrip(t *testing.T) {
	d := newDesk(t, postgres.Options{})
	p := pgtest.NewProxy(t, d.dsn)
	conn := d.connect(p.DSN())
	drafts := make([]foundling.Draft, 100)
	for i := range drafts {
		drafts[i] = orders.Draft(order{i}, foundling.EnqueueOptions{Key: fmt.Sprint(i)})
	}
	tx := d.begin(conn)
	before := p.Counts()
	d.enqueue(tx, drafts...)
	if trips := p.Since(before).Trips; trips != 1 {
		t.Errorf("%d round trips", trips)
	}
	d.commit(tx)
	if n := d.countStaged(); n != 100 {
		t.Errorf("%d are staged", n)
	}
}

func (d *desk) countStaged() (n int) {
	d.t.Helper()
	for _, err := range d.store.Staged(d.t.Context(), store.StagedFilter{}) {
		if n++; err != nil {
			d.t.Error(err)
		}
	}
	return n
}

// Pages are bounded by the bytes of payloads as well, and give everything in its order.
func TestStagedMessagesComeInPages(t *testing.T) {
	d := newDesk(t, postgres.Options{})
	big := foundling.NewTopic[[]byte]("big", foundling.TopicOptions{})
	var drafts []foundling.Draft
	for i := range 250 {
		drafts = append(drafts, orders.Draft(order{i}, foundling.EnqueueOptions{}))
	}
	for range 11 {
		drafts = append(drafts, big.Draft(make([]byte, 1<<20), foundling.EnqueueOptions{}))
	}
	ids := d.enqueued(drafts...)
	i, last := 0, int64(0)
	for one, err := range d.store.Staged(t.Context(), store.StagedFilter{}) {
		if err != nil || i == len(ids) || one.Message != ids[i] || one.Place <= last {
			t.Fatalf("the one at %d is %s at place %d behind %d, error %v", i, one.Message, one.Place, last, err)
		}
		i, last = i+1, one.Place
	}
	if i != len(ids) {
		t.Errorf("%d come, want %d", i, len(ids))
	}
	for range d.store.Staged(t.Context(), store.StagedFilter{After: last - 1, Limit: 5}) {
		i++
	}
	for range d.store.Staged(t.Context(), store.StagedFilter{Messages: ids[:3], Limit: 2}) {
		i++
	}
	if i != len(ids)+3 {
		t.Errorf("%d come behind the last but one and of two", i-len(ids))
	}
	d.worked(ids[249])
	d.until("the others are moved", func() bool { return d.countStaged() == 0 })
	d.verify(0)
}

// A process that only enqueues needs no more than to insert, and no connection of Foundling's own.
func TestAProcessThatOnlyEnqueuesNeedsNoMoreThanToInsert(t *testing.T) {
	d := newDesk(t, postgres.Options{Schema: "work"})
	role := "foundling_test_" + strings.ReplaceAll(newID().String(), "-", "")
	admin := d.connect(pgtest.Admin(t, d.dsn))
	do := func(text string) {
		t.Helper()
		if _, err := admin.Exec(context.Background(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	do("CREATE ROLE " + role)
	defer do("DROP ROLE " + role)
	defer do("DROP OWNED BY " + role)
	s, err := postgres.Unconnected(postgres.Options{Schema: "work"})
	if err != nil {
		t.Fatal(err)
	}
	c := clientOf(t, s)
	begin := func() pgx.Tx {
		tx := d.begin(admin)
		if _, err := tx.Exec(t.Context(), "SET LOCAL ROLE "+role); err != nil {
			t.Fatal(err)
		}
		return tx
	}
	draft := orders.Draft(order{1}, foundling.EnqueueOptions{Key: "k"})
	tx := begin()
	if _, err := postgres.EnqueueTx(t.Context(), c, tx, draft); err == nil || !strings.Contains(err.Error(), `GRANT INSERT ON "work".staged`) {
		t.Errorf("a role that may nothing: error %v", err)
	}
	_ = tx.Rollback(context.Background())
	do("GRANT USAGE ON SCHEMA work TO " + role)
	do("GRANT INSERT ON work.staged TO " + role)
	tx = begin()
	ids, err := postgres.EnqueueTx(t.Context(), c, tx, draft, draft)
	if err != nil {
		t.Fatal(err)
	}
	d.commit(tx)
	if _, err := c.Get(t.Context(), ids[0]); !errors.Is(err, postgres.ErrUnconnected) {
		t.Errorf("a look by a store without a connection: error %v", err)
	}
	d.worked(ids[0])
	if got := d.state(ids[1]); got != "discarded" {
		t.Errorf("the one whose key was taken is %s", got)
	}
}

// No statement has a name, whatever the transaction's own do.
func TestEnqueueTxWorksThroughAPooler(t *testing.T) {
	d := newDesk(t, postgres.Options{})
	through := pgtest.NewBouncer(t, d.dsn, 3).DSN(d.dsn)
	config, err := pgxpool.ParseConfig(through)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	config.MaxConns = 10
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	all := map[foundling.ID]bool{}
	var mu sync.Mutex
	var apps sync.WaitGroup
	for range 10 {
		apps.Go(func() {
			for i := range 5 {
				err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
					ids, err := postgres.EnqueueTx(t.Context(), d.client, tx, orders.Draft(order{i}, foundling.EnqueueOptions{}))
					mu.Lock()
					defer mu.Unlock()
					for _, id := range ids {
						all[id] = true
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	apps.Wait()
	for id := range all {
		d.move(id)
	}
	d.once(all)
}

// The server tells who works of a commit that has staged something, once a second at most, and not at all where the options say so.
func TestATransactionTellsWhoWorks(t *testing.T) {
	d := newDesk(t, postgres.Options{})
	quiet, err := postgres.Open(t.Context(), d.dsn, postgres.Options{NoNotify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer quiet.Close()
	listener := d.connect(d.dsn)
	if _, err := listener.Exec(t.Context(), "LISTEN foundling_staged_foundling"); err != nil {
		t.Fatal(err)
	}
	hints, stop := quiet.WatchStaged()
	defer stop()
	<-hints // what was staged before it listened, nobody has told it
	draft := orders.Draft(order{1}, foundling.EnqueueOptions{})
	began := time.Now()
	for range 20 {
		d.enqueued(draft)
	}
	took := time.Since(began)
	<-hints
	loud := d.client
	d.client = clientOf(t, quiet)
	for range 5 {
		d.enqueued(draft)
	}
	d.client = loud
	if _, err := d.app.Exec(t.Context(), "NOTIFY foundling_staged_foundling, 'end'"); err != nil {
		t.Fatal(err)
	}
	told := 0
	for {
		n, err := listener.WaitForNotification(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n.Payload == "end" {
			break
		}
		told++
	}
	if most := 1 + int(took/time.Second); told < 1 || told > most {
		t.Errorf("%d notifications in %s, want 1 to %d", told, took, most)
	}
}

// Eight enqueue in transactions, of which a third come to nothing and some stay open for long, while others work and one reads.
func TestManyEnqueueInTransactionsWhileOthersWork(t *testing.T) {
	d := newDesk(t, postgres.Options{})
	ctx, stop := context.WithTimeout(t.Context(), 2*patience)
	defer stop()
	var mu sync.Mutex
	committed, undone, ran := map[foundling.ID]bool{}, map[foundling.ID]bool{}, map[foundling.ID]int{}
	var running sync.WaitGroup
	for range 2 {
		s, err := postgres.Open(t.Context(), d.dsn, postgres.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		w, err := foundling.NewWorker(clientOf(t, s), foundling.WorkerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		orders.Handle(w, func(_ context.Context, m foundling.Message[order]) error {
			mu.Lock()
			defer mu.Unlock()
			ran[m.ID]++
			return nil
		})
		running.Go(func() {
			if err := w.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	var followed atomic.Int64 // messages that the follower has seen complete
	running.Go(func() {
		for r, err := range d.client.Events(ctx, "", foundling.EventFilter{Types: []events.Type{events.TypeMessageCompleted}}) {
			if err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
			if r.Event.Type() == events.TypeMessageCompleted {
				followed.Add(1)
			}
		}
	})
	long := d.begin(d.connect(d.dsn))
	held := d.enqueue(long, orders.Draft(order{0}, foundling.EnqueueOptions{}))
	d.crowd(8, 12, func(ids []foundling.ID, kept bool) {
		mu.Lock()
		defer mu.Unlock()
		for _, id := range ids {
			if kept {
				committed[id] = true
			} else {
				undone[id] = true
			}
		}
	})
	// All of this is done and seen while one of the transactions is still open.
	d.until("everything is handled and followed", func() bool { return followed.Load() == int64(len(committed)) })
	d.commit(long)
	committed[held[0]] = true
	d.until("what was open for long is handled", func() bool { return followed.Load() == int64(len(committed)) })
	stop()
	running.Wait()
	for id := range committed {
		if ran[id] != 1 {
			t.Errorf("message %s was handled %d times", id, ran[id])
		}
	}
	for id := range undone {
		if ran[id] > 0 || d.state(id) != "none" {
			t.Errorf("message %s was rolled back: it ran %d times and is %s", id, ran[id], d.state(id))
		}
	}
	if len(undone) == 0 || len(ran) != len(committed) {
		t.Errorf("%d ran, %d committed, %d were rolled back", len(ran), len(committed), len(undone))
	}
	d.once(committed)
	d.verify(0)
	d.noDeadlock()
}

// crowd has so many enqueue so often, each in transactions of its own, and tells what became of each: every third comes to nothing.
func (d *desk) crowd(many, often int, tell func(ids []foundling.ID, kept bool)) {
	d.t.Helper()
	conns := make([]*pgx.Conn, many)
	for i := range conns {
		conns[i] = d.connect(d.dsn)
	}
	errUndone := errors.New("it comes to nothing")
	var all sync.WaitGroup
	for who, conn := range conns {
		all.Go(func() {
			for n := range often {
				undone := (who+n)%3 == 0
				var ids []foundling.ID
				err := pgx.BeginFunc(d.t.Context(), conn, func(tx pgx.Tx) (err error) {
					draft := orders.Draft(order{who*1000 + n}, foundling.EnqueueOptions{Key: fmt.Sprint(who, "-", n)})
					if ids, err = postgres.EnqueueTx(d.t.Context(), d.client, tx, draft, orders.Draft(order{n}, foundling.EnqueueOptions{})); err == nil && undone {
						err = errUndone
					}
					return err
				})
				if err != nil && !errors.Is(err, errUndone) {
					d.t.Error(err)
				}
				tell(ids, !undone)
			}
		})
	}
	all.Wait()
}
