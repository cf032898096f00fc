package storetest_test

import (
	"cmp"
	"context"
	"iter"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/google/uuid"
)

// lockEngines are broken in what a store does with locks, permits, those who wait, beats and leases.
func lockEngines() []broken {
	return slices.Concat(brokenLocks(), brokenPermits(), brokenWaits(), brokenPowers())
}

func brokenLocks() []broken {
	const rests = "of what rests the newest event that moved it is given alone"
	return []broken{
		{"loses permits", "a claim takes its message's lock, and a settlement gives it back", changes(func(c *store.Changes) { c.Permits = nil })},
		{"keeps free locks", "a lock that is free and not configured has no row, and its version goes on", lockRows(func(c *store.Change) { c.Gone = false })},
		{"begins free locks anew", "a lock that is free and not configured has no row, and its version goes on", views(hideLocks)},
		{"drops configured locks", "a lock that was configured keeps its row", lockRows(func(c *store.Change) { c.Gone = c.Row.State == events.Free })},
		{"gives more than the newest event", rests, views(func(v *store.View) {
			for e, history := range v.History {
				v.History[e] = append(history, history...)
			}
		})},
		{"hides locks", "a lock is given as it is, whoever asks for it and how often", views(hideLocks)},
		{"hides locks of messages", "with a claimable message comes its lock", views(hideLocks)},
		{"loses tokens of claims", "a known claim is settled with its permit, whether its row still stands or not", changedRows(func(r *store.Row) { r.LockToken = 0 })},
		{"never sees who holds", "concurrent claims never hold more permits than their lock has", views(hideHeld)},
		{"never sees who holds in other processes", "processes never hold more permits together than a lock has", views(hideHeld)},
		{"leaves permits to the dead", "what a worker holds is given back page by page, claims and permits", views(func(v *store.View) { v.Permits = nil })},
		{"loses who waits", "a row comes back as it was kept", changedRows(func(r *store.Row) { r.Waiting = store.NotWaiting })},
		{"loses locks of messages", "a row comes back as it was kept", changedRows(func(r *store.Row) { r.Lock = "" })},
		{"loses what stands beside the rows", "locks, permits and who waits are there after the store was closed", changes(func(c *store.Changes) { c.Permits = nil })},
	}
}

