package postgres

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// This file holds what the calls of a transaction name, in one round trip. Everybody takes in this order, and waits for nothing once he has taken
// what stands further behind: advisory keys by number, rows of messages by id, keys of messages without a row, rows of topics by name. What is
// staged is taken behind the advisory keys, and only where nobody has it; so is, behind all of them, what is to be claimed: messages, and their locks.

// wants is what the calls name.
type wants struct {
	gate     gate
	ids      map[store.CommitID]bool
	messages map[events.ID]bool
	topics   map[string]bool // whose rows are held
	others   map[events.Entity]bool
	keys     map[store.Key]bool
	permits  map[store.PermitKey]bool
	locks    map[string]bool // whose waiters are read
	beats    map[events.ID]bool
	staged   map[int64]bool
	fence    bool

	claims    map[string]int // per topic how many claimable messages
	estates   map[events.ID]int
	uncounted map[string]int
	holders   map[string]int
}

func newWants() *wants {
	return &wants{
		gate: gate{}, ids: map[store.CommitID]bool{}, messages: map[events.ID]bool{}, topics: map[string]bool{}, others: map[events.Entity]bool{},
		keys: map[store.Key]bool{}, permits: map[store.PermitKey]bool{}, locks: map[string]bool{}, beats: map[events.ID]bool{},
		staged: map[int64]bool{},
		claims: map[string]int{}, estates: map[events.ID]int{}, uncounted: map[string]int{}, holders: map[string]int{},
	}
}

// wanted is what calls name, and what earlier tries have found to be needed.
func (a *attempt) wanted(calls []store.Call) *wants {
	w := newWants()
	for i := range calls {
		w.ids[calls[i].ID] = true
		if askable(&calls[i].Need) == nil { // else it is refused
			a.want(w, &calls[i].Need)
		}
	}
	for entity := range a.plan.entities {
		a.wantEntity(w, entity, true)
	}
	for i := range calls {
		if askable(&calls[i].Need) == nil {
			a.wantCounted(w, calls[i].Need.Known)
		}
	}
	for key := range a.plan.permits {
		w.permits[key] = true
	}
	for topic := range a.plan.topics {
		w.topics[topic] = true
		w.gate.add(a.s.entityKey(events.TopicEntity(topic)), false)
	}
	return w
}

func (a *attempt) want(w *wants, need *store.Need) {
	for _, entity := range need.Held {
		a.wantEntity(w, entity, entity.Kind != events.KindClock)
	}
	for i := range need.Known {
		a.wantEntity(w, need.Known[i].Entity, true)
	}
	for _, lock := range need.Locks {
		w.locks[lock] = true
		a.wantEntity(w, events.LockEntity(lock), true)
	}
	for _, page := range need.Claim {
		w.claims[page.Topic] += max(page.N, 0)
		a.wantTopic(w, page.Topic, a.s.counts.has(page.Topic))
	}
	for _, page := range need.Uncounted {
		w.uncounted[page.Topic] = max(w.uncounted[page.Topic], page.N)
		a.wantEntity(w, events.TopicEntity(page.Topic), true)
	}
	for _, key := range need.Keys {
		w.keys[key] = true
		w.gate.add(a.s.nameKey(key), true)
	}
	for _, key := range need.Permits {
		w.permits[key] = true
	}
	for _, page := range need.Holders {
		w.holders[page.Lock] = max(w.holders[page.Lock], page.N)
	}
	for _, holder := range need.Claims {
		w.estates[holder.Worker] = max(w.estates[holder.Worker], holder.N)
		w.beats[holder.Worker] = true
	}
	for _, worker := range need.Beats {
		w.beats[worker] = true
	}
	for _, place := range need.Staged {
		w.staged[place] = true
	}
	w.fence = w.fence || len(need.Locks)+len(need.Holders)+len(need.Claims)+len(need.Permits) > 0
}

