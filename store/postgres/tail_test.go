package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store"
	"github.com/google/uuid"
)

// This file is what a reader of the log is held to while many write: it loses nothing, sees nothing twice, and every stream in its order.

const (
	tailWriters = 24
	tailCallers = 4 // of the store itself, beside them
)

// passage is an event that a tail has seen.
type passage struct {
	position int64
	stream   string
	version  int
}

// tail reads on behind what it read last. It is used by one goroutine.
type tail func(context.Context) ([]passage, error)

// byRead reads as users do.
func byRead(s *Store, f store.Filter) tail {
	cursor := store.Cursor("")
	return func(ctx context.Context) (list []passage, err error) {
		for r, err := range s.Read(ctx, cursor, f) {
			if err != nil {
				return list, err
			}
			list, cursor = append(list, passage{r.Position, r.Entity.String(), r.Version}), s.After(r)
		}
		return list, nil
	}
}

// byPosition is the negative control: it believes that whoever drew a lower position has committed before.
func byPosition(t *testing.T, s *Store) tail {
	h, last := newHand(t, s), int64(0)
	return func(ctx context.Context) (list []passage, err error) {
		rows, err := h.conn.Query(ctx, s.sql("SELECT position, encode(stream, 'escape'), version FROM @events WHERE position > $1 ORDER BY position"), last)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		for rows.Next() {
			var p passage
			if err := rows.Scan(&p.position, &p.stream, &p.version); err != nil {
				return list, err
			}
			list, last = append(list, p), p.position
		}
		return list, rows.Err()
	}
}

// storm is many writers at once, each with its own ways.
type storm struct {
	hands []*hand

	mu        sync.Mutex
	committed map[int64]int // numbers of the transactions that were, with how many events each has
	rolled    int
	decided   int
}

// newStorm is writers that are ready to begin.
func newStorm(t *testing.T, into *Store) *storm {
	s := &storm{committed: map[int64]int{}}
	for range tailWriters {
		s.hands = append(s.hands, newHand(t, into))
	}
	return s
}

// enough is how many transactions prove something. On a machine that is busy with others they take longer.
const enough = 200

// goesOn reports whether the writers have not done enough yet.
func (s *storm) goesOn(until time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	return now.Before(until) || len(s.committed) < enough && now.Before(until.Add(patienceOfTests))
}

// patienceOfTests is how long a test waits for what must come before it fails.
const patienceOfTests = 20 * time.Second

// blow has the writers write for a time. What is given is closed when all have ended.
func (s *storm) blow(d time.Duration) <-chan struct{} {
	done, until := make(chan struct{}), time.Now().Add(d)
	var writers sync.WaitGroup
	for i, h := range s.hands {
		random := rand.New(rand.NewPCG(uint64(i), 7))
		writers.Go(func() {
			for s.goesOn(until) && !h.t.Failed() {
				s.gust(h, random)
			}
		})
	}
	go func() {
		writers.Wait()
		close(done)
	}()
	return done
}

// decide has callers of the store itself write beside the others until those have ended.
func (s *storm) decide(t *testing.T, into *Store, done <-chan struct{}) *sync.WaitGroup {
	var callers sync.WaitGroup
	for i := range tailCallers {
		callers.Go(func() {
			for n := 0; !t.Failed(); n++ {
				select {
				case <-done:
					return
				default:
				}
				id, err := uuid.NewV7()
				if err != nil {
					t.Error(err)
					return
				}
				command := fsm.OperateTopic{Topic: fmt.Sprintf("d%d", (i+n)%5), Command: fsm.ConfigureTopic{Limit: n + 1}}
				receipts, err := into.Decide(t.Context(), calls.OperateTopic(calls.Origin{ID: id}, command))
				if err != nil || receipts[0].Err != nil || len(receipts[0].Events) == 0 {
					t.Errorf("decide: %+v, error %v", receipts, err)
					return
				}
				s.mu.Lock()
				s.committed[numberOf(receipts[0].Events[0].Position)] = len(receipts[0].Events)
				s.decided++
				s.mu.Unlock()
			}
		})
	}
	return &callers
}

// gust is one transaction: it writes first, and appends soon or late; it commits soon or late, or not at all.
func (s *storm) gust(h *hand, random *rand.Rand) {
	h.begin()
	var topics []string
	for range 1 + random.IntN(3) {
		topics = append(topics, fmt.Sprintf("t%02d", random.IntN(40)))
	}
	slices.Sort(topics)
	topics = slices.Compact(topics)
	for _, topic := range topics {
		h.hold(topic)
	}
	if random.IntN(3) == 0 {
		h.do("SELECT pg_sleep($1)", random.Float64()*0.005)
	}
	number := h.draw()
	h.append(number)
	if random.IntN(4) == 0 {
		h.do("SELECT pg_sleep($1)", random.Float64()*0.01)
	}
	if random.IntN(6) == 0 {
		h.do("ROLLBACK")
		s.mu.Lock()
		s.rolled++
		s.mu.Unlock()
		return
	}
	h.do("COMMIT")
	s.mu.Lock()
	s.committed[number] = len(topics)
	s.mu.Unlock()
}

