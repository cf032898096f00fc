package postgres

import (
	"context"
	"maps"
	"slices"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// This file reads what calls select among rows, for all calls of a transaction at once.

// pages is what was selected among rows, as the tables had it. Whoever is given some of it leaves out what the transaction has changed since.
type pages struct {
	rowed     map[string]bool // topics whose rows are held
	claimable map[string][]*cell
	cut       map[string]bool // topics that may have more claimable messages than were read
	claims    map[events.ID][]*cell
	uncounted map[string][]*cell
	waiting   map[string][]*cell // by lock; an entry without a value for a lock for which nobody waits, none where that was not read
	holders   map[string][]*permitCell
	belongs   map[events.ID][]*permitCell // by worker
	beats     map[events.ID]beatRead
	tried     map[string]bool // locks that somebody else has
	asked     map[string]int  // how many claimable messages
	damaged   map[string]int  // how many of them are not what was written
	passing   []*passing
	spoilt    []group // of those who wait whose first is not what was written
}

func newPages() pages {
	return pages{
		rowed: map[string]bool{}, claimable: map[string][]*cell{}, cut: map[string]bool{}, claims: map[events.ID][]*cell{},
		uncounted: map[string][]*cell{}, waiting: map[string][]*cell{}, holders: map[string][]*permitCell{},
		belongs: map[events.ID][]*permitCell{}, beats: map[events.ID]beatRead{}, tried: map[string]bool{},
		asked: map[string]int{}, damaged: map[string]int{},
	}
}

// beatRead is a heartbeat, or what is wrong with it.
type beatRead struct {
	store.Beat
	err error
}

// The queries that select among rows. Each walks one range of one index per group; a test explains them. That of uncounted claims walks all open
// claims: it is asked when a topic is given its first limit, and an index for it would cost every claim of topics without one.
var (
	claimableQuery = "SELECT " + of("m", messageColumns) + ", p.salt, p.bytes FROM (SELECT c.* FROM unnest($4::smallint[]) AS u (priority)" +
		" CROSS JOIN LATERAL (SELECT " + messageColumns + " FROM @messages WHERE topic = $1 AND priority = u.priority AND due IS NOT NULL AND due <= " +
		dueBound + " ORDER BY due, place LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED) c LIMIT $2) m LEFT JOIN @payloads p ON p.place = m.place"
	// The server's time, unless the store has a clock of its own.
	dueBound    = "coalesce($3::bigint, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint)"
	claimsQuery = "SELECT " + messageColumns + " FROM @messages WHERE worker = $1 ORDER BY claimed_at, id LIMIT $2"
	// Sorting is by the way: all of them are walked over.
	uncountedQuery = "SELECT " + messageColumns + " FROM @messages WHERE worker IS NOT NULL AND topic = $1 AND NOT counted" +
		" ORDER BY claimed_at, id LIMIT $2"
	workerPermitsQuery = "SELECT " + permitColumns + " FROM @permits WHERE worker = $1 ORDER BY acquired_at, lock, token LIMIT $2"
	lockPermitsQuery   = "SELECT " + permitColumns + " FROM @permits WHERE lock = $1 ORDER BY expires_at NULLS LAST, acquired_at, token LIMIT $2"
	// Who waits for some locks: per topic the first message that is blocked and the first that is trying. The index is walked from one of them to
	// the next, past all who stand behind the first.
	waitersQuery = "WITH RECURSIVE firsts (lock, topic, waiting, id) AS (" +
		"SELECT f.* FROM unnest($1::text[]) AS w (lock) CROSS JOIN LATERAL (SELECT lock, topic, waiting, id FROM @messages m" +
		" WHERE m.waiting <> 0 AND m.lock = w.lock ORDER BY m.topic, m.waiting, m.priority, m.place LIMIT 1) f" +
		" UNION ALL SELECT n.* FROM firsts f CROSS JOIN LATERAL (SELECT m.lock, m.topic, m.waiting, m.id FROM @messages m" +
		" WHERE m.waiting <> 0 AND m.lock = f.lock AND (m.topic, m.waiting) > (f.topic, f.waiting)" +
		" ORDER BY m.topic, m.waiting, m.priority, m.place LIMIT 1) n)" +
		" SELECT " + of("m", messageColumns) + " FROM firsts f JOIN @messages m ON m.id = f.id"
)

func (a *attempt) readPages(p *pipeline, w *wants) {
	for _, topic := range slices.Sorted(maps.Keys(w.claims)) {
		a.readClaimable(p, topic, w.claims[topic])
	}
	for worker, n := range w.estates {
		a.pages.claims[worker] = nil
		a.readMessages(p, picking{claimsQuery, worker, n}, func(c *cell) { a.pages.claims[worker] = append(a.pages.claims[worker], c) })
		a.readPermitPage(p, picking{workerPermitsQuery, worker, n}, func(c *permitCell) { a.pages.belongs[worker] = append(a.pages.belongs[worker], c) })
	}
	for topic, n := range w.uncounted {
		a.pages.uncounted[topic] = nil
		a.readMessages(p, picking{uncountedQuery, topic, n}, func(c *cell) { a.pages.uncounted[topic] = append(a.pages.uncounted[topic], c) })
	}
	for lock, n := range w.holders {
		a.pages.holders[lock] = nil
		a.readPermitPage(p, picking{lockPermitsQuery, lock, n}, func(c *permitCell) { a.pages.holders[lock] = append(a.pages.holders[lock], c) })
	}
	a.readWaiters(p, slices.Collect(maps.Keys(w.locks)))
}

// readClaimable takes the first n due messages of a topic that nobody else has, with their payloads.
func (a *attempt) readClaimable(p *pipeline, topic string, n int) {
	var bound *int64
	if a.s.options.Clock != nil {
		bound = instant(a.s.clock())
	}
	limit := n + a.s.counts.over(topic)
	a.pages.claimable[topic] = nil
	read := 0
	a.pages.asked[topic] = n
	r := newRecord(messageColumns + ", salt, bytes")
	p.query(r, func() error {
		read++
		a.pages.cut[topic] = read >= limit
		c := a.found(events.KindMessage, r)
		if c.err != nil {
			a.pages.damaged[topic]++
			return nil
		}
		c.held = true
		if payload := r.payload(width(messageColumns)); r.err == nil { // else it is one that is not there: the message can be ended
			c.row.Payload = payload
		}
		a.pages.claimable[topic] = append(a.pages.claimable[topic], c)
		return nil
	}, claimableQuery, topic, limit, bound, priorities())
}

func priorities() []int16 {
	var list []int16
	for _, p := range events.Priorities() {
		list = append(list, int16(p))
	}
	return list
}

// picking is a query for the first rows of something.
type picking struct {
	query string
	of    any
	n     int
}

// readMessages reads a page of messages. Rows that are not what was written are passed over.
func (a *attempt) readMessages(p *pipeline, pick picking, take func(*cell)) {
	r := newRecord(messageColumns)
	page := a.passes(pick)
	p.query(r, func() error {
		if c := a.found(events.KindMessage, r); page.takes(c.err) {
			a.unheld(c)
			take(c)
		}
		return nil
	}, pick.query, pick.of, page.limit)
}

// passedOver is how many rows of a page may be other than what was written before it must be read anew, with more rows.
const passedOver = 16

// passing is a page that passes over rows that are not what was written.
type passing struct {
	left, limit, read int
}

func (a *attempt) passes(pick picking) *passing {
	page := &passing{left: pick.n, limit: pick.n + max(passedOver, a.plan.over)}
	a.pages.passing = append(a.pages.passing, page)
	return page
}

// takes reports whether the page takes a row that was read.
func (p *passing) takes(err error) bool {
	p.read++
	if err != nil || p.left <= 0 {
		return false
	}
	p.left--
	return true
}

// short reports whether more rows would have more to take.
func (p *passing) short() bool { return p.left > 0 && p.read >= p.limit }

func (a *attempt) readPermitPage(p *pipeline, pick picking, take func(*permitCell)) {
	r := newRecord(permitColumns)
	page := a.passes(pick)
	p.query(r, func() error {
		if c := a.foundPermit(r); page.takes(c.err) {
			take(c)
		}
		return nil
	}, pick.query, pick.of, page.limit)
}

// readWaiters reads who waits for some locks.
func (a *attempt) readWaiters(p *pipeline, locks []string) {
	unread := a.unreadWaiters(locks)
	if len(unread) == 0 {
		return
	}
	for _, lock := range unread {
		a.pages.waiting[lock] = nil
	}
	r := newRecord(messageColumns)
	p.query(r, func() error {
		c := a.found(events.KindMessage, r)
		if c.err != nil {
			a.pages.spoilt = append(a.pages.spoilt, group{string(r.values[lockAt]), string(r.values[topicAt]), r.raw(waitingAt)})
			return nil
		}
		a.unheld(c)
		a.pages.waiting[c.row.Lock] = append(a.pages.waiting[c.row.Lock], c)
		return nil
	}, waitersQuery, unread)
}

// group is those who wait for a lock in one way, of one topic.
type group struct {
	lock, topic string
	waiting     int64
}

const groupQuery = "SELECT " + messageColumns + " FROM @messages WHERE waiting <> 0 AND lock = $1 AND topic = $2 AND waiting = $3 ORDER BY priority, place LIMIT $4"

// readBehind reads who stands first of those that can be read, where the first of all cannot: he would never be told.
func (a *attempt) readBehind(ctx context.Context) error {
	if len(a.pages.spoilt) > 0 && a.looks {
		return errGlanced
	}
	for _, g := range a.pages.spoilt {
		for limit := passedOver; ; limit *= 4 {
			var first *cell
			read := 0
			p := a.s.pipeline()
			r := newRecord(messageColumns)
			p.query(r, func() error {
				read++
				if c := a.found(events.KindMessage, r); c.err == nil && first == nil {
					first = c
				}
				return nil
			}, groupQuery, g.lock, g.topic, g.waiting, limit)
			if err := p.run(ctx, a.conn.Conn()); err != nil {
				return err
			}
			if first != nil {
				a.unheld(first)
				a.pages.waiting[g.lock] = append(a.pages.waiting[g.lock], first)
			}
			if first != nil || read < limit || limit >= maxPassedOver {
				break
			}
		}
	}
	return nil
}

// unheld notes a message that a view may have without its being held. Before anything is kept it is looked at once more.
func (a *attempt) unheld(c *cell) {
	if !c.held && !a.unheldSet[c.entity] {
		a.unheldSet[c.entity] = true
	}
}

// holdMore holds what the first round trip has brought to light: the locks of claimable messages and of estates, who waits for them, permits, and
// the histories of what has no row. There is no other one where there is none of that.
func (a *attempt) holdMore(ctx context.Context, w *wants) error {
	p := a.s.pipeline()
	found, estates := a.foundLocks(w)
	tries, unread := a.notHeld(found), a.unreadWaiters(found)
	streams, resting := a.untoldStreams(tries)
	if len(unread)+len(estates)+len(streams)+len(resting) == 0 { // what is not held was not read either
		return nil
	}
	if a.looks {
		return errGlanced
	}
	a.tryLocks(p, tries)
	a.readPermits(p, append(estates, a.readBefore(tries)...))
	locks := make([]events.Entity, len(tries))
	for i, lock := range tries {
		locks[i] = events.LockEntity(lock)
		a.blank(locks[i]).known = true
	}
	a.readRows(p, events.KindLock, locks)
	a.readHistories(p, streams, resting)
	a.readRowless(p, w)
	a.readWaiters(p, unread)
	if len(tries) > 0 { // also where one was drawn before: others may have had the lock since
		a.drawFence(p)
	}
	clear(a.pages.beats) // they are judged by the time that is read behind them
	a.readBeats(p, w.beats)
	a.s.askTime(p, &a.now)
	if err := p.run(ctx, a.conn.Conn()); err != nil {
		return err
	}
	return a.settleTries(w)
}

// foundLocks is the locks that came to light, and the permits of open claims.
func (a *attempt) foundLocks(w *wants) (locks []string, permits []store.PermitKey) {
	set := map[string]bool{}
	for _, list := range a.pages.claimable {
		for _, c := range list {
			if c.row.Lock != "" {
				set[c.row.Lock] = true
			}
		}
	}
	for worker := range w.estates {
		for _, c := range a.pages.claims[worker] {
			if c.row.LockToken != 0 {
				permits = append(permits, store.PermitKey{Lock: c.row.Lock, Token: c.row.LockToken})
				set[c.row.Lock] = true
			}
		}
		for _, c := range a.pages.belongs[worker] {
			set[c.Lock] = true
		}
	}
	return sortedNames(set), permits
}

// notHeld is those of some locks that are not held yet.
func (a *attempt) notHeld(locks []string) []string {
	return slices.DeleteFunc(slices.Clone(locks), func(lock string) bool { return a.blank(events.LockEntity(lock)).held })
}

// unreadWaiters is those of some locks of which it was not read who waits for them: one may be held since it was named, and nobody has asked.
func (a *attempt) unreadWaiters(locks []string) []string {
	return slices.DeleteFunc(slices.Clone(locks), func(lock string) bool { _, read := a.pages.waiting[lock]; return read })
}

func (a *attempt) tryLocks(p *pipeline, locks []string) {
	if len(locks) == 0 {
		return
	}
	keys := make([]int64, len(locks))
	for i, lock := range locks {
		keys[i] = a.s.entityKey(events.LockEntity(lock))
	}
	r := newRecord("lock, held")
	p.query(r, func() error {
		c := a.blank(events.LockEntity(r.text(0)))
		if c.held = r.flag(1); c.held {
			c.alone = true
		} else {
			a.pages.tried[c.entity.Name] = true
		}
		return r.err
	}, tryQuery, locks, keys)
}

// readBefore is the permits that were read before their locks were held: they may have come back since, and are to be read again.
func (a *attempt) readBefore(tries []string) (keys []store.PermitKey) {
	for key, c := range a.permits {
		if c.known && slices.Contains(tries, key.Lock) {
			*c = permitCell{Permit: store.Permit{PermitKey: key}}
			keys = append(keys, key)
		}
	}
	return keys
}

// settleTries has the locks of an estate waited for, in another try, where somebody has one: what a worker held must not stay with it.
func (a *attempt) settleTries(w *wants) error {
	var hold errHold
	for worker := range w.estates {
		for _, c := range a.pages.claims[worker] {
			if c.row.LockToken != 0 && a.pages.tried[c.row.Lock] {
				hold.entities = append(hold.entities, events.LockEntity(c.row.Lock))
			}
		}
		for _, c := range a.pages.belongs[worker] {
			if a.pages.tried[c.Lock] {
				hold.entities = append(hold.entities, events.LockEntity(c.Lock))
			}
		}
	}
	if len(hold.entities) > 0 {
		return &hold
	}
	return nil
}

// appeared is the error of a message that came while its key was waited for.
func appeared(entity events.Entity) error {
	return &errHold{entities: []events.Entity{entity}}
}

// longer has pages read anew that came short since rows of theirs are not what was written: what stands behind those goes on.
func (a *attempt) longer() error {
	short := false
	for topic, asked := range a.pages.asked {
		list, damaged := a.pages.claimable[topic], a.pages.damaged[topic]
		passed := damaged
		for _, c := range list {
			if c.row.Lock != "" && a.blank(events.LockEntity(c.row.Lock)).err != nil {
				passed++
			}
		}
		if passed > 0 && len(list)+damaged-passed < asked && a.pages.cut[topic] && a.s.counts.over(topic) < maxPassedOver {
			a.s.counts.passOver(topic, max(4*passed, 16))
			short = true
		}
	}
	if a.plan.over < maxPassedOver && slices.ContainsFunc(a.pages.passing, (*passing).short) {
		a.plan.over = 4 * max(a.plan.over, passedOver)
		short = true
	}
	if short {
		return &errHold{}
	}
	return nil
}
