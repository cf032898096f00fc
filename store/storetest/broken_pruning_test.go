package storetest_test

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/google/uuid"
)

// pruningEngines are broken in what they do with contents, with cursors, and with the beginning of the log.
func pruningEngines() []broken {
	return slices.Concat(brokenContents(), brokenCursors(), brokenOffers(), brokenPrunes(), brokenLeftovers())
}

func brokenContents() []broken {
	const erases = "what is erased is gone, and the log stays as it was"
	return []broken{
		{"loses contents", "Contents is the payload of a message, whether it is open or has ended", contents(func(c *store.Contents) { c.Payload = nil })},
		{"loses results", "a result is kept beside the payload when its message completes", changes(func(c *store.Changes) {
			for i := range c.Rows {
				c.Rows[i].Result = nil
			}
		})},
		{"gives results as payloads", "a result is kept beside the payload when its message completes", contents(func(c *store.Contents) {
			if c.Result != nil {
				c.Payload = c.Result
			}
		})},
		{"knows no empty contents", "contents of no bytes are not none", contents(func(c *store.Contents) {
			if c.Result != nil && len(c.Result.Bytes) == 0 {
				c.Result = nil
			}
		})},
		{"takes no large result", "the largest result is kept, one byte more is too large", contents(func(c *store.Contents) {
			if c.Result != nil {
				c.Result.Bytes = c.Result.Bytes[1:]
			}
		})},
		{"takes any contents", "contents that nobody would find again are refused", changes(func(c *store.Changes) {
			c.Rows = slices.Clone(c.Rows)
			for i := range c.Rows {
				c.Rows[i].Payload, c.Rows[i].Result = nil, nil
			}
		})},
		{"erases nothing", erases, changes(func(c *store.Changes) { c.Erase = nil })},
		{"erases the first alone", erases, changes(func(c *store.Changes) { c.Erase = c.Erase[:min(1, len(c.Erase))] })},
		{"remembers what was erased", erases, remembersContents},
		{"erases silently", "an erasure that no event tells of is refused", changes(func(c *store.Changes) { c.Erase = nil })},
		{"shares its contents", "what Contents gives is the caller's", sharesContents},
		{"reads contents for ever", "Contents ends with its context, and with its store", contents(nil)},
	}
}

func brokenCursors() []broken {
	const gone = "a cursor before the oldest kept event is a PrunedError"
	const overtaken = "a reader that is overtaken by a prune is told so, and is given nothing twice or late"
	reading := func(class error, instead func(error) error) func(store.Store) store.Store {
		return func(s store.Store) store.Store { return reader{s, class, instead} }
	}
	none := func(error) error { return nil }
	return []broken{
		{"takes every cursor", "a cursor of another store is ErrCursor", reading(store.ErrCursor, none)},
		{"says not what is wrong with a cursor", "a cursor of another store is ErrCursor", reading(store.ErrCursor, func(error) error { return errors.New("bad cursor") })},
		{"says not what is wrong with a text", "what never was a cursor is ErrCursor", reading(store.ErrCursor, func(error) error { return errors.New("bad cursor") })},
		{"waits for what is to come", "a cursor behind the end of the log is ErrAhead", reading(store.ErrAhead, none)},
		{"has nothing where something was", gone, reading(store.ErrPruned, none)},
		{"says not what is first", gone, reading(store.ErrPruned, func(error) error { return store.ErrPruned })},
		{"begins where it can", gone, func(s store.Store) store.Store { return skipper{s} }},
		{"ends when it is overtaken", overtaken, reading(store.ErrPruned, none)},
		{"skips when it is overtaken", overtaken, func(s store.Store) store.Store { return skipper{s} }},
	}
}

