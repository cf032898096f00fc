package storetest_test

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
	"github.com/foundling-go/foundling/store/storetest"
	"github.com/google/uuid"
)

// broken is an engine with one fault, and the sentence of the contract that it breaks.
type broken struct {
	name   string
	breaks string
	engine func(store.Store) store.Store
}

// healthy is the engine that a broken one would be without its fault.
func (b broken) healthy(s store.Store) store.Store {
	if _, powerless := b.engine(s).(mute); powerless {
		return bare{s}
	}
	return s
}

func engines() []broken {
	return slices.Concat(plainEngines(), lockEngines(), rowEngines(), pruningEngines(), shelfEngines())
}

// plainEngines are broken in what every store had to do before there were locks.
func plainEngines() []broken {
	return []broken{
		{"forgets ids", "a commit id that is used twice has one effect", calls(func(c *store.Call) { c.ID = uuid.Must(uuid.NewV7()) })},
		{"gives another receipt later", "a receipt is derived from the commit's events", receipts(func(r *store.Receipt) {
			if len(r.Rows) == 0 {
				r.Events = nil
			}
		})},
		{"loses the command", "a receipt is derived from the commit's events", calls(func(c *store.Call) { c.Command.Params = nil })},
		{"loses what was refused", "a refused call keeps the error of its Fn", receipts(func(r *store.Receipt) {
			if r.Err != nil {
				r.Err = errors.New("refused")
			}
		})},
		{"names no bound", "a commit of the most events is kept, one more is too large", receipts(func(r *store.Receipt) {
			if r.Err != nil {
				r.Err = store.ErrTooLarge
			}
		})},
		{"does not void", "Outcome of an unused id makes it unusable", func(s store.Store) store.Store { return forgetful{s} }},
		{"knows no outcome", "Outcome of a used id is its receipt", func(s store.Store) store.Store { return forgetful{s} }},
		{"claims backwards", "messages are claimed in order of priority, due time and place of enqueueing", views(func(v *store.View) {
			for _, page := range v.Claimable {
				slices.Reverse(page)
			}
		})},
		{"claims by id", "messages are claimed in order of priority, due time and place of enqueueing", views(func(v *store.View) {
			for _, page := range v.Claimable {
				slices.SortFunc(page, func(a, b store.Row) int {
					return cmp.Or(cmp.Compare(a.Priority, b.Priority), a.DueAt.Compare(b.DueAt), a.Entity.Compare(b.Entity))
				})
			}
		})},
		{"claims too few", "a claim is given up to N messages of each of its topics", views(func(v *store.View) {
			for topic, page := range v.Claimable {
				v.Claimable[topic] = page[:min(1, len(page))]
			}
		})},
		{"claims without payloads", "a claim is given up to N messages of each of its topics", views(func(v *store.View) {
			for _, page := range v.Claimable {
				for i := range page {
					page[i].Payload = nil
				}
			}
		})},
		{"tells more than a commit kept", "commits that were kept together are answered together as they were", tellingMore},
		{"gives what is known for what is so", "a known row that has gone is not given, whatever else is decided with it", calls(func(c *store.Call) {
			fn, known := c.Fn, c.Need.Known
			c.Fn = func(v store.View) (store.Changes, error) {
				for _, row := range known {
					v.Rows[row.Entity] = row
				}
				return fn(v)
			}
		})},
		{"gives claims without payloads", "a claim comes with its payload also where a later call has ended its message", receipts(func(r *store.Receipt) {
			for i := range r.Rows {
				r.Rows[i].Payload = nil
			}
		})},
		{"loses claims", "open claims of a worker come in pages, oldest first", views(func(v *store.View) { clear(v.Claims) })},
		{"loses uncounted claims", "open claims that do not count come in pages", views(func(v *store.View) { clear(v.Uncounted) })},
		{"loses history", "Fn is given the history of what has ended", views(func(v *store.View) { clear(v.History) })},
		{"loses keys", "a key is taken by one message of its topic at a time", views(func(v *store.View) { clear(v.Keys) })},
		{"decides at another time", "Fn is given the store's time, which the commit carries", views(func(v *store.View) { v.Now = v.Now.Add(-time.Microsecond) })},
		{"never sees who runs", "concurrent claims never exceed a topic's limit", views(func(v *store.View) {
			for entity, row := range v.Rows {
				row.Running = 0
				v.Rows[entity] = row
			}
		})},
		{"loses counts", "running counts add up", changes(func(c *store.Changes) { c.Counts = nil })},
		{"changes payloads", "Rows gives payloads where they are asked for", changes(func(c *store.Changes) {
			for i := range c.Rows {
				if p := c.Rows[i].Payload; p != nil {
					c.Rows[i].Payload = &store.Payload{Salt: p.Salt, Bytes: []byte(strings.ToUpper(string(p.Bytes)))}
				}
			}
		})},
		{"keeps what has ended", "what is not kept any more is in no row", changes(func(c *store.Changes) {
			for i := range c.Rows {
				c.Rows[i].Gone = false
			}
		})},
		{"receipts without rows", "a receipt's rows are those that are kept after it", receipts(func(r *store.Receipt) { r.Rows = nil })},
		{"reads too little", "the zero cursor is the beginning, the head is the end", reads(func(list []events.Recorded) []events.Recorded { return list[:max(0, len(list)-1)] })},
		{"reads out of order", "the order of the log never changes", reads(func(list []events.Recorded) []events.Recorded {
			slices.SortStableFunc(list, func(a, b events.Recorded) int { return a.Entity.Compare(b.Entity) })
			return list
		})},
		{"reads over the limit", "Read filters by entity, type and number", filters(func(f *store.Filter) { f.Limit = 0 })},
		{"reads every type", "Read filters by entity, type and number", filters(func(f *store.Filter) { f.Types = nil })},
		{"reads every entity", "Read filters by entity, type and number", filters(func(f *store.Filter) { f.Entity = events.Entity{} })},
		{"reads other bytes", "every event comes back byte for byte", reads(func(list []events.Recorded) []events.Recorded {
			for i, r := range list {
				if e, ok := r.Event.(*events.MessageRequeued); ok {
					rounded := *e
					rounded.DueAt = e.DueAt.Truncate(time.Millisecond)
					list[i].Event = &rounded
				}
			}
			return list
		})},
		{"lists every topic", "Rows filters by kind, entity, topic and worker, all at once", rowFilters(func(f *store.RowFilter) { f.Topic = "" })},
		{"lists every kind", "Rows filters by kind, entity, topic and worker, all at once", rowFilters(func(f *store.RowFilter) { f.Kind = events.KindNone })},
		{"lists every worker", "Rows filters by kind, entity, topic and worker, all at once", rowFilters(func(f *store.RowFilter) { f.Worker = events.ID{} })},
		{"forgets its context", "a context that has ended withdraws everything", func(s store.Store) store.Store { return tireless{s} }},
		{"has a fine clock", "Now is in whole microseconds and does not go back", func(s store.Store) store.Store { return fine{s} }},
	}
}