func brokenPermits() []broken {
	twice := views(func(v *store.View) { v.Permits = append(v.Permits, v.Permits...) })
	return []broken{
		{"rounds times of permits", "a permit comes back as it was kept", changes(func(c *store.Changes) {
			for i, p := range c.Permits {
				c.Permits[i].Permit.ExpiresAt = p.Permit.ExpiresAt.Truncate(time.Millisecond)
			}
		})},
		{"gives permits twice", "permits are given by their keys, those of them that are out", twice},
		{"gives permits of a lock by token", "permits of a lock come in pages: those that expire first, then the oldest", calls(byToken)},
		{"gives a worker's permits twice", "permits of a worker come with its claims in pages, the oldest first, each once", twice},
		{"gives more than a page", "permits of a worker come with its claims in pages, the oldest first, each once", calls(func(c *store.Call) {
			c.Need.Claims = slices.Clone(c.Need.Claims)
			for i := range c.Need.Claims {
				c.Need.Claims[i].N++
			}
		})},
		{"hides who waits from the dead", "with a worker's permits come their locks, and who waits for them", views(func(v *store.View) { clear(v.Waiting) })},
		{"hides who waits for a lock that is named", "who waits comes with a lock of claims also where the call names the lock",
			views(func(v *store.View) { clear(v.Waiting) })},
		{"hides locks of the dead", "with a worker's permits come their locks, and who waits for them", views(hideLocks)},
		{"takes no notice of permits", "a permit that is given out twice, or taken back when it is not out, refuses its call", changes(func(c *store.Changes) { c.Permits = nil })},
		{"keeps what was refused", "what is refused leaves every permit as it was", calls(func(c *store.Call) {
			fn := c.Fn
			c.Fn = func(v store.View) (store.Changes, error) {
				changes, _ := fn(v)
				return changes, nil
			}
		})},
		{"forgets ids of permits", "a commit id that is used twice takes one permit", calls(func(c *store.Call) { c.ID = uuid.Must(uuid.NewV7()) })},
		{"draws one token for ever", "tokens that are drawn rise over all calls and locks", views(func(v *store.View) { v.Fence = 1 })},
		{"never sees who holds in one Decide", "a later call sees the permits that earlier ones moved", views(hideHeld)},
		{"draws the same token for many", "concurrent calls never draw one token twice", views(func(v *store.View) { v.Fence = v.Fence/10 + 1 })},
		{"draws tokens in each process", "tokens of permits rise over processes, and after the store was closed", func(s store.Store) store.Store {
			drawn := events.Token(0)
			return views(func(v *store.View) { drawn++; v.Fence = drawn })(s)
		}},
		{"yields permits backwards", "Permits yields those that are out, by lock, then token", permitLists(func(list []store.Permit) []store.Permit {
			slices.Reverse(list)
			return list
		})},
		{"lists permits of every lock", "Permits filters by lock, worker and time, all at once", permitFilters(func(f *store.PermitFilter) { f.Lock = "" })},
		{"lists permits of every worker", "Permits filters by lock, worker and time, all at once", permitFilters(func(f *store.PermitFilter) { f.Worker = events.ID{} })},
		{"lists permits of every time", "Permits filters by lock, worker and time, all at once", permitFilters(func(f *store.PermitFilter) { f.ExpiredAt = time.Time{} })},
		{"ends permits a moment late", "Permits filters by lock, worker and time, all at once", permitFilters(func(f *store.PermitFilter) {
			if !f.ExpiredAt.IsZero() {
				f.ExpiredAt = f.ExpiredAt.Add(-time.Microsecond)
			}
		})},
		{"lists one page of permits", "Permits holds nothing while the caller's loop body runs", permitLists(func(list []store.Permit) []store.Permit { return list[:min(500, len(list))] })},
	}
}

func brokenWaits() []broken {
	all := func(of store.Selection) func(store.Store) store.Store {
		return rowFilters(func(f *store.RowFilter) {
			if f.Select == of {
				f.Kind, f.Select = events.KindMessage, store.All
			}
		})
	}
	return []broken{
		{"hides who waits", "with a lock comes, of each topic, the first that is blocked and the first that is trying", views(func(v *store.View) { clear(v.Waiting) })},
		{"hides who tries", "with a lock comes, of each topic, the first that is blocked and the first that is trying", views(func(v *store.View) {
			for lock, rows := range v.Waiting {
				v.Waiting[lock] = slices.DeleteFunc(slices.Clone(rows), func(r store.Row) bool { return r.Waiting == store.Trying })
			}
		})},
		{"lets all wait alike", "who waits for a lock stands by priority, then place of enqueueing", changedRows(func(r *store.Row) { r.Priority = events.Normal })},
		{"remembers who waited", "a later call sees who waits after the earlier ones", remembering},
		{"hides who waits from who tries", "with a message that is trying comes who waits for its lock", views(func(v *store.View) {
			if len(v.Claimable) > 0 {
				clear(v.Waiting)
			}
		})},
		{"lets the dead wait", "a message that has ended waits no more", changes(func(c *store.Changes) {
			for i := range c.Rows {
				if row := &c.Rows[i].Row; row.State == events.Cancelled {
					row.Waiting, c.Rows[i].Gone = store.Blocked, false
				}
			}
		})},
		{"selects every claim", "Rows selects the oldest claim of each worker", all(store.FirstClaims)},
		{"selects all who wait", "Rows selects the first that is blocked of each lock and topic", all(store.FirstWaits)},
		{"selects without payloads", "Rows selects the first that is blocked of each lock and topic", rowFilters(func(f *store.RowFilter) { f.Payloads = false })},
	}
}

