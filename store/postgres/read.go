package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// How much is read at a time: whole transactions, until there are so many of them or so many events; or rows, until there are so many of them
// or so many bytes of payloads.
const (
	pageDecisions = 256
	pageEvents    = 1000
	pageRows      = 256
	pageBytes     = 8 << 20
)

// After implements store.Store.
func (s *Store) After(r events.Recorded) store.Cursor {
	if r.Commit == nil { // a place in the log is asked for, by who has read no event there
		return s.cursorAt(r.Position)
	}
	return s.cursorIn(s.epochs.known(), r.Position, r.At())
}

// Read implements store.Store. What was committed before it began is read, unless a writer who was there before that stays for longer than
// Options.ReadPatience: what was drawn behind such a writer is left to a later read.
func (s *Store) Read(ctx context.Context, after store.Cursor, f store.Filter) iter.Seq2[events.Recorded, error] {
	return func(yield func(events.Recorded, error) bool) {
		r := reader{store: s, filter: f}
		err := r.begin(ctx, after)
		_, _, r.follows = s.powers.spots.near(r.at, 0)
		for given := 0; err == nil && !r.ended; {
			var list []events.Recorded
			list, err = r.next(ctx)
			for _, recorded := range list {
				if len(f.Types) > 0 && !slices.Contains(f.Types, recorded.Event.Type()) {
					continue
				}
				if given++; !yield(recorded, nil) || given == f.Limit {
					if recorded.Position < r.seen {
						s.powers.spots.cut(recorded.Position, r.before)
					}
					return
				}
			}
		}
		if err != nil {
			yield(events.Recorded{}, fmt.Errorf("postgres: read: %w", err))
		}
	}
}

// reader is where a read stands.
type reader struct {
	store   *Store
	filter  store.Filter
	asked   store.Cursor
	look    *look
	epochs  []epoch // of the look
	settled bool    // final is all that this read may see
	final   int64   // number up to which the log is final
	at      int64   // position up to which all was passed
	seen    int64   // of the last event that was
	before  int64   // what that was before the last page
	version int     // that it had, where one entity is read; 0 is not known
	ended   bool
	follows bool // it goes on where somebody has read up to
}

// begin finds out where the log can be read from and up to, without waiting for anybody.
func (r *reader) begin(ctx context.Context, after store.Cursor) (err error) {
	r.asked, r.settled = after, false
	if r.look, err = r.store.look(ctx); err != nil {
		return err
	}
	r.epochs = upTo(r.store.epochs.known(), r.look.epoch)
	r.at, err = r.store.behind(after, r.look)
	r.seen = r.at
	r.final = r.store.powers.horizon.learn(r.look)
	r.store.seal(r.look, r.final)
	return err
}

// next is the next events. What comes before an error is given with it.
func (r *reader) next(ctx context.Context) (list []events.Recorded, err error) {
	through := firstOf(r.final+1) - 1
	switch {
	case r.at >= r.look.newest.position(), r.at >= through && r.settled: // in the first case nothing had been committed when it began
		r.ended = true
		return nil, nil
	case r.at >= through:
		r.final, err = r.store.settled(ctx, r.look)
		r.settled = true
		return nil, err
	case r.filter.Entity != (events.Entity{}):
		list, err = r.streamPage(ctx, through)
	default:
		list, err = r.logPage(ctx, through)
	}
	if err != nil {
		err = r.explained(ctx, err)
	}
	if len(list) > 0 {
		r.before, r.seen = r.seen, list[len(list)-1].Position
		r.store.epochs.gave(r.seen)
	}
	if errors.Is(err, errEpoch) { // it goes on behind what it has seen, if that is still there
		err = r.begin(ctx, r.cursor(r.seen))
	}
	return list, err
}

// cursor is the one at a position, by the epochs that it knows.
func (r *reader) cursor(position int64) store.Cursor {
	if position == 0 {
		return ""
	}
	return r.store.cursorIn(r.epochs, position, time.Time{})
}

// ask asks for what follows, and behind that how much was let go: where that is beyond what was passed, some of what follows may not have been
// there any more, which is a PrunedError.
func (r *reader) ask(ctx context.Context, fill func(*pipeline)) error {
	var gone pruned
	err := r.store.ask(ctx, func(p *pipeline) {
		gone = pruned{}
		fill(p)
		edge := newRecord(prunedColumns)
		p.query(edge, func() error {
			gone = edge.pruned(0)
			return damaged(events.LogEntity(), "up to where it is pruned", edge.err)
		}, prunedQuery)
		p.within(r.look)
	})
	if err == nil && r.at < gone.through {
		err = r.overtaken(gone)
	}
	return err
}

// overtaken is the error of a reader that what was let go has passed.
func (r *reader) overtaken(gone pruned) error {
	return &store.PrunedError{Asked: r.cursor(r.at), First: r.store.cursorAt(gone.through)}
}