// suite is the suite for an engine made of several processes that share one memory.
func suite(engine func(store.Store) store.Store) storetest.Suite {
	return storetest.Suite{
		Light: true, // store/memory is tried by its own tests
		Open:  func(*testing.T) store.Store { return engine(newProcess(memory.New(memory.Options{}))) },
		OpenAt: func(_ *testing.T, clock func() time.Time) store.Store {
			return engine(newProcess(memory.New(memory.Options{Clock: clock})))
		},
		Again: func(_ *testing.T, s store.Store) store.Store {
			p, ok := store.As[process](s)
			if !ok {
				panic("the process behind the engine is out of reach")
			}
			return engine(newProcess(p.memory))
		},
	}
}

func sane(s store.Store) store.Store { return s }

// A suite that finds nothing proves nothing: each broken engine fails its sentence, which holds for the same engine while it is not broken.
func TestSuiteFindsWhatIsBroken(t *testing.T) {
	holds := map[string]bool{}
	for _, b := range engines() {
		if !holds[b.breaks] {
			v := suite(b.healthy).Try(t.Context(), b.breaks)
			if !v.Known || !v.Ended || len(v.Said) > 0 || v.Panic != "" {
				t.Fatalf("an engine that is not broken: %q: %+v", b.breaks, v)
			}
			holds[b.breaks] = true
		}
		if v := suite(b.engine).Try(t.Context(), b.breaks); !v.Ended || len(v.Said) == 0 || v.Panic != "" {
			t.Errorf("an engine that %s passed %q: %+v", b.name, b.breaks, v)
		}
	}
}

// What a sentence says of a broken engine fails the test that the suite runs in. As a failed test cannot be taken back, it runs in a process of
// its own.
func TestSuiteFailsTheTestOfABrokenEngine(t *testing.T) {
	const variable, says = "FOUNDLING_TEST_BROKEN_ENGINE", "a key is taken by one message of its topic at a time"
	at := slices.IndexFunc(engines(), func(b broken) bool { return b.breaks == says })
	if os.Getenv(variable) != "" {
		suite(engines()[at].engine).Run(t)
		return
	}
	const holds = "running counts add up"
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run", "^"+t.Name()+"$/^("+says+"|"+holds+")$")
	cmd.Env = append(os.Environ(), variable+"=1")
	out, err := cmd.CombinedOutput()
	test := func(says string) string { return t.Name() + "/" + strings.ReplaceAll(says, " ", "_") }
	if err == nil || !strings.Contains(string(out), "--- FAIL: "+test(says)) || !strings.Contains(string(out), "--- PASS: "+test(holds)) {
		t.Errorf("error %v\n%s", err, out)
	}
}

