package postgres

import (
	"testing"
	"time"

	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store"
	"github.com/jackc/pgx/v5"
)

// trips is how often the store waits for the server while something is done, after it was done before.
func tripsOf(t *testing.T, p *pgtest.Proxy, do func()) int {
	t.Helper()
	do()
	least := 1 << 30
	for range 3 { // now and then something is done beside the commits
		before := p.Counts()
		do()
		least = min(least, p.Since(before).Trips)
	}
	return least
}

func TestRoundTrips(t *testing.T) {
	dsn := pgtest.Database(t)
	p := pgtest.NewProxy(t, dsn)
	s, err := Open(t.Context(), p.DSN(), Options{MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if s.powers.hints.config, err = pgx.ParseConfig(dsn); err != nil { // hints are told beside the commits, and not counted
		t.Fatal(err)
	}
	b := &beds{t: t, s: s}
	b.configure("mail", 0)
	b.configure("few", 1_000)
	worker := b.id()
	var rows []store.Row
	tests := []struct {
		name  string
		trips int
		do    func()
	}{
		{"an enqueue of 100", 1, func() { b.enqueue("mail", "", 100) }},
		{"a claim of 100", 2, func() { rows = append(rows, b.claim(worker, "mail", 100)...) }},
		{"an ack of 100", 1, func() {
			b.settle(worker, rows[:100])
			rows = rows[100:]
		}},
		{"an enqueue to a topic with a limit", 1, func() { b.enqueue("few", "", 100) }},
		{"a claim from a topic with a limit", 2, func() { rows = append(rows, b.claim(worker, "few", 100)...) }},
		{"an ack to a topic with a limit", 1, func() {
			b.settle(worker, rows[:100])
			rows = rows[100:]
		}},
		{"a claim of nothing, and its end", 1, func() { b.claim(worker, "empty", 10) }},
		{"an enqueue of messages with a lock", 1, func() { b.enqueue("mail", "lock", 1) }},
		{"a claim of messages with a lock", 3, func() { rows = append(rows, b.claim(worker, "mail", 1)...) }},
	}
	for _, test := range tests {
		if got := tripsOf(t, p, test.do); got != test.trips {
			t.Errorf("%s: %d round trips, want %d", test.name, got, test.trips)
		}
	}
}

func TestWarmTime(t *testing.T) {
	var known ticks
	if _, ok := known.atLeast(); ok {
		t.Error("a time is known that nobody asked for")
	}
	at := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	known.saw(at)
	if bound, ok := known.atLeast(); !ok || bound.Before(at) || bound.Sub(at) > time.Second {
		t.Errorf("%s after the server said %s (%t)", bound, at, ok)
	}
}