func brokenPowers() []broken {
	own := func(s store.Store) store.Store { return &landlord{Store: s, own: map[string]store.Lease{}} }
	const kept = "a turn is given the lease that was kept last, or none where nobody ever had it"
	return []broken{
		{"forgets when to fence", "the first beat makes a row, later ones renew it", func(s store.Store) store.Store { return fenceless{s} }},
		{"gives no beats", "Fn is given the newest beats that it named", views(func(v *store.View) { clear(v.Beats) })},
		{"gives no beats with claims", "with a worker's claims comes its newest beat", views(func(v *store.View) { clear(v.Beats) })},
		{"forgets when it swept", kept, leases(func(_ *string, t turn) turn {
			return func(l store.Lease, now time.Time) store.Lease { l = t(l, now); l.SweptAt = time.Time{}; return l }
		})},
		{"forgets leases", kept, leases(func(_ *string, t turn) turn {
			return func(_ store.Lease, now time.Time) store.Lease { return t(store.Lease{}, now) }
		})},
		{"gives another time", "a turn is given the store's time", leases(func(_ *string, t turn) turn {
			return func(l store.Lease, now time.Time) store.Lease { return t(l, now.Add(-time.Hour)) }
		})},
		{"has one lease", "leases of two names are two", leases(func(name *string, t turn) turn { *name = "all"; return t })},
		{"gives terms twice", "turns at once are one after the other", leases(func(_ *string, t turn) turn {
			return func(l store.Lease, now time.Time) store.Lease { l.Term -= l.Term % 2; return t(l, now) }
		})},
		{"records leases", "a lease is no event", func(s store.Store) store.Store { return scribe{s} }},
		{"keeps leases for itself", "turns of several processes are one after the other", own},
		{"takes leases with it", "a lease is there after the store was closed", own},
		{"takes every turn", "a turn whose context has ended is not taken", own},
		{"reads permits for ever", "a context that has ended withdraws everything", func(s store.Store) store.Store { return patient{s} }},
		{"yields permits after its end", "a second Close does nothing, and calls after it are ErrClosed", func(s store.Store) store.Store { return patient{s} }},
	}
}

func hideLocks(v *store.View) {
	for e := range v.Rows {
		if e.Kind == events.KindLock {
			delete(v.Rows, e)
		}
	}
	for e := range v.History {
		if e.Kind == events.KindLock {
			delete(v.History, e)
		}
	}
}

var heldField = regexp.MustCompile(`,"held":[0-9]+`)

func hideHeld(v *store.View) {
	for e, row := range v.Rows {
		if e.Kind == events.KindLock {
			row.Fields = heldField.ReplaceAll(row.Fields, nil)
			v.Rows[e] = row
		}
	}
}

// changedRows is an engine that keeps other rows than it was told to.
func changedRows(f func(*store.Row)) func(store.Store) store.Store {
	return changes(func(c *store.Changes) {
		c.Rows = slices.Clone(c.Rows) // Fn's may be a test's own
		for i := range c.Rows {
			f(&c.Rows[i].Row)
		}
	})
}

func lockRows(f func(*store.Change)) func(store.Store) store.Store {
	return changes(func(c *store.Changes) {
		c.Rows = slices.Clone(c.Rows)
		for i := range c.Rows {
			if c.Rows[i].Row.Entity.Kind == events.KindLock {
				f(&c.Rows[i])
			}
		}
	})
}

// byToken has a call's pages of permits filled in the order of their tokens.
func byToken(c *store.Call) {
	pages, fn := c.Need.Holders, c.Fn
	c.Need.Holders = slices.Clone(pages)
	for i := range pages {
		c.Need.Holders[i].N = 1 << 20
	}
	c.Fn = func(v store.View) (store.Changes, error) {
		slices.SortFunc(v.Permits, func(a, b store.Permit) int { return cmp.Compare(a.Token, b.Token) })
		var list []store.Permit
		for _, page := range pages {
			for _, p := range v.Permits {
				if p.Lock == page.Lock && page.N > 0 {
					list = append(list, p)
					page.N--
				}
			}
		}
		v.Permits = list
		return fn(v)
	}
}

// remembering is an engine that gives for ever who once waited.
func remembering(s store.Store) store.Store {
	remembered := map[string][]store.Row{}
	return views(func(v *store.View) {
		for lock, rows := range v.Waiting {
			if len(remembered[lock]) == 0 {
				remembered[lock] = rows
			}
			v.Waiting[lock] = remembered[lock]
		}
	})(s)
}