// bent is an engine whose calls, receipts and filters are changed on their way.
type bent struct {
	store.Store
	call    func(*store.Call)
	receipt func(*store.Receipt)
	filter  func(*store.Filter)
	rows    func(*store.RowFilter)
	read    func([]events.Recorded) []events.Recorded
	permits func(*store.PermitFilter)
	permit  func([]store.Permit) []store.Permit
}

func (b bent) Unwrap() store.Store { return b.Store }

func calls(f func(*store.Call)) func(store.Store) store.Store {
	return func(s store.Store) store.Store { return bent{Store: s, call: f} }
}

func receipts(f func(*store.Receipt)) func(store.Store) store.Store {
	return func(s store.Store) store.Store { return bent{Store: s, receipt: f} }
}

// tellingMore is an engine that tells the events of a commit twice where it is asked again.
func tellingMore(s store.Store) store.Store {
	told := map[store.CommitID]bool{}
	return receipts(func(r *store.Receipt) {
		if told[r.ID] {
			r.Events = append(slices.Clone(r.Events), r.Events...)
		}
		told[r.ID] = true
	})(s)
}

func filters(f func(*store.Filter)) func(store.Store) store.Store {
	return func(s store.Store) store.Store { return bent{Store: s, filter: f} }
}

func rowFilters(f func(*store.RowFilter)) func(store.Store) store.Store {
	return func(s store.Store) store.Store { return bent{Store: s, rows: f} }
}

func reads(f func([]events.Recorded) []events.Recorded) func(store.Store) store.Store {
	return func(s store.Store) store.Store { return bent{Store: s, read: f} }
}

func views(f func(*store.View)) func(store.Store) store.Store {
	return calls(func(c *store.Call) {
		fn := c.Fn
		c.Fn = func(v store.View) (store.Changes, error) {
			f(&v)
			return fn(v)
		}
	})
}

func changes(f func(*store.Changes)) func(store.Store) store.Store {
	return calls(func(c *store.Call) {
		fn := c.Fn
		c.Fn = func(v store.View) (store.Changes, error) {
			changes, err := fn(v)
			f(&changes)
			return changes, err
		}
	})
}

func (b bent) Decide(ctx context.Context, list ...store.Call) ([]store.Receipt, error) {
	list = slices.Clone(list)
	for i := range list {
		if b.call != nil {
			b.call(&list[i])
		}
	}
	all, err := b.Store.Decide(ctx, list...)
	for i := range all {
		if b.receipt != nil {
			b.receipt(&all[i])
		}
	}
	return all, err
}

func (b bent) Read(ctx context.Context, after store.Cursor, f store.Filter) iter.Seq2[events.Recorded, error] {
	if b.filter != nil {
		b.filter(&f)
	}
	if b.read == nil {
		return b.Store.Read(ctx, after, f)
	}
	return func(yield func(events.Recorded, error) bool) {
		var list []events.Recorded
		for r, err := range b.Store.Read(ctx, after, f) {
			if err != nil {
				yield(r, err)
				return
			}
			list = append(list, r)
		}
		for _, r := range b.read(list) {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (b bent) Rows(ctx context.Context, f store.RowFilter) iter.Seq2[store.Row, error] {
	if b.rows != nil {
		b.rows(&f)
	}
	return b.Store.Rows(ctx, f)
}

// forgetful is an engine whose Outcome knows nothing and is not final.
type forgetful struct{ store.Store }

func (forgetful) Outcome(_ context.Context, id store.CommitID) (store.Receipt, bool, error) {
	return store.Receipt{ID: id}, false, nil
}

// tireless is an engine that commits whatever its context says.
type tireless struct{ store.Store }

func (s tireless) Decide(ctx context.Context, list ...store.Call) ([]store.Receipt, error) {
	return s.Store.Decide(context.WithoutCancel(ctx), list...)
}

// fine is an engine whose time is finer than what it can keep.
type fine struct{ store.Store }

func (s fine) Now(ctx context.Context) (time.Time, error) {
	now, err := s.Store.Now(ctx)
	return now.Add(time.Nanosecond), err
}