// wantCounted names the topics whose counts move when known claims end. Where no row of a topic is held, those rows are not either.
func (a *attempt) wantCounted(w *wants, known []store.Row) {
	if len(w.topics) == 0 {
		return
	}
	for i := range known {
		if row := &known[i]; row.Counted && !w.topics[row.Topic] {
			a.wantTopic(w, row.Topic, true)
		}
	}
}

func (a *attempt) wantEntity(w *wants, entity events.Entity, alone bool) {
	switch entity.Kind {
	case events.KindMessage:
		w.messages[entity.ID] = true
		return
	case events.KindTopic:
		w.topics[entity.Name] = true
	default:
		w.others[entity] = true
	}
	w.fence = w.fence || entity.Kind == events.KindLock
	w.gate.add(a.s.entityKey(entity), alone)
	c := a.blank(entity)
	c.held, c.alone = true, c.alone || alone
}

// wantTopic names a topic that others may claim from at the same time.
func (a *attempt) wantTopic(w *wants, topic string, counted bool) {
	entity := events.TopicEntity(topic)
	w.gate.add(a.s.entityKey(entity), false)
	if counted {
		w.topics[topic] = true
	} else if !w.topics[topic] {
		w.others[entity] = true
	}
	a.blank(entity).held = true
}

// hold begins the transaction and holds what calls name.
func (a *attempt) hold(ctx context.Context, calls []store.Call) (err error) {
	final, end, err := a.finalFor(ctx, &calls[0])
	if err != nil {
		return err
	}
	if a.conn, err = a.s.pool.Acquire(ctx); err != nil {
		return err
	}
	w := a.wanted(calls)
	p := a.s.pipeline()
	p.begin(beginWrite)
	w.gate.take(p)
	a.holdStaged(p, w)
	a.holdMessages(p, w)
	a.holdTopics(p, w)
	a.readNamed(p, w)
	a.readPages(p, w)
	if w.fence {
		a.drawFence(p)
	}
	a.readBeats(p, w.beats)
	a.s.askTime(p, &a.now)
	if a.looks {
		p.exec("COMMIT")
	}
	if err := p.run(ctx, a.conn.Conn()); err != nil {
		return err
	}
	a.s.empties.took(a)
	if a.looks {
		if err := a.glanced(); err != nil {
			return err
		}
	}
	for _, more := range []func() error{
		func() error { return a.holdMore(ctx, w) },
		a.longer,
		func() error { return a.readBehind(ctx) },
		func() error { return a.readRepeated(ctx) },
	} {
		if err := more(); err != nil {
			return err
		}
	}
	if calls[0].Need.Prune.Asks() {
		return a.readPrunable(ctx, &calls[0], final, end)
	}
	return nil
}

// finalFor is up to which number the log is final, and where it ends, for a call that asks for a prune. That is found before anything is held.
func (a *attempt) finalFor(ctx context.Context, call *store.Call) (final, end int64, err error) {
	if !call.Need.Prune.Asks() {
		return 0, 0, nil
	}
	l, err := a.s.look(ctx)
	if err == nil {
		final, err = a.s.settled(ctx, l)
	}
	if err != nil {
		return 0, 0, err
	}
	return final, max(l.newest.position(), l.through), nil
}

// All rows of messages are held in one statement, in the order of their ids: those that are named, and those on pages of claims. Each is looked up by its
// id, in the order in which the ids come: a join whose result is to be in order may walk over the whole index instead.
var (
	namedQuery = "SELECT " + of("m", messageColumns) + " FROM unnest($1::uuid[]) AS x (id)" + eachHeld
	heldQuery  = "SELECT " + of("m", messageColumns) + " FROM (SELECT y.id FROM (SELECT u.id FROM unnest($1::uuid[]) AS u (id)" + claimedIDs +
		") y ORDER BY y.id) x" + eachHeld
	eachHeld = " CROSS JOIN LATERAL (SELECT " + messageColumns + " FROM @messages WHERE id = x.id FOR NO KEY UPDATE) m"
)