func brokenOffers() []broken {
	const setBack = "what was decided while the clock was ahead counts as of a time that is named, and else keeps what came after it"
	const (
		whole = "whole commits may go, from the oldest on, as many as were asked for but one at least"
		rows  = "what needs a snapshot first are the kept rows with an event among those that may go and no newer one that says all of their state"
		pages = "rows that need a snapshot come in pages, each once"
		upto  = "nothing may go that a cursor has not passed"
		taken = "a cursor that Read would not take refuses the call that asks by it"
	)
	asks := func(f func(*store.Prunable)) func(store.Store) store.Store {
		return calls(func(c *store.Call) { f(&c.Need.Prune) })
	}
	return []broken{
		{"begins elsewhere", "a log that never was pruned begins at the zero cursor", firsts(func(c store.Cursor) store.Cursor { return c + "@0" })},
		{"lets anything go", "nothing may go that nobody asked for", asks(func(p *store.Prunable) { p.Events = max(p.Events, 1) })},
		{"lets half a commit go", whole, views(func(v *store.View) { v.Pruning.Through = max(0, v.Pruning.Through-1) })},
		{"lets too much go", whole, asks(func(p *store.Prunable) {
			if p.Events > 0 {
				p.Events += 2
			}
		})},
		{"lets no large commit go", whole, calls(func(c *store.Call) {
			fn, most := c.Fn, c.Need.Prune.Events
			c.Fn = func(v store.View) (store.Changes, error) {
				if v.Pruning.Events > most {
					v.Pruning = store.Pruning{}
				}
				return fn(v)
			}
		})},
		{"counts no events", whole, views(func(v *store.View) { v.Pruning.Events = 0 })},
		{"waits for nobody", upto, asks(func(p *store.Prunable) { p.Upto = "" })},
		{"beheads what has ended", "nothing may go of a message without a row that was moved behind the cursor for the last time", func(s store.Store) store.Store {
			return beheads{s}
		}},
		{"waits for no bad cursor", taken, asks(func(p *store.Prunable) { p.Upto = "" })},
		{"needs no snapshots", rows, views(func(v *store.View) { v.Pruning.Rows = nil })},
		{"needs snapshots twice", rows, views(func(v *store.View) { v.Pruning.Rows = append(v.Pruning.Rows, v.Pruning.Rows...) })},
		{"gives more rows than a page", pages, asks(func(p *store.Prunable) { p.Rows *= 2 })},
		{"holds no rows", "rows that need a snapshot are held", views(func(v *store.View) {
			for _, row := range v.Pruning.Rows {
				delete(v.Rows, row.Entity)
			}
		})},
		{"sees no earlier call", "what may go is asked behind what earlier calls did", func(s store.Store) store.Store { return stale{s} }},
		{"is too young to know", "what was decided before a time may go, up to the first that was not", asks(func(p *store.Prunable) { p.Before = p.Before.Add(time.Microsecond) })},
		{"goes past what is too young", setBack, asks(func(p *store.Prunable) { p.Before = p.Before.Add(24 * time.Hour) })},
		{"takes no time for what is ahead", setBack, asks(func(p *store.Prunable) { p.Ahead = time.Time{} })},
		{"takes any time for what is ahead", setBack, asks(func(p *store.Prunable) { p.Ahead = p.Before.Add(-1) })},
		{"says nothing to one that asks in vain", "a call that asks for a prune is refused", func(s store.Store) store.Store { return mute{s} }},
	}
}

func brokenPrunes() []broken {
	const ids = "an id whose commit was pruned has no second effect"
	keeps := changes(func(c *store.Changes) { c.Prune = 0 })
	return []broken{
		{"prunes nothing", "what was pruned is read no more, and the rest is as it was", keeps},
		{"takes any prune", "a prune that is not what was said is refused", keeps},
		{"prunes silently", "a prune that no event tells of is refused", keeps},
		{"prunes what has no snapshot", "a prune before a row that needs a snapshot has one is refused", keeps},
		{"begins where it began", "what was pruned is read no more, and the rest is as it was", firsts(func(store.Cursor) store.Cursor { return "" })},
		{"forgets its fence", "positions are never used again", views(func(v *store.View) { v.Fence = 1<<40 - v.Fence })},
		{"hides what was pruned", ids, receipts(func(r *store.Receipt) {
			if errors.Is(r.Err, store.ErrPruned) {
				r.Err = nil
			}
		})},
		{"runs what was pruned again", ids, func(s store.Store) store.Store { return eager{s} }},
		{"gives no rest of a history", "what is left of a history is given", views(func(v *store.View) {
			for e, history := range v.History {
				if history[0].Version != 1 {
					delete(v.History, e)
				}
			}
		})},
		{"gives all that tells of prunes", "the log stands in the newest event that tells of a prune", views(func(v *store.View) {
			if h := v.History[events.LogEntity()]; len(h) > 0 {
				v.History[events.LogEntity()] = append(h, h...)
			}
		})},
		{"prunes whatever becomes of the call", "a prune shares its commit with no other call's fate", changes(func(c *store.Changes) {
			c.Rows = slices.DeleteFunc(slices.Clone(c.Rows), func(c store.Change) bool { return c.From == 77 })
		})},
		{"tells less than all", "a log is pruned page by page by the calls that Foundling makes, and every row is the fold of what is left", changedRows(func(r *store.Row) {
			if r.State == events.DeadLettered && r.Version > 3 {
				r.Fields = []byte("{}")
			}
		})},
		{"loses a permit with every prune", "claims, counts, permits and keys of what is open stay", afterPrune(func(v *store.View) { v.Permits = nil })},
		{"says First for ever", "First ends with its context, and with its store", firsts(nil)},
	}
}