func permitFilters(f func(*store.PermitFilter)) func(store.Store) store.Store {
	return func(s store.Store) store.Store { return bent{Store: s, permits: f} }
}

func permitLists(f func([]store.Permit) []store.Permit) func(store.Store) store.Store {
	return func(s store.Store) store.Store { return bent{Store: s, permit: f} }
}

func (b bent) Permits(ctx context.Context, f store.PermitFilter) iter.Seq2[store.Permit, error] {
	if b.permits != nil {
		b.permits(&f)
	}
	if b.permit == nil {
		return b.Store.Permits(ctx, f)
	}
	return func(yield func(store.Permit, error) bool) {
		var list []store.Permit
		for p, err := range b.Store.Permits(ctx, f) {
			if err != nil {
				yield(p, err)
				return
			}
			list = append(list, p)
		}
		for _, p := range b.permit(list) {
			if !yield(p, nil) {
				return
			}
		}
	}
}

// turn is what a caller makes of a lease.
type turn = func(store.Lease, time.Time) store.Lease

// lessor is an engine whose leases are changed on their way.
type lessor struct {
	store.Store
	bend func(*string, turn) turn
}

func leases(f func(*string, turn) turn) func(store.Store) store.Store {
	return func(s store.Store) store.Store { return lessor{s, f} }
}

func (l lessor) Unwrap() store.Store { return l.Store }

func (l lessor) Lease(ctx context.Context, name string, t turn) (store.Lease, error) {
	leaser, _ := store.As[store.Leaser](l.Store)
	t = l.bend(&name, t)
	return leaser.Lease(ctx, name, t)
}

// scribe is an engine that has an event for every turn.
type scribe struct{ store.Store }

func (s scribe) Unwrap() store.Store { return s.Store }

func (s scribe) Lease(ctx context.Context, name string, t turn) (store.Lease, error) {
	change := store.Change{
		Row:         store.Row{Entity: events.LeaderEntity(name), Version: 1, State: events.Led, Fields: []byte("{}")},
		Transitions: []events.Transition{{Event: &events.LeaderElected{Term: 1}, Version: 1, To: events.Led}},
	}
	_, err := s.Decide(ctx, store.Call{ID: uuid.Must(uuid.NewV7()), Fn: func(store.View) (store.Changes, error) {
		return store.Changes{Rows: []store.Change{change}}, nil
	}})
	if err != nil {
		return store.Lease{}, err
	}
	leaser, _ := store.As[store.Leaser](s.Store)
	return leaser.Lease(ctx, name, t)
}

// landlord is an engine that keeps leases where no other process sees them, and gives them to anybody at any time.
type landlord struct {
	store.Store
	mu  sync.Mutex
	own map[string]store.Lease
}

func (l *landlord) Unwrap() store.Store { return l.Store }

func (l *landlord) Lease(_ context.Context, name string, t turn) (store.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.own[name] = t(l.own[name], time.Now().UTC().Truncate(time.Microsecond))
	return l.own[name], nil
}

// fenceless is an engine that keeps not all of a beat.
type fenceless struct{ store.Store }

func (f fenceless) Unwrap() store.Store { return f.Store }

func (f fenceless) heart() store.Heart {
	heart, _ := store.As[store.Heart](f.Store)
	return heart
}

func (f fenceless) Beat(ctx context.Context, b store.Beat) (time.Time, error) {
	b.FenceAfter = 0
	return f.heart().Beat(ctx, b)
}

func (f fenceless) Beats(ctx context.Context) ([]store.Beat, error) { return f.heart().Beats(ctx) }

func (f fenceless) Still(ctx context.Context, worker events.ID) error {
	return f.heart().Still(ctx, worker)
}

// patient is an engine whose permits are read whatever its context says, and after its end.
type patient struct{ store.Store }

func (patient) Permits(context.Context, store.PermitFilter) iter.Seq2[store.Permit, error] {
	return func(func(store.Permit, error) bool) {}
}