const claimedIDs = "" +
	" UNION SELECT c.id FROM unnest($2::uuid[], $3::bigint[]) AS w (worker, n) CROSS JOIN LATERAL (SELECT r.id FROM @messages r" +
	" WHERE r.worker = w.worker ORDER BY r.claimed_at, r.id LIMIT w.n) c" +
	" UNION SELECT c.id FROM unnest($4::text[], $5::bigint[]) AS t (topic, n) CROSS JOIN LATERAL (SELECT r.id FROM @messages r" +
	" WHERE r.worker IS NOT NULL AND r.topic = t.topic AND NOT r.counted ORDER BY r.claimed_at, r.id LIMIT t.n) c"

// The other queries by what is named.
const (
	topicsQuery  = "SELECT " + topicColumns + " FROM @topics WHERE name = ANY($1::text[]) ORDER BY name FOR NO KEY UPDATE"
	idsQuery     = "SELECT id, number, ordinal FROM @used_ids WHERE id = ANY($1::uuid[])"
	keysQuery    = "SELECT " + keyColumns + " FROM unnest($1::text[], $2::text[]) AS u (t, n) JOIN @keys k ON k.topic = u.t AND k.name = u.n"
	permitsByKey = "SELECT " + permitColumns + " FROM unnest($1::text[], $2::bigint[]) AS u (l, t) JOIN @permits p ON p.lock = u.l AND p.token = u.t"
	stateQuery   = "SELECT (SELECT value FROM @meta WHERE name = 'ids_dropped'), p.through, p.at, p.checksum" +
		" FROM (SELECT 1::smallint AS id) one LEFT JOIN @pruned p ON p.id = one.id"
	fenceQuery = "SELECT nextval('@fences') + " + fencesSkipped
)

func (a *attempt) holdMessages(p *pipeline, w *wants) {
	if len(w.messages)+len(w.estates)+len(w.uncounted) == 0 {
		return
	}
	ids := sortedIDs(w.messages)
	r := newRecord(messageColumns)
	found := func() error {
		a.found(events.KindMessage, r).held = true
		return nil
	}
	if len(w.estates)+len(w.uncounted) == 0 {
		p.query(r, found, namedQuery, ids)
	} else {
		workers, workerN := columnsOf(w.estates)
		topics, topicN := columnsOf(w.uncounted)
		p.query(r, found, heldQuery, ids, workers, workerN, topics, topicN)
	}
	if len(ids) == 0 {
		return
	}
	keys := make([]int64, len(ids))
	for i, id := range ids {
		keys[i] = a.s.entityKey(events.MessageEntity(id))
		c := a.blank(events.MessageEntity(id))
		c.known, c.held = true, true
	}
	p.exec(rowlessQuery, ids, keys)
}

func (a *attempt) holdTopics(p *pipeline, w *wants) {
	if len(w.topics) == 0 {
		return
	}
	names := slices.Sorted(maps.Keys(w.topics))
	for _, name := range names {
		a.blank(events.TopicEntity(name)).known = true
		a.pages.rowed[name] = true
	}
	r := newRecord(topicColumns)
	p.query(r, func() error {
		a.found(events.KindTopic, r)
		return nil
	}, topicsQuery, names)
}

// readNamed reads what is named and is held by an advisory key, or not at all.
func (a *attempt) readNamed(p *pipeline, w *wants) {
	ids := newRecord("id, number, ordinal")
	p.query(ids, func() error {
		id := store.CommitID(ids.array(0))
		if a.used[id] = ids.used(1); ids.err != nil {
			return fmt.Errorf("commit id %s: %w", id, ids.err)
		}
		return nil
	}, idsQuery, sortedIDs(w.ids))
	state := newRecord("value, through, at, checksum")
	p.query(state, func() error { return a.readState(state) }, stateQuery)
	kinds := map[events.Kind][]events.Entity{}
	for entity := range w.others {
		if entity.Kind == events.KindTopic && w.topics[entity.Name] {
			continue
		}
		a.blank(entity).known = true
		kinds[entity.Kind] = append(kinds[entity.Kind], entity)
	}
	for kind, list := range kinds {
		a.readRows(p, kind, list)
	}
	if len(w.keys) > 0 {
		a.readKeys(p, w.keys)
	}
	a.readPermits(p, slices.Collect(maps.Keys(w.permits)))
}