func brokenLeftovers() []broken {
	const topics = "the topic of a message whose beginning is gone is kept for as long as the event that ended it"
	const at = "a view tells the latest time of what was pruned, which never goes back"
	byID := views(func(v *store.View) {
		for _, page := range v.Claimable {
			slices.SortFunc(page, func(a, b store.Row) int { return a.Entity.Compare(b.Entity) })
		}
	})
	return []broken{
		{"prunes contents of what is open", "what is open keeps its contents, whatever its age", forgetsContents(nil)},
		{"prunes contents of dead letters", "a dead letter keeps its contents, and one that was cancelled keeps them as long as what ended it", forgetsContents([]events.State{events.DeadLettered})},
		{"keeps contents for ever", "what has ended keeps its contents for as long as the event that ended it", remembersContents},
		{"brings back what was erased", "what was erased stays so, and an erasure that is pruned brings nothing back", remembersContents},
		{"forgets topics", topics, contents(func(c *store.Contents) { c.Topic = "" })},
		{"remembers topics", topics, remembersTopics},
		{"tells topics that the log tells", topics, contents(func(c *store.Contents) {
			if c.Payload != nil {
				c.Topic = "mail"
			}
		})},
		{"forgets places", "messages keep their place when the event that enqueued them is gone", byID},
		{"forgets who waits", "who waits for a lock keeps its place when the event that enqueued it is gone", afterPrune(func(v *store.View) { clear(v.Waiting) })},
		{"forgets keys", "claims, counts, permits and keys of what is open stay", afterPrune(func(v *store.View) { clear(v.Keys) })},
		{"remembers locks", "a resting lock whose newest event goes begins again, with tokens that rise", remembersLocks},
		{"forgets locks", "a lock that is held or configured goes on", afterPrune(hideLocks)},
		{"remembers messages", "a message that has ended and was pruned is not known", remembersRows},
		{"forgets when it pruned", at, views(func(v *store.View) { v.PrunedAt = time.Time{} })},
		{"goes back in time", at, lastPruned},
		{"tells times to come", "what was decided while the clock was ahead is pruned as of the prune", lastPruned},
		{"keeps keys for ever", "a key goes when its time is over and its message has ended", remembersKeys},
		{"loses keys that are kept", "a key goes when its time is over and its message has ended", afterPrune(func(v *store.View) {
			for key, row := range v.Keys {
				if !row.Open {
					delete(v.Keys, key)
				}
			}
		})},
		{"drops checkpoints", "checkpoints stay", func(s store.Store) store.Store { return &dropping{Store: s} }},
	}
}

// afterPrune is an engine whose views are changed from its first prune on.
func afterPrune(f func(*store.View)) func(store.Store) store.Store {
	return func(s store.Store) store.Store {
		pruned := false
		return calls(func(c *store.Call) {
			fn := c.Fn
			c.Fn = func(v store.View) (store.Changes, error) {
				if pruned {
					f(&v)
				}
				changes, err := fn(v)
				pruned = pruned || err == nil && changes.Prune > 0
				return changes, err
			}
		})(s)
	}
}

// lastPruned is an engine that tells the time of the commit that went last.
func lastPruned(s store.Store) store.Store {
	var at time.Time
	return calls(func(c *store.Call) {
		fn := c.Fn
		c.Fn = func(v store.View) (store.Changes, error) {
			v.PrunedAt = at
			changes, err := fn(v)
			if err == nil && changes.Prune > 0 {
				at = v.Pruning.At
			}
			return changes, err
		}
	})(s)
}

func remembersKeys(s store.Store) store.Store {
	remembered := map[store.Key]store.KeyRow{}
	return views(func(v *store.View) {
		maps.Copy(remembered, v.Keys)
		if len(v.Keys) > 0 {
			maps.Copy(v.Keys, remembered)
		}
	})(s)
}

// remembersLocks is an engine that gives for ever in which event a lock once stood.
func remembersLocks(s store.Store) store.Store {
	remembered := map[events.Entity][]events.Recorded{}
	return calls(func(c *store.Call) {
		fn, locks := c.Fn, c.Need.Locks
		c.Fn = func(v store.View) (store.Changes, error) {
			maps.Copy(remembered, v.History)
			for _, name := range locks {
				e := events.LockEntity(name)
				if _, kept := v.Rows[e]; !kept && remembered[e] != nil {
					v.History[e] = remembered[e]
				}
			}
			return fn(v)
		}
	})(s)
}

// remembersRows is an engine that gives for ever which row an entity once had.
func remembersRows(s store.Store) store.Store {
	remembered := map[events.Entity]store.Row{}
	return calls(func(c *store.Call) {
		fn, held := c.Fn, c.Need.Held
		c.Fn = func(v store.View) (store.Changes, error) {
			maps.Copy(remembered, v.Rows)
			for _, e := range held {
				if row, known := remembered[e]; known && len(v.History[e]) == 0 {
					v.Rows[e] = row
				}
			}
			return fn(v)
		}
	})(s)
}

// stale is an engine that looks what may go once for all calls.
type stale struct{ store.Store }

