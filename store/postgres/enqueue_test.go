package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/projections/replay"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
	"github.com/foundling-go/foundling/store/postgres"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// order is the payload of most tests.
type order struct{ Number int }

var orders = foundling.NewTopic[order]("orders", foundling.TopicOptions{})

// desk is a database with a store in it and an application beside it.
type desk struct {
	t      *testing.T
	dsn    string
	store  *postgres.Store
	client *foundling.Client
	app    *pgx.Conn // the application's own
}

func newDesk(t *testing.T, o postgres.Options) *desk {
	t.Helper()
	d := &desk{t: t, dsn: template(t).Database(t)}
	s, err := postgres.Open(t.Context(), d.dsn, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	d.store, d.client = s, clientOf(t, s)
	d.app = d.connect(d.dsn)
	return d
}

func clientOf(t *testing.T, s store.Store) *foundling.Client {
	t.Helper()
	c, err := foundling.NewClient(s, foundling.ClientOptions{Actor: "tests", Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (d *desk) connect(dsn string) *pgx.Conn {
	d.t.Helper()
	conn, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (d *desk) begin(conn *pgx.Conn) pgx.Tx {
	d.t.Helper()
	tx, err := conn.Begin(context.Background())
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

func (d *desk) commit(tx pgx.Tx) {
	d.t.Helper()
	if err := tx.Commit(context.Background()); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) enqueue(tx pgx.Tx, drafts ...foundling.Draft) []foundling.ID {
	d.t.Helper()
	ids, err := postgres.EnqueueTx(d.t.Context(), d.client, tx, drafts...)
	if err != nil || len(ids) != len(drafts) {
		d.t.Fatalf("%d ids, error %v", len(ids), err)
	}
	return ids
}

// enqueued is what a transaction of its own enqueues.
func (d *desk) enqueued(drafts ...foundling.Draft) []foundling.ID {
	d.t.Helper()
	tx := d.begin(d.app)
	ids := d.enqueue(tx, drafts...)
	d.commit(tx)
	return ids
}

// move moves messages into the log, as somebody does who has something to do with them: what it wants is refused, since none of them is a dead letter.
func (d *desk) move(ids ...foundling.ID) {
	d.t.Helper()
	var refused *foundling.Refusal
	if err := d.client.Redrive(d.t.Context(), "tests", ids...); !errors.As(err, &refused) {
		d.t.Errorf("error %v, want a refusal", err)
	}
}

// state is the word of a message's state; "none" where it is not found.
func (d *desk) state(id foundling.ID) string {
	d.t.Helper()
	info, err := d.client.Get(d.t.Context(), id)
	if errors.Is(err, foundling.ErrNotFound) {
		return "none"
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return info.State.String()
}

// log is the events of messages, as "ordinal type", the ids by order of appearance.
func (d *desk) log() (list []string) {
	d.t.Helper()
	names := map[events.ID]int{}
	for r, err := range d.store.Read(d.t.Context(), "", store.Filter{}) {
		if err != nil {
			d.t.Fatal(err)
		}
		if r.Entity.Kind != events.KindMessage {
			continue
		}
		if names[r.Entity.ID] == 0 {
			names[r.Entity.ID] = len(names) + 1
		}
		text := fmt.Sprintf("%d %s", names[r.Entity.ID], r.Event.Type())
		switch e := r.Event.(type) {
		case *events.MessageDiscarded:
			text += " " + string(e.Reason)
		case *events.MessageRefused:
			text += " " + string(e.Reason)
		}
		list = append(list, text)
	}
	return list
}

func (d *desk) report() replay.Report {
	d.t.Helper()
	report, err := replay.Verify(d.t.Context(), d.store, replay.Options{Payloads: true})
	if err != nil {
		d.t.Errorf("verify: %v", err)
	}
	return report
}

// verify checks all of the store, and how much of it is staged.
func (d *desk) verify(staged int) {
	d.t.Helper()
	if report := d.report(); !report.Clean() || report.Staged != staged {
		d.t.Errorf("verify: %d staged, want %d; %+v", report.Staged, staged, report.Violations)
	}
}

// Whatever the driver and its mode.
func TestAMessageIsThereExactlyWhenItsTransactionCommits(t *testing.T) {
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec,
		pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run(mode.String(), func(t *testing.T) {
			d := newDesk(t, postgres.Options{})
			config := d.app.Config()
			config.DefaultQueryExecMode = mode
			conn, err := pgx.ConnectConfig(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(t.Context())
			db := stdlib.OpenDB(*config)
			defer db.Close()
			d.onlyWhatCommits(map[string]func(end string) []foundling.ID{
				"pgx": func(end string) []foundling.ID {
					tx := d.begin(conn)
					ids := d.enqueue(tx, orders.Draft(order{1}, foundling.EnqueueOptions{}), orders.Draft(order{2}, foundling.EnqueueOptions{}))
					inner, err := tx.Begin(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					lost := d.enqueue(inner, orders.Draft(order{3}, foundling.EnqueueOptions{}))
					if err := inner.Rollback(t.Context()); err != nil {
						t.Fatal(err)
					}
					if end == "commit" {
						d.commit(tx)
					} else if err := tx.Rollback(t.Context()); err != nil {
						t.Fatal(err)
					}
					if got := d.state(lost[0]); got != "none" {
						t.Errorf("what a savepoint took back is %s", got)
					}
					return ids
				},
				"database/sql": func(end string) []foundling.ID { return d.inSQL(db, end) },
			})
		})
	}
}

func (d *desk) inSQL(db *sql.DB, end string) []foundling.ID {
	d.t.Helper()
	tx, err := db.BeginTx(d.t.Context(), nil)
	if err != nil {
		d.t.Fatal(err)
	}
	ids, err := postgres.EnqueueSQLTx(d.t.Context(), d.client, tx, orders.Draft(order{1}, foundling.EnqueueOptions{}), orders.Draft(order{2}, foundling.EnqueueOptions{}))
	if err != nil {
		d.t.Fatal(err)
	}
	ending := tx.Rollback
	if end == "commit" {
		ending = tx.Commit
	}
	if err := ending(); err != nil {
		d.t.Fatal(err)
	}
	return ids
}

func (d *desk) onlyWhatCommits(ways map[string]func(end string) []foundling.ID) {
	d.t.Helper()
	var all []foundling.ID
	for name, way := range ways {
		for _, id := range way("rollback") {
			if got := d.state(id); got != "none" {
				d.t.Errorf("%s: what was rolled back is %s", name, got)
			}
		}
		ids := way("commit")
		for i, id := range ids {
			info, err := d.client.Get(d.t.Context(), id)
			got, decode := orders.Payload(info)
			if err != nil || decode != nil || info.State != foundling.Staged || got.Number != i+1 {
				d.t.Errorf("%s: %+v, payload %+v, errors %v, %v", name, info, got, err, decode)
			}
		}
		all = append(all, ids...)
	}
	d.verify(len(all))
	d.move(all...)
	for i, id := range all {
		info, err := d.client.Get(d.t.Context(), id)
		got, decode := orders.Payload(info)
		if err != nil || decode != nil || info.State != foundling.Queued || got.Number != i%2+1 {
			d.t.Errorf("%+v, payload %+v, errors %v, %v", info, got, err, decode)
		}
	}
	if list := d.log(); len(list) != len(all) {
		d.t.Errorf("the log has %q", list)
	}
	d.verify(0)
}

// A long transaction holds up neither what comes after it nor who reads, and enters the log when it commits.
func TestALongTransactionHoldsNobodyUp(t *testing.T) {
	d := newDesk(t, postgres.Options{})
	long := d.begin(d.connect(d.dsn))
	first := d.enqueue(long, orders.Draft(order{1}, foundling.EnqueueOptions{ID: foundling.ID(newID()), Key: "k"}))
	second := d.enqueued(orders.Draft(order{2}, foundling.EnqueueOptions{}), orders.Draft(order{3}, foundling.EnqueueOptions{ID: first[0], Key: "k"}))
	third, err := orders.Enqueue(t.Context(), d.client, order{4}, foundling.EnqueueOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.move(second...)
	if got := []string{d.state(first[0]), d.state(second[0]), d.state(third)}; !slices.Equal(got, []string{"queued", "queued", "queued"}) {
		t.Errorf("states %q", got)
	}
	if list := d.log(); len(list) != 3 {
		t.Errorf("a reader sees %q while a transaction is open", list)
	}
	d.commit(long)
	if err := d.client.Cancel(t.Context(), "tests", first...); err != nil {
		t.Error(err)
	}
	want := []string{"1 message.enqueued", "2 message.enqueued", "3 message.enqueued", "3 message.refused known", "3 message.cancelled"}
	if diff := cmp.Diff(want, d.log()); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	d.verify(0)
}

// What is staged enters the log in the order of staging, and a delay counts from the transaction.
func TestStagedMessagesKeepTheirOrderAndTheirTimes(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Second)
	d := newDesk(t, postgres.Options{Clock: func() time.Time { return now }})
	staged := now
	at := now.Add(3 * time.Hour)
	ids := d.enqueued(
		orders.Draft(order{1}, foundling.EnqueueOptions{Delay: 2 * time.Minute}), orders.Draft(order{2}, foundling.EnqueueOptions{At: at}),
		orders.Draft(order{3}, foundling.EnqueueOptions{Priority: foundling.High, Lock: "l", MaxAttempts: 2, Timeout: time.Minute}),
	)
	more := d.enqueued(orders.Draft(order{4}, foundling.EnqueueOptions{Delay: time.Second}))
	ids = append(ids, more...)
	dues := []time.Time{staged.Add(2 * time.Minute), at, staged, staged.Add(time.Second)}
	for i, id := range ids {
		if info, err := d.client.Get(t.Context(), id); err != nil || !info.DueAt.Equal(dues[i]) || !info.EnqueuedAt.Equal(staged) {
			t.Errorf("staged: %+v, error %v, want it due at %s", info, err, dues[i])
		}
	}
	now = now.Add(time.Minute)
	d.move(ids...)
	dues[2], dues[3] = now, now // they were due before they entered the log
	var got []foundling.ID
	for r, err := range d.store.Read(t.Context(), "", store.Filter{Types: []events.Type{events.TypeMessageEnqueued}}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.Entity.ID)
		if r.Commit.Command.Actor != "tests" {
			t.Errorf("it was enqueued by %q", r.Commit.Command.Actor)
		}
	}
	if !slices.Equal(got, ids) {
		t.Errorf("entered as %v, want %v", got, ids)
	}
	for i, id := range ids {
		if info, err := d.client.Get(t.Context(), id); err != nil || !info.DueAt.Equal(dues[i]) || !info.EnqueuedAt.Equal(now) {
			t.Errorf("queued: %+v, error %v, want it due at %s", info, err, dues[i])
		}
	}
	if info, _ := d.client.Get(t.Context(), ids[2]); info.Priority != foundling.High || info.Lock != "l" || info.MaxAttempts != 2 || info.Timeout != time.Minute {
		t.Errorf("what it was to be is lost: %+v", info)
	}
}

// A taken key, and an id that is known, show when the message moves, and keep no other back.
func TestADuplicateShowsWhenItMoves(t *testing.T) {
	d := newDesk(t, postgres.Options{})
	known := foundling.ID(newID())
	holder, err := orders.Enqueue(t.Context(), d.client, order{1}, foundling.EnqueueOptions{ID: known, Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	ids := d.enqueued(
		orders.Draft(order{1}, foundling.EnqueueOptions{ID: known, Key: "k"}),
		orders.Draft(order{1234}, foundling.EnqueueOptions{ID: known}),
		orders.Draft(order{2}, foundling.EnqueueOptions{Key: "k"}),
		orders.Draft(order{3}, foundling.EnqueueOptions{Key: "new"}),
		orders.Draft(order{4}, foundling.EnqueueOptions{Key: "new"}),
	)
	d.verify(5)
	d.move(ids[3])
	if got := d.state(ids[2]); got != "staged" {
		t.Errorf("what nobody asked for is %s", got)
	}
	d.move(holder) // and what is staged under its id
	d.move(ids...)
	want := []string{
		"1 message.enqueued", "2 message.enqueued", "1 message.refused known", "1 message.refused mismatch",
		"3 message.enqueued", "3 message.discarded key_taken", "4 message.enqueued", "4 message.discarded key_taken",
	}
	got := d.log()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	info, err := d.client.Get(t.Context(), ids[2])
	if err != nil || info.State != foundling.Discarded || !strings.Contains(info.Detail, holder.String()) || info.Reason != string(events.ReasonKeyTaken) || !info.Ended() || info.Payload.Bytes == nil {
		t.Errorf("%+v, error %v", info, err)
	}
	d.verify(0)
}

// Whoever waits for a staged message moves it, and whoever cancels one ends it.
func TestWaitAndCancelKnowWhatIsStaged(t *testing.T) {
	d := newDesk(t, postgres.Options{})
	ids := d.enqueued(orders.Draft(order{1}, foundling.EnqueueOptions{}), orders.Draft(order{2}, foundling.EnqueueOptions{}))
	waited := make(chan foundling.MessageInfo, 1)
	go func() {
		info, err := d.client.Wait(t.Context(), ids[0])
		if err != nil {
			t.Error(err)
		}
		waited <- info
	}()
	d.until("who waits for it moves it", func() bool { return d.state(ids[0]) == "queued" })
	if err := d.client.Cancel(t.Context(), "tests", ids...); err != nil {
		t.Fatal(err)
	}
	if info := <-waited; info.State != foundling.Cancelled {
		t.Errorf("%+v", info)
	}
	if got := d.state(ids[1]); got != "cancelled" {
		t.Errorf("the other one is %s", got)
	}
	if err := d.client.Erase(t.Context(), "tests", ids...); err != nil {
		t.Error(err)
	}
	if _, err := d.client.Wait(t.Context(), foundling.ID(newID())); !errors.Is(err, foundling.ErrNotFound) {
		t.Errorf("one that nobody has staged: error %v", err)
	}
}

// What cannot be enqueued is refused by an error that says so, and before anything is sent where it can be: the transaction goes on.
func TestWhatCannotBeStagedIsRefused(t *testing.T) {
	d := newDesk(t, postgres.Options{})
	good := orders.Draft(order{1}, foundling.EnqueueOptions{})
	draft := func(o foundling.EnqueueOptions) []foundling.Draft {
		return []foundling.Draft{good, orders.Draft(order{1}, o)}
	}
	big := foundling.NewTopic[[]byte]("big", foundling.TopicOptions{})
	inMemory := clientOf(t, memory.New(memory.Options{}))
	tx := d.begin(d.app)
	for _, test := range []struct {
		name   string
		client *foundling.Client
		tx     pgx.Tx
		drafts []foundling.Draft
		says   string
		is     error
	}{
		{"no transaction", d.client, nil, []foundling.Draft{good}, "transaction", foundling.ErrInvalid},
		{"no client", nil, tx, []foundling.Draft{good}, "client", foundling.ErrInvalid},
		{"a client of another store", inMemory, tx, []foundling.Draft{good}, "none on Postgres", foundling.ErrInvalid},
		{"a topic without a name", d.client, tx, []foundling.Draft{good, {}}, "topic", foundling.ErrInvalid},
		{"a key that cannot be printed", d.client, tx, draft(foundling.EnqueueOptions{Key: "a\x00b"}), `\x00`, foundling.ErrInvalid},
		{"a key that is too long", d.client, tx, draft(foundling.EnqueueOptions{Key: strings.Repeat("k", 201)}), "at most 200", foundling.ErrTooLarge},
		{"an id that is none", d.client, tx, draft(foundling.EnqueueOptions{ID: foundling.ID{1}}), "version 7", foundling.ErrInvalid},
		{"both At and Delay", d.client, tx, draft(foundling.EnqueueOptions{At: time.Now(), Delay: 1}), "both At", foundling.ErrInvalid},
		{"a payload that is too large", d.client, tx, []foundling.Draft{big.Draft(make([]byte, 1<<20+1), foundling.EnqueueOptions{})}, "at most 1048576", foundling.ErrTooLarge},
		{"too many", d.client, tx, slices.Repeat([]foundling.Draft{good}, foundling.MaxDrafts+1), "at most 900", foundling.ErrTooLarge},
	} {
		ids, err := postgres.EnqueueTx(t.Context(), test.client, test.tx, test.drafts...)
		if ids != nil || !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %d ids, error %v, want one that says %q", test.name, len(ids), err, test.says)
		}
	}
	if _, err := postgres.EnqueueSQLTx(t.Context(), d.client, nil, good); !errors.Is(err, foundling.ErrInvalid) {
		t.Errorf("no transaction of database/sql: error %v", err)
	}
	if ids, err := postgres.EnqueueTx(t.Context(), d.client, tx); ids != nil || err != nil {
		t.Errorf("nothing: %d ids, error %v", len(ids), err)
	}
	ids := d.enqueue(tx, slices.Repeat([]foundling.Draft{good}, foundling.MaxDrafts)...)
	d.commit(tx)
	if got := d.state(ids[foundling.MaxDrafts-1]); got != "staged" {
		t.Errorf("the last of as many as may be is %s", got)
	}
}

// What the server refuses says what is wrong with the transaction, and leaves it to its owner.
func TestATransactionThatCannotStageIsTold(t *testing.T) {
	d := newDesk(t, postgres.Options{})
	try := func(name, says string, is error, tx pgx.Tx) {
		t.Helper()
		_, err := postgres.EnqueueTx(t.Context(), d.client, tx, orders.Draft(order{1}, foundling.EnqueueOptions{}))
		if err == nil || !strings.Contains(err.Error(), says) || is != nil && !errors.Is(err, is) {
			t.Errorf("%s: error %v, want one that says %q and is %v", name, err, says, is)
		}
	}
	tx := d.begin(d.app)
	if _, err := tx.Exec(t.Context(), "SELECT 1/0"); err == nil {
		t.Fatal("a division by zero")
	}
	try("one that has failed", "rolled back", nil, tx)
	_ = tx.Rollback(t.Context())
	try("one that has ended", "ended", pgx.ErrTxClosed, tx)
	tx, err := d.app.BeginTx(t.Context(), pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		t.Fatal(err)
	}
	try("one that only reads", "takes no writes", nil, tx)
	_ = tx.Rollback(t.Context())
	empty := d.connect(pgtest.Database(t))
	try("one of a database without a store", "foundling migrate", store.ErrForeign, d.begin(empty))
	other, err := postgres.Unconnected(postgres.Options{Schema: "other"})
	if err != nil {
		t.Fatal(err)
	}
	d.client = clientOf(t, other)
	try("one of another schema", `"other".staged`, store.ErrForeign, d.begin(d.app))
	if _, err := postgres.Unconnected(postgres.Options{Schema: "No"}); err == nil {
		t.Error("a schema that is no name")
	}
}