// readRows reads the rows of entities of one kind, which has a table.
func (a *attempt) readRows(p *pipeline, kind events.Kind, list []events.Entity) {
	t := tables[kind]
	if t == nil || len(list) == 0 {
		return
	}
	r := newRecord(t.columns)
	found := func() error { a.found(kind, r); return nil }
	text := "SELECT " + t.columns + " FROM @" + t.name + " WHERE " + t.key + " = ANY($1)"
	if kind.Named() {
		names := make([]string, len(list))
		for i, entity := range list {
			names[i] = entity.Name
		}
		p.query(r, found, text, names)
		return
	}
	ids := make([]events.ID, len(list))
	for i, entity := range list {
		ids[i] = entity.ID
	}
	p.query(r, found, text, ids)
}

// found takes in the row that was read. What the transaction has changed is newer.
func (a *attempt) found(kind events.Kind, r *record) *cell {
	t := tables[kind]
	row, err := t.row(r)
	c := a.blank(row.Entity)
	if c.dirty {
		return c
	}
	if c.stored && c.row.Version == row.Version { // it may have been read with its payload before
		row.Payload = c.row.Payload
	}
	c.row, c.kept, c.stored, c.known, c.err, c.from = row, true, true, true, err, row.Version
	if kind == events.KindMessage {
		c.place = r.place()
	}
	return c
}

func (a *attempt) readKeys(p *pipeline, keys map[store.Key]bool) {
	var topics, names []string
	for key := range keys {
		topics, names = append(topics, key.Topic), append(names, key.Name)
		a.keys[key] = &keyCell{KeyChange: store.KeyChange{Key: key}}
	}
	r := newRecord(keyColumns)
	p.query(r, func() error {
		key, row := r.key()
		k := a.keys[key]
		if k == nil {
			return nil
		}
		k.Row = row
		if r.err != nil {
			k.err = atFault{fmt.Errorf("key %q of topic %q: %w", key.Name, key.Topic, r.err)}
		}
		return nil
	}, keysQuery, topics, names)
}

// readPermits looks up permits.
func (a *attempt) readPermits(p *pipeline, keys []store.PermitKey) {
	var locks []string
	var tokens []int64
	for _, key := range keys {
		if c := a.blankPermit(key); !c.known {
			c.known = true
			locks, tokens = append(locks, key.Lock), append(tokens, int64(key.Token))
		}
	}
	if len(locks) == 0 {
		return
	}
	r := newRecord(permitColumns)
	p.query(r, func() error { a.foundPermit(r); return nil }, permitsByKey, locks, tokens)
}

func (a *attempt) drawFence(p *pipeline) {
	r := newRecord("fence")
	p.query(r, func() error {
		a.fence = r.whole(0, 1, math.MaxInt64>>blockBits) << blockBits
		return r.err
	}, fenceQuery)
}

func sortedIDs(set map[events.ID]bool) []events.ID {
	return slices.SortedFunc(maps.Keys(set), func(a, b events.ID) int { return slices.Compare(a[:], b[:]) })
}

// columnsOf is a map as two columns.
func columnsOf[K comparable](m map[K]int) (keys []K, values []int64) {
	keys, values = []K{}, []int64{}
	for k, v := range m {
		keys, values = append(keys, k), append(values, int64(v))
	}
	return keys, values
}

// readBeats reads heartbeats. One that is not what was written refuses the calls that must see it.
func (a *attempt) readBeats(p *pipeline, workers map[events.ID]bool) {
	if len(workers) == 0 {
		return
	}
	r := newRecord(beatColumns)
	p.query(r, func() error {
		b, err := r.beat()
		a.pages.beats[b.Worker] = beatRead{b, err}
		return nil
	}, beatsOf, sortedIDs(workers))
}
