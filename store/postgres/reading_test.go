package postgres

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// This file is writers whose every step a test has in its hands: they keep what a commit would keep, by the same rules, and stop where they are told.

// openAt opens a store in a database.
func openAt(t *testing.T, dsn string, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), dsn, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// hand is a writer by hand.
type hand struct {
	t     testing.TB
	s     *Store
	conn  *pgx.Conn
	moved map[string]int // versions that its open transaction has come to, by topic
}

func newHand(t testing.TB, s *Store) *hand {
	t.Helper()
	conn, err := pgx.ConnectConfig(context.Background(), s.config.Copy())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return &hand{t: t, s: s, conn: conn, moved: map[string]int{}}
}

// try runs a statement.
func (h *hand) try(text string, args ...any) (pgconn.CommandTag, error) {
	return h.conn.Exec(context.Background(), h.s.sql(text), args...)
}

func (h *hand) do(text string, args ...any) {
	h.t.Helper()
	if _, err := h.try(text, args...); err != nil {
		h.t.Errorf("%s: %v", text, err)
	}
}

// begin opens a transaction.
func (h *hand) begin() {
	h.t.Helper()
	clear(h.moved)
	h.do("BEGIN")
}

// hold makes a topic known where it is not, and holds its row: from then on nobody else moves it.
func (h *hand) hold(topic string) {
	h.t.Helper()
	h.do("INSERT INTO @topics (name, version, state, running, fields) VALUES ($1, 0, 0, 0, '') ON CONFLICT DO NOTHING", topic)
	var version int
	err := h.conn.QueryRow(context.Background(), h.s.sql("UPDATE @topics SET version = version + 1 WHERE name = $1 RETURNING version"), topic).Scan(&version)
	if err != nil {
		h.t.Errorf("hold topic %s: %v", topic, err)
	}
	h.moved[topic] = version
}

// draw takes a number, by the rule that readers go by.
func (h *hand) draw() (number int64) {
	h.t.Helper()
	h.do("LOCK TABLE @events IN ROW EXCLUSIVE MODE")
	if err := h.conn.QueryRow(context.Background(), h.s.sql("SELECT nextval('@blocks')")).Scan(&number); err != nil {
		h.t.Errorf("draw: %v", err)
	}
	return number
}

// append keeps an event of each topic that is held, under a number.
func (h *hand) append(number int64, notes ...string) {
	h.t.Helper()
	var changes store.Changes
	for topic, version := range h.moved {
		changes.Rows = append(changes.Rows, store.Change{Row: store.Row{Entity: events.TopicEntity(topic)}, Transitions: []events.Transition{
			{Event: &events.TopicConfigured{}, Version: version, From: events.Active, To: events.Active},
		}})
	}
	for _, topic := range notes {
		changes.Rows = append(changes.Rows, store.Change{Row: store.Row{Entity: events.TopicEntity(topic)}, Transitions: []events.Transition{
			{Event: &events.TopicConfigured{}, From: events.Active, To: events.Active},
		}})
	}
	id, err := uuid.NewV7()
	if err != nil {
		h.t.Fatal(err)
	}
	h.keep(number, store.Record(store.Call{ID: id, Command: events.Command{Name: "test"}}, changes, time.Now().UTC().Truncate(time.Microsecond)))
}

// keep writes recordings under a number.
func (h *hand) keep(number int64, list ...*store.Recording) {
	h.t.Helper()
	count := 0
	for _, r := range list {
		for i := range r.Stored {
			e := &r.Stored[i]
			var version *int
			if e.Version > 0 {
				version = &e.Version
			}
			h.do("INSERT INTO @events ("+eventColumns+") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)", firstOf(number)+int64(count), stream(e.Entity), version,
				int16(e.Type), int16(e.Schema), int16(e.From), int16(e.To), e.Body, int32(e.Checksum))
			count++
		}
	}
	at, packed := list[len(list)-1].Commit.At, pack(list)
	h.do("INSERT INTO @decisions ("+decisionColumns+") VALUES ($1, $2, $3, $4, $5)", number, at.UnixMicro(), count, int32(packedSum(at, count, packed)), packed)
}

// commit moves topics in one transaction, and gives its number.
func (h *hand) commit(topics ...string) int64 {
	h.t.Helper()
	h.begin()
	for _, topic := range topics {
		h.hold(topic)
	}
	number := h.draw()
	h.append(number)
	h.do("COMMIT")
	return number
}

// all is what can be read behind a cursor, up to an error.
func (s *Store) all(ctx context.Context, after store.Cursor, f store.Filter) (list []events.Recorded, err error) {
	for r, err := range s.Read(ctx, after, f) {
		if err != nil {
			return list, err
		}
		list = append(list, r)
	}
	return list, nil
}

// read is what can be read behind a cursor.
func read(t testing.TB, s *Store, after store.Cursor, f store.Filter) []events.Recorded {
	t.Helper()
	list, err := s.all(context.Background(), after, f)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// numbers is the transactions of events, in their order, each once.
func numbers(list []events.Recorded) (all []int64) {
	for _, r := range list {
		if n := numberOf(r.Position); len(all) == 0 || all[len(all)-1] != n {
			all = append(all, n)
		}
	}
	return all
}

func (h *hand) topic(name string) events.Entity { return events.TopicEntity(name) }

func containsAll(text string, parts ...string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}