// watch has a tail read until the writers have ended and nothing more comes.
func watch(ctx context.Context, done <-chan struct{}, read tail) (seen []passage, err error) {
	for over := false; ; {
		select {
		case <-done:
			over = true
		default:
		}
		list, err := read(ctx)
		if seen = append(seen, list...); err != nil || over {
			return seen, err
		}
	}
}

// wrong is what is wrong with what a tail has seen of what was committed; empty where nothing is.
func (s *storm) wrong(seen []passage, only string) (faults []string) {
	found, versions, last := map[int64]int{}, map[string]int{}, int64(0)
	for _, p := range seen {
		if p.position <= last {
			faults = append(faults, fmt.Sprintf("position %d came behind %d", p.position, last))
		}
		if p.version != versions[p.stream]+1 {
			faults = append(faults, fmt.Sprintf("%s: version %d came behind %d", p.stream, p.version, versions[p.stream]))
		}
		found[numberOf(p.position)]++
		versions[p.stream], last = p.version, p.position
	}
	for number, count := range s.committed {
		if found[number] != count && only == "" {
			faults = append(faults, fmt.Sprintf("transaction %d: %d of %d events were seen", number, found[number], count))
		}
		delete(found, number)
	}
	for number, count := range found {
		faults = append(faults, fmt.Sprintf("transaction %d: %d events were seen of what was never committed", number, count))
	}
	return faults
}

// last is the version that a topic has come to.
func (h *hand) last(topic string) (version int) {
	h.t.Helper()
	if err := h.conn.QueryRow(context.Background(), h.s.sql("SELECT version FROM @topics WHERE name = $1"), topic).Scan(&version); err != nil {
		h.t.Error(err)
	}
	return version
}

func TestTailLosesNothingWhileManyWrite(t *testing.T) {
	dsn := pgtest.Database(t)
	s := openAt(t, dsn, Options{ReadPatience: 20 * time.Second})
	other := openAt(t, dsn, Options{ReadPatience: 20 * time.Second})
	impatient := openAt(t, dsn, Options{ReadPatience: time.Microsecond})
	hot := events.TopicEntity("t07")
	tails := []struct {
		what string
		only string // events of this entity alone
		tail tail
	}{
		{"the whole log", "", byRead(s, store.Filter{})},
		{"the whole log in another process", "", byRead(other, store.Filter{})},
		{"the whole log without patience", "", byRead(impatient, store.Filter{})},
		{"one entity", hot.String(), byRead(s, store.Filter{Entity: hot})},
		{"pages of three", "", byRead(other, store.Filter{Limit: 3})},
	}
	weather := newStorm(t, s)
	blown, done := weather.blow(2*time.Second), make(chan struct{})
	deciding := weather.decide(t, s, blown)
	go func() {
		<-blown
		deciding.Wait()
		close(done)
	}()
	seen, errs := make([][]passage, len(tails)), make([]error, len(tails))
	var readers sync.WaitGroup
	for i, c := range tails {
		readers.Go(func() { seen[i], errs[i] = watch(t.Context(), done, c.tail) })
	}
	readers.Wait()
	for i, c := range tails {
		for range len(weather.committed) { // what reads a few at a time, or has no patience, has some left
			rest, err := c.tail(t.Context())
			if seen[i] = append(seen[i], rest...); err != nil || len(rest) == 0 {
				break
			}
		}
		if errs[i] != nil {
			t.Errorf("%s: %v", c.what, errs[i])
		}
		if faults := weather.wrong(seen[i], c.only); len(faults) > 0 {
			t.Errorf("%s: %d faults after %d events, first %q", c.what, len(faults), len(seen[i]), faults[:min(5, len(faults))])
		}
		if c.only != "" {
			if got, want := len(seen[i]), newHand(t, s).last("t07"); got != want {
				t.Errorf("%s: %d events were seen, its version is %d", c.what, got, want)
			}
		}
	}
	t.Logf("%d transactions were committed, %d of them by Decide, %d rolled back", len(weather.committed), weather.decided, weather.rolled)
	if len(weather.committed) < enough || weather.rolled < enough/20 || weather.decided == 0 {
		t.Error("these are too few to prove anything")
	}
}

// Whoever reads by position alone fails within a second: so the test above has something to find.
func TestTailByPositionAloneFails(t *testing.T) {
	s := openAt(t, pgtest.Database(t), Options{})
	weather, read := newStorm(t, s), byPosition(t, s)
	done := weather.blow(time.Second)
	seen, err := watch(t.Context(), done, read)
	if err != nil {
		t.Fatal(err)
	}
	faults := weather.wrong(seen, "")
	t.Logf("%d faults over %d transactions", len(faults), len(weather.committed))
	if len(faults) == 0 {
		t.Errorf("nothing was wrong with %d events that were read by position alone", len(seen))
	}
}
