package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store"
	"github.com/jackc/pgx/v5/pgxpool"
)

// soon is a context for what must not wait.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patienceOfTests)
	t.Cleanup(cancel)
	return ctx
}

// lives ends the test unless heartbeats and leases work.
func lives(t *testing.T, s *Store) {
	t.Helper()
	worker := events.ID{1}
	if _, err := s.Beat(soon(t), store.Beat{Worker: worker, First: true, Interval: time.Second}); err != nil {
		t.Fatal(err)
	}
	if list, err := s.Beats(soon(t)); err != nil || len(list) != 1 {
		t.Fatalf("%d heartbeats, error %v", len(list), err)
	}
	term := 0
	turn := func(l store.Lease, _ time.Time) store.Lease {
		term = l.Term + 1
		return store.Lease{Holder: worker, Term: term}
	}
	if l, err := s.Lease(soon(t), "beat", turn); err != nil || l.Term != term {
		t.Fatalf("lease %+v, error %v", l, err)
	}
}

func TestHeartbeatsGoOnWhileCommitsHaveAllConnections(t *testing.T) {
	s := openAt(t, pgtest.Database(t), Options{MaxConns: 2})
	for range 2 {
		conn, err := s.pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
	}
	lives(t, s)
}

func TestHeartbeatsGoOnWhenTheirConnectionWasLost(t *testing.T) {
	proxy := pgtest.NewProxy(t, pgtest.Database(t))
	s := openAt(t, proxy.DSN(), Options{})
	lives(t, s)
	for range 3 {
		if proxy.Cut() == 0 {
			t.Fatal("there was no connection to cut")
		}
		lives(t, s)
	}
}

// A server that is away is not asked again and again, and is found when it is back.
func TestHeartbeatsAreTriedEverMoreSlowlyWhileTheServerIsAway(t *testing.T) {
	proxy := pgtest.NewProxy(t, pgtest.Database(t))
	s := openAt(t, proxy.DSN(), Options{})
	lives(t, s)
	proxy.Refuse()
	proxy.Cut()
	before := proxy.Counts().Connections
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	tries := 0
	for ctx.Err() == nil {
		if _, err := s.Beat(ctx, store.Beat{Worker: events.ID{1}, Interval: time.Second}); err == nil {
			t.Fatal("a beat was kept while the server was away")
		}
		tries++
	}
	if tries > 50 {
		t.Errorf("%d heartbeats were tried within half a second, %d connections", tries, proxy.Counts().Connections-before)
	}
	proxy.Resume()
	lives(t, s)
}