// explained tells what was let go while it was read from what is damaged.
func (r *reader) explained(ctx context.Context, err error) error {
	var corrupt *events.Corrupt
	damaged := isDamaged(err)
	if !damaged && !errors.As(err, &corrupt) {
		return err
	}
	now, failed := r.store.look(ctx)
	switch {
	case failed == nil && now.epoch != r.look.epoch:
		return errEpoch
	case failed == nil && r.at < now.through:
		return r.overtaken(now.pruned)
	}
	if damaged { // what says which transactions there are: whoever passes over it goes on behind the next number
		at := r.at + 1
		if first := firstOf(numberOf(at)); at > first {
			at = max(at, min(firstOf(numberOf(at)+1), r.look.newest.position()))
		}
		return somewhere(r.at+1, at, err)
	}
	return err
}

// somewhere is the error of a page that the server cannot read any more: nobody knows which of its events are at fault.
func somewhere(position, begins int64, err error) *events.Corrupt {
	return &events.Corrupt{Position: position, Begins: begins, Detail: "somewhere behind this position: " + err.Error()}
}

// most is how many events a page has at least, if there are as many.
func (r *reader) most() int {
	if r.filter.Limit > 0 && len(r.filter.Types) == 0 {
		return min(r.filter.Limit, pageEvents)
	}
	return pageEvents
}

const (
	// A cursor may stand within a transaction.
	decisionsQuery = "SELECT " + decisionColumns + " FROM @decisions WHERE number >= $1 AND number <= $2 ORDER BY number LIMIT $3"
	// Their place is known by blocks alone (BRIN), which no order comes of: a page is sorted.
	byPlace     = "SET LOCAL enable_bitmapscan = on"
	eventsQuery = "SELECT " + spotColumns + " FROM @events WHERE position > $1 AND position <= $2 ORDER BY position LIMIT $3"
)

// logPage is the next transactions up to a position.
func (r *reader) logPage(ctx context.Context, through int64) ([]events.Recorded, error) {
	limit := min(pageDecisions, r.most()+1)
	run, more, err := r.decisions(ctx, numberOf(through), limit)
	if isDamaged(err) { // of what the server cannot read no more is to be lost than it is
		run, more, err = r.decisions(ctx, numberOf(through), 2)
	}
	if err != nil {
		return nil, err
	}
	list, end, err := r.runOf(ctx, run, more, through)
	for isDamaged(err) && len(run) > 1 {
		run = run[:len(run)/2]
		list, end, err = r.runOf(ctx, run, true, through)
	}
	if isDamaged(err) && len(run) > 0 && run[0].wrong == nil {
		err = somewhere(r.at+1, max(r.at+1, run[0].behind(r.at)+1), err)
	}
	if err == nil {
		r.at = end
	} else if len(list) > 0 {
		r.at = list[len(list)-1].Position
	}
	return list, err
}

// runOf is the events of transactions that follow each other, and the position that the last of them may reach up to. more says that others may follow.
func (r *reader) runOf(ctx context.Context, run []decision, more bool, through int64) (list []events.Recorded, end int64, err error) {
	from, count := r.at, 0
	for i := range run {
		count += run[i].events
	}
	if len(run) > 0 && run[0].wrong == nil {
		from = min(from, run[0].behind(r.at)) // where the cursor stands within it
	}
	end = through
	if more {
		end = firstOf(run[len(run)-1].number+1) - 1
	}
	stored, wrong := r.events(ctx, run, piece{from, end, count + 1})
	list, err = decodeRun(run, stored, wrong)
	return list[passed(list, r.at):], end, err
}

// piece is the events behind one position and up to another, at most so many.
type piece struct {
	after, through int64
	most           int
}

// events is those of transactions: by the blocks in which they may lie, for who follows the log, or else by the index. Only the index shows events that are
// of no transaction, so that whoever reads from the beginning goes by it.
func (r *reader) events(ctx context.Context, run []decision, p piece) ([]events.Stored, error) {
	spots := &r.store.powers.spots
	if low, high, ok := spots.near(r.seen, p.most); ok && r.follows {
		near, err := r.eventsBetween(ctx, nearQuery, p, low, high)
		if err == nil && closed(run, near.events, p.after) {
			spots.learn(r.seen, near, byBlocks)
			return near.events, nil
		}
	}
	all, wrong := r.eventsBetween(ctx, eventsQuery, p)
	if wrong == nil && len(all.events) > 0 {
		spots.learn(r.seen, all, byIndex)
	}
	return all.events, wrong
}

// behind takes from a transaction the commits that a cursor has passed, which may have gone, and gives the position before the first that is left.
func (d *decision) behind(position int64) int64 {
	for len(d.commits) > 1 && d.commits[0].next() <= position+1 {
		d.commits = d.commits[1:]
	}
	return d.commits[0].first - 1
}