func (s stale) Unwrap() store.Store { return s.Store }

func (s stale) Decide(ctx context.Context, list ...store.Call) ([]store.Receipt, error) {
	var seen *store.Pruning
	return bent{Store: s.Store, call: func(c *store.Call) {
		if !c.Need.Prune.Asks() {
			return
		}
		fn := c.Fn
		c.Fn = func(v store.View) (store.Changes, error) {
			if seen == nil {
				seen = &v.Pruning
			}
			v.Pruning = *seen
			return fn(v)
		}
	}}.Decide(ctx, list...)
}

// beheads is an engine that lets go of whatever a cursor has passed.
type beheads struct{ store.Store }

func (b beheads) Unwrap() store.Store { return b.Store }

func (b beheads) Decide(ctx context.Context, list ...store.Call) ([]store.Receipt, error) {
	return bent{Store: b.Store, call: func(c *store.Call) {
		first, err := store.Oldest(ctx, b.Store)
		asked, next := &c.Need.Prune, 0
		if err != nil || asked.Upto == "" {
			return
		}
		asked.Events = 0
		for r, err := range b.Store.Read(ctx, first, store.Filter{}) {
			if next++; err != nil || r.Commit.Count > 0 && b.After(r) == asked.Upto {
				asked.Events, asked.Upto = next, ""
				return
			}
		}
	}}.Decide(ctx, list...)
}

// mute is an engine that has no power, and takes every call all the same.
type mute struct{ store.Store }

// eager is an engine that runs a call again whose commit was pruned.
type eager struct{ store.Store }

func (e eager) Unwrap() store.Store { return e.Store }

func (e eager) Decide(ctx context.Context, list ...store.Call) ([]store.Receipt, error) {
	receipts, err := e.Store.Decide(ctx, list...)
	for i := range receipts {
		if errors.Is(receipts[i].Err, store.ErrPruned) {
			again := list[i]
			again.ID = uuid.Must(uuid.NewV7())
			list, err := e.Store.Decide(ctx, again)
			if err != nil {
				return nil, err
			}
			receipts[i] = list[0]
		}
	}
	return receipts, err
}

// first is an engine whose log begins elsewhere; without a function of where, at the zero cursor for ever.
type first struct {
	store.Store
	bend func(store.Cursor) store.Cursor
}

func firsts(f func(store.Cursor) store.Cursor) func(store.Store) store.Store {
	return func(s store.Store) store.Store { return first{s, f} }
}

func (f first) Unwrap() store.Store { return f.Store }

func (f first) First(ctx context.Context) (store.Cursor, error) {
	if f.bend == nil {
		return "", nil
	}
	pruner, _ := store.As[store.Pruner](f.Store)
	cursor, err := pruner.First(ctx)
	return f.bend(cursor), err
}

// reader is an engine that says something else, or nothing, instead of an error of a class.
type reader struct {
	store.Store
	class   error
	instead func(error) error
}

func (r reader) Unwrap() store.Store { return r.Store }

func (r reader) Read(ctx context.Context, after store.Cursor, f store.Filter) iter.Seq2[events.Recorded, error] {
	return func(yield func(events.Recorded, error) bool) {
		for e, err := range r.Store.Read(ctx, after, f) {
			if errors.Is(err, r.class) {
				if err = r.instead(err); err == nil {
					return
				}
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// skipper is an engine that goes on with what is kept.
type skipper struct{ store.Store }

func (s skipper) Unwrap() store.Store { return s.Store }

func (s skipper) Read(ctx context.Context, after store.Cursor, f store.Filter) iter.Seq2[events.Recorded, error] {
	return func(yield func(events.Recorded, error) bool) {
		for e, err := range s.Store.Read(ctx, after, f) {
			var pruned *store.PrunedError
			if errors.As(err, &pruned) {
				for e, err := range s.Store.Read(ctx, pruned.First, f) {
					if !yield(e, err) {
						return
					}
				}
				return
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// dropping is an engine that drops what is behind the beginning of its log.
type dropping struct{ store.Store }

func (d *dropping) Unwrap() store.Store { return d.Store }

func (d *dropping) Decide(ctx context.Context, list ...store.Call) ([]store.Receipt, error) {
	receipts, err := d.Store.Decide(ctx, list...)
	for _, r := range receipts {
		if !slices.ContainsFunc(r.Events, func(r events.Recorded) bool { return r.Event.Type() == events.TypeLogPruned }) {
			continue
		}
		shelf, _ := store.As[store.Shelf](d.Store)
		kept, err := shelf.Checkpoints(ctx, store.CheckpointFilter{})
		for _, c := range kept {
			err = errors.Join(err, shelf.Drop(ctx, c.CheckpointKey))
		}
		if err != nil {
			return nil, err
		}
	}
	return receipts, err
}