func TestDamagedHeartbeatsAndLeasesAreNamed(t *testing.T) {
	s := openAt(t, pgtest.Database(t), Options{})
	h := newHand(t, s)
	one, two := events.ID{1}, events.ID{2}
	for _, w := range []events.ID{one, two} {
		if _, err := s.Beat(t.Context(), store.Beat{Worker: w, First: true, Interval: time.Second, FenceAfter: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	for _, change := range []string{"at = at + 1", "at = at - (1::bigint << 40)", "at = -at", "every = every + 1", "fence_after = fence_after * 2", "checksum = checksum + 1"} {
		h.do("UPDATE @beats SET "+change+" WHERE worker = $1", one)
		list, err := s.Beats(t.Context())
		var corrupt *events.Corrupt
		if !errors.As(err, &corrupt) || corrupt.Entity != events.WorkerEntity(one) || len(list) != 1 || list[0].Worker != two {
			t.Errorf("%s: %d heartbeats, error %v", change, len(list), err)
		}
		if _, err := s.Beat(t.Context(), store.Beat{Worker: one, Interval: time.Second, FenceAfter: time.Minute}); err != nil {
			t.Fatal(err)
		}
		if list, err := s.Beats(t.Context()); err != nil || len(list) != 2 {
			t.Errorf("after the next beat: %d heartbeats, error %v", len(list), err)
		}
	}
	for i, change := range []string{
		"holder = gen_random_uuid()", "term = term + 1", "until = until + 1", "life = life + 1", "swept = 5", "checksum = checksum + 1", "name = name || 'x'",
	} {
		name := "lease " + string(rune('a'+i))
		turn := func(store.Lease, time.Time) store.Lease {
			return store.Lease{Holder: one, Term: 3, UntilAt: time.UnixMicro(7).UTC(), Life: time.Second}
		}
		if _, err := s.Lease(t.Context(), name, turn); err != nil {
			t.Fatal(err)
		}
		h.do("UPDATE @leases SET "+change+" WHERE name = $1", name)
		if change == "name = name || 'x'" {
			name += "x"
		}
		_, err := s.Lease(t.Context(), name, turn)
		var corrupt *events.Corrupt
		if !errors.As(err, &corrupt) || corrupt.Entity != events.LeaderEntity(name) {
			t.Errorf("%s: error %v", change, err)
		}
	}
}

// hears ends the test unless a hint comes.
func hears(t *testing.T, what string, hints <-chan struct{}) {
	t.Helper()
	select {
	case <-hints:
	case <-time.After(patienceOfTests):
		t.Fatalf("no hint: %s", what)
	}
}

func TestAnotherProcessHearsOfACommit(t *testing.T) {
	dsn := pgtest.Database(t)
	s, other := openAt(t, dsn, Options{}), openAt(t, dsn, Options{})
	mail, stop := other.Watch([]string{"mail"})
	defer stop()
	print, stop := other.Watch([]string{"print"})
	defer stop()
	hears(t, "when it begins to listen, since something may have come before", mail)
	hears(t, "when it begins to listen, since something may have come before", print)
	s.powers.hints.hint([]string{"mail"})
	hears(t, "of a commit of another process", mail)
	select {
	case <-print:
		t.Error("who watches another topic was woken")
	default:
	}
	var many []string
	for i := range 200 {
		many = append(many, fmt.Sprint("topic ", i, someName(), someName(), someName()))
	}
	s.powers.hints.hint(many)
	hears(t, "of more topics than there is room for, of which this may be one", print)
}

func TestHintsThatComeTogetherAreTakenAsOne(t *testing.T) {
	dsn := pgtest.Database(t)
	s, other := openAt(t, dsn, Options{}), openAt(t, dsn, Options{})
	s.powers.hints.waits.gather = 100 * time.Millisecond
	hints, stop := other.Watch([]string{"last"})
	defer stop()
	hears(t, "when it begins to listen", hints)
	for range 500 {
		s.powers.hints.hint([]string{"mail"})
	}
	s.powers.hints.hint([]string{"last"})
	hears(t, "of the last", hints)
	if n := other.powers.hints.heard.notes.Load(); n > 10 {
		t.Errorf("501 hints were %d notes", n)
	}
}

// deafConn is a connection that can be made to carry nothing any more towards this end, while both ends believe that it is there.
type deafConn struct {
	net.Conn
	deaf atomic.Bool
}

func (c *deafConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !c.deaf.Load() {
			return n, err
		}
	}
}

func TestAListenerThatHasGoneDeafNotices(t *testing.T) {
	dsn := pgtest.Database(t)
	s, other := openAt(t, dsn, Options{}), openAt(t, dsn, Options{})
	h := other.powers.hints
	h.waits.silence, h.waits.echo = 100*time.Millisecond, 500*time.Millisecond
	h.direct = h.direct.Copy()
	dialed := make(chan *deafConn, 100)
	dial := h.direct.DialFunc
	h.direct.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		c := &deafConn{Conn: conn}
		dialed <- c
		return c, nil
	}
	hints, stop := other.Watch([]string{"mail"})
	defer stop()
	hears(t, "when it begins to listen", hints)
	(<-dialed).deaf.Store(true)
	hears(t, "when it listens again, since nobody knows what was missed", hints)
	if n := h.heard.connected.Load(); n < 2 {
		t.Fatalf("it has begun to listen %d times", n)
	}
	s.powers.hints.hint([]string{"mail"})
	hears(t, "of a commit, after it listens again", hints)
}

// One that hears itself stays where it is, however quiet all others are.
func TestAListenerThatHearsItselfStays(t *testing.T) {
	s := openAt(t, pgtest.Database(t), Options{})
	h := s.powers.hints
	h.waits.silence, h.waits.echo = 20*time.Millisecond, patienceOfTests
	hints, stop := s.Watch([]string{"mail"})
	defer stop()
	hears(t, "when it begins to listen", hints)
	for deadline := time.Now().Add(patienceOfTests); h.heard.notes.Load() < 5; {
		if time.Now().After(deadline) {
			t.Fatalf("it heard itself %d times", h.heard.notes.Load())
		}
		_ = pause(t.Context(), time.Millisecond)
	}
	if n := h.heard.connected.Load(); n != 1 {
		t.Errorf("it has begun to listen %d times", n)
	}
	select {
	case <-hints:
		t.Error("it woke somebody by hearing itself")
	default:
	}
}

func TestReadersGoOnAfterTheServerWasKilled(t *testing.T) {
	server := pgtest.NewServer(t, pgtest.Options{})
	s := openAt(t, server.DSN(), Options{ReadPatience: 50 * time.Millisecond})
	first := newHand(t, s).commit("a")
	if got := numbers(read(t, s, "", store.Filter{})); !slices.Equal(got, []int64{first}) {
		t.Fatalf("transactions %v, want [%d]", got, first)
	}
	fill := make([]*pgxpool.Conn, s.options.MaxConns)
	for i := range fill {
		var err error
		if fill[i], err = s.pool.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, conn := range fill {
		conn.Release()
	}
	lives(t, s)
	was := s.powers.horizon.server
	server.Kill9()
	server.Start()

	// All connections of the pool are lost, and what the server said of its numbers is worth nothing any more.
	stuck := newHand(t, s)
	stuck.begin()
	stuck.draw()
	second := newHand(t, s).commit("a")
	list := read(t, s, "", store.Filter{})
	if now := s.powers.horizon.server; now == was || now == "" {
		t.Errorf("the server is %q, it was %q before it was started again", now, was)
	}
	if got := numbers(list); slices.Contains(got, second) {
		t.Errorf("transactions %v were read while one may still commit", got)
	}
	stuck.do("ROLLBACK")
	if got := numbers(read(t, s, "", store.Filter{})); !slices.Equal(got, []int64{first, second}) {
		t.Errorf("transactions %v, want [%d %d]", got, first, second)
	}
	lives(t, s)
}