// passed is how many of the events stand at or before a position.
func passed(list []events.Recorded, at int64) int {
	n, _ := slices.BinarySearchFunc(list, at+1, func(r events.Recorded, position int64) int { return cmp.Compare(r.Position, position) })
	return n
}

// decisions is the next transactions for a page of events. more says that others may follow them up to the number.
func (r *reader) decisions(ctx context.Context, upto int64, limit int) (run []decision, more bool, err error) {
	var list []decision
	begin := numberOf(r.at + 1)
	err = r.ask(ctx, func(p *pipeline) {
		list = nil
		rec := newRecord(decisionColumns)
		p.query(rec, func() error {
			list = append(list, rec.decision(0))
			return nil
		}, decisionsQuery, begin, upto, limit)
	})
	if err != nil {
		return nil, false, err
	}
	full := len(list) == limit
	if len(list) > 0 && list[0].wrong == nil && firstOf(list[0].number)+int64(list[0].events) <= r.at+1 {
		list = list[1:] // the cursor stands behind it
	}
	count, most := 0, r.most()
	for i := range list {
		if d := &list[i]; d.wrong != nil {
			return list[:max(i, 1)], true, nil // it is told of when it comes first
		}
		if count += list[i].events; count >= most {
			return list[:i+1], true, nil
		}
	}
	return list, full && len(list) > 0, nil
}

// eventsBetween is the events of a piece by one of the queries, which has further arguments.
func (r *reader) eventsBetween(ctx context.Context, text string, p piece, more ...any) (f found, wrong error) {
	err := r.store.ask(ctx, func(q *pipeline) {
		f, wrong = found{events: make([]events.Stored, 0, min(p.most, pageEvents))}, nil
		rec := newRecord(spotColumns)
		if text == eventsQuery {
			q.exec(byPlace)
		}
		q.query(rec, func() error {
			event, err := rec.event()
			if wrong == nil && err == nil {
				f.events, f.blocks = append(f.events, event), append(f.blocks, rec.block(width(eventColumns)))
			}
			wrong = cmp.Or(wrong, err)
			return nil
		}, text, append([]any{p.after, p.through, p.most}, more...)...)
		q.within(r.look)
	})
	if err != nil {
		return found{}, err
	}
	return f, wrong
}

// decodeRun reads transactions that follow each other, with all events that stand between and behind them. wrong is why the events end early.
func decodeRun(run []decision, stored []events.Stored, wrong error) (list []events.Recorded, err error) {
	for i := range run {
		d := &run[i]
		n := 0
		for n < len(stored) && numberOf(stored[n].Position) == d.number {
			n++
		}
		if n == 0 && len(stored) > 0 && stored[0].Position < firstOf(d.number) {
			return list, lost(stored[0], "its commit is missing")
		}
		recorded, err := d.decode(stored[:n], wrong)
		if list = append(list, recorded...); err != nil {
			return list, err
		}
		stored = stored[n:]
	}
	if len(stored) > 0 {
		return list, lost(stored[0], "its commit is missing")
	}
	return list, wrong
}

// lost is the error of an event whose commit is not what was written.
func lost(e events.Stored, detail string) error {
	return &events.Corrupt{Entity: e.Entity, Version: e.Version, Position: e.Position, Detail: detail, Begins: e.Position}
}

// begins says of what is damaged where the commit begins that cannot be read for it.
func begins(err error, first int64) error {
	if corrupt := (*events.Corrupt)(nil); errors.As(err, &corrupt) && corrupt.Begins == 0 {
		corrupt.Begins = first
	}
	return err
}

// decode reads a transaction, commit by commit. wrong is why its events may end early.
func (d *decision) decode(stored []events.Stored, wrong error) (list []events.Recorded, err error) {
	if d.wrong != nil {
		at := events.Stored{Entity: events.LogEntity(), Position: firstOf(max(d.number, 0))}
		if len(stored) > 0 {
			at = stored[0]
		}
		return nil, lost(at, "its commit: "+d.wrong.Error())
	}
	for i := range d.commits {
		c := &d.commits[i]
		for n := range c.Count {
			if want := c.first + int64(n); n >= len(stored) || stored[n].Position != want {
				gone := &events.Corrupt{Entity: events.LogEntity(), Position: want, Detail: "an event of commit " + c.ID.String() + " is missing"}
				return list, begins(cmp.Or(wrong, error(gone)), c.first)
			}
		}
		recorded, err := events.DecodeCommit(c.StoredCommit, stored[:c.Count])
		if err != nil {
			return list, begins(err, c.first)
		}
		list, stored = append(list, recorded...), stored[c.Count:]
	}
	if len(stored) > 0 {
		return list, lost(stored[0], "no commit of its transaction tells of it")
	}
	return list, nil
}
