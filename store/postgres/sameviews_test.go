package postgres_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
	"github.com/foundling-go/foundling/store/postgres"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"
)

// This file sends the same calls to the engine in memory and to this one, and compares what their functions are given. The calls are none that a rule
// makes: any call may name anything, and changes whatever it sees in any way. What no rule asks for today one may ask for tomorrow.

// plot is what one run has to choose from.
type plot struct {
	run      uint64
	topics   []string
	locks    []string
	workers  []events.ID
	messages []events.ID
	others   []events.Entity
	clock    time.Time
	calls    int
	known    []store.Row // of receipts
	permits  []store.PermitKey
	ids      []store.CommitID
}

func (p *plot) mint(kind, n uint64) events.ID {
	var id events.ID
	ms := uint64(p.clock.UnixMilli())
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	binary.BigEndian.PutUint32(id[6:], uint32(p.run))
	binary.BigEndian.PutUint16(id[10:], uint16(kind))
	binary.BigEndian.PutUint32(id[12:], uint32(n))
	id[6], id[8] = 0x70|id[6]&0x0f, 0x80|id[8]&0x3f
	return id
}

func newPlot(run uint64, clock time.Time) *plot {
	p := &plot{run: run, clock: clock}
	for i := range uint64(2) {
		p.topics = append(p.topics, fmt.Sprintf("t%d of %d", i, run))
		p.workers = append(p.workers, p.mint(1, i))
	}
	for i := range 3 {
		p.locks = append(p.locks, fmt.Sprintf("l%d of %d", i, run))
	}
	for i := range uint64(10) {
		p.messages = append(p.messages, p.mint(2, i))
	}
	p.others = []events.Entity{events.LeaderEntity(fmt.Sprint("lead ", run)), events.SweepEntity(p.mint(3, 0))}
	return p
}

// act is one call, in a form that makes the same of it for any engine.
type act struct {
	id   store.CommitID
	need store.Need
	how  string
	seed uint64
	n    int
}

func some[T any](t *rapid.T, what string, list []T, most int) []T {
	if len(list) == 0 {
		return nil
	}
	return rapid.SliceOfN(rapid.SampledFrom(list), 0, most).Draw(t, what)
}

func (p *plot) entities() []events.Entity {
	var all []events.Entity
	for _, m := range p.messages {
		all = append(all, events.MessageEntity(m))
	}
	for _, name := range p.topics {
		all = append(all, events.TopicEntity(name))
	}
	for _, name := range p.locks {
		all = append(all, events.LockEntity(name), events.LockEntity(name))
	}
	for _, w := range p.workers {
		all = append(all, events.WorkerEntity(w))
	}
	return append(all, p.others...)
}

func pages(t *rapid.T, what string, names []string) (list []store.Page) {
	for _, name := range some(t, what, names, 2) {
		list = append(list, store.Page{Topic: name, N: rapid.IntRange(0, 4).Draw(t, "n")})
	}
	return list
}

// parts of a need, of which each call has some.
const (
	partHeld = 1 << iota
	partKnown
	partClaim
	partClaims
	partUncounted
	partKeys
	partLocks
	partPermits
	partHolders
	partBeats
	parts = iota
)

func (p *plot) asking(t *rapid.T) (n store.Need) {
	which := 0
	for range rapid.IntRange(0, 4).Draw(t, "parts") {
		which |= 1 << rapid.IntRange(0, parts-1).Draw(t, "part")
	}
	if which&partHeld != 0 {
		n.Held = some(t, "held", p.entities(), 5)
	}
	if which&partKnown != 0 {
		n.Known = some(t, "known", p.known, 2)
	}
	if which&partClaim != 0 {
		n.Claim = pages(t, "claim", p.topics)
	}
	if which&partClaims != 0 {
		for _, w := range some(t, "claims", p.workers, 2) {
			n.Claims = append(n.Claims, store.Holder{Worker: w, N: rapid.IntRange(0, 3).Draw(t, "n")})
		}
	}
	if which&partUncounted != 0 {
		n.Uncounted = pages(t, "uncounted", p.topics)
	}
	if which&partKeys != 0 {
		for _, name := range some(t, "keys", p.topics, 2) {
			n.Keys = append(n.Keys, store.Key{Topic: name, Name: rapid.SampledFrom([]string{"k", "l"}).Draw(t, "key")})
		}
	}
	if which&partLocks != 0 {
		n.Locks = some(t, "locks", p.locks, 2)
	}
	if which&partPermits != 0 {
		n.Permits = some(t, "permits", p.permits, 3)
	}
	if which&partHolders != 0 {
		for _, name := range some(t, "holders", p.locks, 2) {
			n.Holders = append(n.Holders, store.LockPage{Lock: name, N: rapid.IntRange(0, 3).Draw(t, "n")})
		}
	}
	if which&partBeats != 0 {
		n.Beats = some(t, "beats", p.workers, 2)
	}
	return n
}

func (p *plot) act(t *rapid.T) act {
	p.calls++
	a := act{
		id: p.mint(4, uint64(p.calls)), n: p.calls, seed: rapid.Uint64().Draw(t, "seed"),
		how: rapid.SampledFrom([]string{"change", "change", "change", "change", "nothing", "refuse", "blind", "new", "prune"}).Draw(t, "how"),
	}
	if len(p.ids) > 0 && rapid.IntRange(0, 19).Draw(t, "again") == 0 {
		a.id = rapid.SampledFrom(p.ids).Draw(t, "id")
	}
	p.ids = append(p.ids, a.id)
	switch a.how {
	case "blind":
		a.need.Known = some(t, "known", p.known, 3)
	case "new":
	case "prune":
		a.need = p.asking(t)
		a.need.Held = append(a.need.Held, events.LogEntity())
		a.need.Prune = store.Prunable{Before: p.clock.Add(time.Duration(rapid.IntRange(-4, 1).Draw(t, "before")) * time.Second), Events: rapid.IntRange(1, 12).Draw(t, "events"), Rows: 100}
	default:
		a.need = p.asking(t)
	}
	return a
}

// move is one version of an entity.
func move(e events.Entity, from int, list ...events.Event) store.Change {
	c := store.Change{From: from, Row: store.Row{Entity: e, Version: from, State: events.Active, Fields: []byte("{}")}}
	for _, event := range list {
		tr := events.Transition{Event: event, From: events.Active, To: events.Active}
		if event.Type().Moves() {
			c.Row.Version++
			tr.Version = c.Row.Version
		}
		c.Transitions = append(c.Transitions, tr)
	}
	return c
}

func snapshotted(row store.Row) store.Change {
	said := events.Snapshot{State: row.Fields}
	c := move(row.Entity, row.Version, map[events.Kind]events.Event{
		events.KindMessage: &events.MessageSnapshotted{Snapshot: said}, events.KindTopic: &events.TopicSnapshotted{Snapshot: said},
		events.KindWorker: &events.WorkerSnapshotted{Snapshot: said}, events.KindLock: &events.LockSnapshotted{Snapshot: said},
		events.KindLeader: &events.LeaderSnapshotted{Snapshot: said},
	}[row.Entity.Kind])
	version := c.Row.Version
	c.Row = row
	c.Row.Version, c.Row.Payload = version, nil
	return c
}

func mover(e events.Entity) events.Event {
	switch e.Kind {
	case events.KindMessage:
		return &events.MessageBlocked{Lock: "l"}
	case events.KindTopic:
		return &events.TopicConfigured{Limit: 1}
	case events.KindLock:
		return &events.LockReleased{Token: 1}
	case events.KindWorker:
		return &events.WorkerStopped{}
	case events.KindLeader:
		return &events.LeaderResigned{}
	}
	return nil
}

// maker makes the changes of a call out of what it sees, the same for the same.
type maker struct {
	*plot
	*act
	rng  *rand.Rand
	view store.View
	out  store.Changes
	done map[events.Entity]bool
}

func (m *maker) one(in int) bool { return m.rng.IntN(in) == 0 }

func pick[T any](m *maker, list []T) T { return list[m.rng.IntN(len(list))] }

// form gives a message's row one of the forms that rows have.
func (m *maker) form(row *store.Row) {
	row.DueAt, row.Worker, row.ClaimedAt, row.Counted, row.LockToken, row.Waiting = time.Time{}, events.ID{}, time.Time{}, false, 0, store.NotWaiting
	row.Priority = pick(m, events.Priorities())
	switch m.rng.IntN(7) {
	case 0, 1:
		row.DueAt = m.clock.Add(time.Duration(m.rng.IntN(4)-2) * time.Second)
	case 2:
		row.DueAt = m.clock.Add(-time.Second)
		if row.Lock != "" {
			row.Waiting = store.Trying
		}
	case 3, 4:
		row.Worker, row.ClaimedAt, row.Counted = pick(m, m.workers), m.clock.Add(time.Duration(m.rng.IntN(3))*time.Second), m.one(2)
		if row.Lock != "" {
			row.LockToken = m.give(row.Lock, row.Worker, row.Entity.ID)
		}
	case 5:
		if row.Lock != "" {
			row.Waiting = store.Blocked
		}
	}
}

// give gives a permit out.
func (m *maker) give(lock string, worker, message events.ID) events.Token {
	token := events.Token(m.n*100 + len(m.out.Permits) + 1)
	permit := store.Permit{
		PermitKey: store.PermitKey{Lock: lock, Token: token}, Worker: worker, Message: message,
		AcquiredAt: m.clock.Add(time.Duration(m.rng.IntN(3)) * time.Second),
	}
	if m.one(2) {
		permit.ExpiresAt = m.clock.Add(time.Duration(m.rng.IntN(3)+1) * time.Minute)
	}
	m.out.Permits = append(m.out.Permits, store.PermitChange{Permit: permit})
	return token
}

// touch changes an entity that is at a version.
func (m *maker) touch(e events.Entity, row store.Row, version int) {
	if m.done[e] {
		return
	}
	m.done[e] = true
	var list []events.Event
	if event := mover(e); event != nil {
		for range 1 + m.rng.IntN(2) {
			list = append(list, event)
		}
	}
	if e.Kind == events.KindLock && m.one(4) {
		list = []events.Event{&events.LockRefused{Command: "unlock"}}
	}
	if e.Kind == events.KindSweep || len(list) == 0 {
		return
	}
	c := move(e, version, list...)
	if version == 0 && c.Row.Version == 0 {
		return
	}
	if e.Kind == events.KindMessage {
		c.Row.Topic, c.Row.Lock = row.Topic, row.Lock
		if row.Topic == "" {
			c.Row.Topic = pick(m, m.topics)
			if m.one(3) {
				c.Row.Lock = pick(m, m.locks)
			}
		}
		if version == 0 {
			c.Payload = &store.Payload{Bytes: []byte(fmt.Sprint("payload ", m.n))}
		}
		if m.form(&c.Row); version > 0 && row.Topic == "" { // what has ended is never claimed at once
			c.Row.Worker, c.Row.ClaimedAt, c.Row.Counted, c.Row.LockToken = events.ID{}, time.Time{}, false, 0
		}
	}
	c.Row.Fields = fmt.Appendf(nil, `{"n":%d}`, m.n)
	c.Gone = e.Kind != events.KindTopic && m.one(3)
	if c.Gone {
		c.Row.DueAt, c.Row.Worker, c.Row.ClaimedAt, c.Row.Counted, c.Row.LockToken, c.Row.Waiting = time.Time{}, events.ID{}, time.Time{}, false, 0, 0
	}
	m.out.Rows = append(m.out.Rows, c)
}

var errRefused = errors.New("refused")

func (m *maker) changes() (store.Changes, error) {
	m.done = map[events.Entity]bool{}
	switch m.how {
	case "nothing":
		return store.Changes{}, nil
	case "refuse":
		return store.Changes{}, errRefused
	case "blind":
		for _, row := range m.need.Known {
			if now, ok := m.view.Rows[row.Entity]; ok {
				m.touch(row.Entity, now, now.Version)
			}
		}
		m.beside()
		return m.out, nil
	case "new":
		for i := range 1 + m.rng.IntN(3) {
			m.touch(events.MessageEntity(m.mint(5, uint64(m.n*10+i))), store.Row{}, 0)
		}
		m.beside()
		return m.out, nil
	}
	if through := m.view.Pruning.Through; m.how == "prune" {
		if through == 0 || m.one(4) {
			return store.Changes{}, nil
		}
		for _, row := range m.view.Pruning.Rows {
			m.out.Rows = append(m.out.Rows, snapshotted(row))
		}
		version := 0
		for _, r := range m.view.History[events.LogEntity()] {
			version = max(version, r.Version)
		}
		c := move(events.LogEntity(), version, &events.LogPruned{Through: through})
		c.Gone = true
		m.out.Rows, m.out.Prune = append(m.out.Rows, c), through
		return m.out, nil
	}
	seen := map[events.Entity]store.Row{}
	maps.Copy(seen, m.view.Rows)
	for _, lists := range []map[string][]store.Row{m.view.Claimable, m.view.Uncounted, m.view.Waiting} {
		for _, list := range lists {
			for _, row := range list {
				seen[row.Entity] = row
			}
		}
	}
	for _, list := range m.view.Claims {
		for _, row := range list {
			seen[row.Entity] = row
		}
	}
	named := slices.Clone(m.need.Held)
	for _, lock := range m.need.Locks {
		named = append(named, events.LockEntity(lock))
	}
	for _, e := range slices.SortedFunc(maps.Keys(seen), events.Entity.Compare) {
		if m.one(2) {
			m.touch(e, seen[e], seen[e].Version)
		}
	}
	for _, e := range named {
		if _, ok := seen[e]; ok || m.one(2) {
			continue
		}
		version := 0
		for _, r := range m.view.History[e] {
			version = max(version, r.Version)
		}
		m.touch(e, store.Row{}, version)
	}
	m.beside()
	return m.out, nil
}

// beside changes what stands beside rows.
func (m *maker) beside() {
	if len(m.out.Rows) == 0 {
		return
	}
	if m.one(3) {
		m.out.Counts = append(m.out.Counts, store.Count{Topic: pick(m, m.topics), Delta: 1 - 2*m.rng.IntN(2)})
	}
	if m.one(4) {
		k := store.KeyChange{Key: store.Key{Topic: pick(m, m.topics), Name: pick(m, []string{"k", "l"})}}
		if m.one(2) {
			k.Row = store.KeyRow{Message: pick(m, m.messages), Open: m.one(2), UntilAt: m.clock.Add(time.Hour)}
		}
		m.out.Keys = append(m.out.Keys, k)
	}
	if m.one(3) {
		m.give(pick(m, m.locks), pick(m, m.workers), events.ID{})
	}
	permits := slices.SortedFunc(slices.Values(m.view.Permits), func(a, b store.Permit) int {
		return cmp.Or(strings.Compare(a.Lock, b.Lock), cmp.Compare(a.Token, b.Token))
	})
	for _, permit := range permits {
		if m.one(2) {
			m.out.Permits = append(m.out.Permits, store.PermitChange{Permit: permit, Back: true})
		}
	}
}

// made is the call on one engine; view is filled with what it was given last.
func (a *act) made(p *plot, view *store.View) store.Call {
	calls := *p
	return store.Call{ID: a.id, Command: events.Command{Name: "test"}, Need: a.need, Fn: func(v store.View) (store.Changes, error) {
		*view = v
		m := &maker{plot: &calls, act: a, rng: rand.New(rand.NewPCG(a.seed, 1)), view: v}
		return m.changes()
	}}
}

func lineOf(r store.Row) string {
	text := fmt.Sprintf("%s v%d %s %s topic=%q priority=%s due=%s worker=%s claimed=%s counted=%t lock=%q lock_token=%d waiting=%d running=%d",
		r.Entity, r.Version, r.State, r.Fields, r.Topic, r.Priority, r.DueAt.Format(time.RFC3339Nano), r.Worker,
		r.ClaimedAt.Format(time.RFC3339Nano), r.Counted, r.Lock, r.LockToken, r.Waiting, r.Running)
	if r.Payload != nil {
		text += fmt.Sprintf(" payload=%q", r.Payload.Bytes)
	}
	return text
}

func eventsOf(list []events.Recorded) (text []string) {
	for _, r := range list {
		body := string(events.Encode(r.Entity, r.Transition).Body)
		if r.Entity == events.LogEntity() {
			body = "" // it names a position
		}
		text = append(text, fmt.Sprintf("%s v%d %s %s of %s (%d)", r.Entity, r.Version, r.Event.Type(), body, r.Commit.ID, r.Commit.Count))
	}
	return text
}

// told is a view as text.
func told(v store.View) string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	bare := func(r store.Row) store.Row { r.Payload = nil; return r }
	for _, row := range v.Rows {
		add("row %s", lineOf(bare(row)))
	}
	for e, list := range v.History {
		add("history of %s: %q", e, eventsOf(list))
	}
	for topic, list := range v.Claimable {
		for i, row := range list {
			add("claimable of %s, %d: %s", topic, i, lineOf(row))
		}
	}
	for topic, list := range v.Uncounted {
		for i, row := range list {
			add("uncounted of %s, %d: %s", topic, i, lineOf(bare(row)))
		}
	}
	for worker, list := range v.Claims {
		for i, row := range list {
			add("claims of %s, %d: %s", worker, i, lineOf(bare(row)))
		}
	}
	for key, row := range v.Keys {
		add("key %v: %v", key, row)
	}
	for lock, list := range v.Waiting {
		add("waiting for %s: %d", lock, len(list))
		for _, row := range list {
			add("waiting for %s: %s", lock, lineOf(row))
		}
	}
	for _, permit := range v.Permits {
		add("permit %v", permit)
	}
	for worker, beat := range v.Beats {
		beat.First = false
		add("beat of %s: %v", worker, beat)
	}
	if v.Pruning.Through > 0 {
		add("pruning %d events, %s", v.Pruning.Events, v.Pruning.At)
	}
	for _, row := range v.Pruning.Rows {
		add("pruning needs %s", lineOf(bare(row)))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func answer(r store.Receipt) string {
	var lines []string
	for _, row := range r.Rows {
		if row.Worker == (events.ID{}) {
			row.Payload = nil
		}
		lines = append(lines, lineOf(row))
	}
	slices.Sort(lines)
	return fmt.Sprintf("refused: %t\n%s\n%s", r.Err != nil, strings.Join(eventsOf(r.Events), "\n"), strings.Join(lines, "\n"))
}

// locked reports whether a view has a lock that its call holds.
func locked(need *store.Need, v store.View) bool {
	held := len(need.Locks) > 0
	for _, e := range need.Held {
		held = held || e.Kind == events.KindLock
	}
	for _, list := range v.Claimable {
		for _, row := range list {
			held = held || row.Lock != ""
		}
	}
	for _, list := range v.Claims {
		for _, row := range list {
			held = held || row.LockToken != 0
		}
	}
	return held
}

func TestViewsAreThoseOfTheEngineInMemory(t *testing.T) {
	dsn := template(t).Borrowed(t)
	clock := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	now := func() time.Time { return clock }
	var stores []*postgres.Store
	for range 2 {
		s, err := postgres.Open(t.Context(), dsn, postgres.Options{Clock: now})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		stores = append(stores, s)
	}
	run := uint64(0)
	admin, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	rapid.Check(t, func(rt *rapid.T) {
		run++
		for _, table := range []string{"messages", "topics", "workers", "locks", "leaders", "clocks", "keys", "permits", "beats", "payloads", "results", "snapshots", "places", "events", "decisions", "used_ids"} {
			if _, err := admin.Exec(context.Background(), "DELETE FROM foundling."+table); err != nil {
				rt.Fatal(err)
			}
		}
		p := newPlot(run, clock)
		m := memory.New(memory.Options{Clock: now})
		defer m.Close()
		for range rapid.IntRange(1, 12).Draw(rt, "batches") {
			sameBatch(rt, p, m, stores)
			clock = clock.Add(time.Second)
			p.clock = clock
		}
	})
}

func sameBatch(t *rapid.T, p *plot, m store.Store, stores []*postgres.Store) {
	s := stores[rapid.IntRange(0, len(stores)-1).Draw(t, "store")]
	if rapid.IntRange(0, 5).Draw(t, "beat") == 0 {
		b := store.Beat{Worker: rapid.SampledFrom(p.workers).Draw(t, "worker"), First: true, Interval: time.Second}
		for _, s := range []store.Store{m, s} {
			heart, _ := store.As[store.Heart](s)
			if _, err := heart.Beat(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
	}
	acts := make([]act, rapid.IntRange(1, 5).Draw(t, "calls"))
	wanted, got := make([]store.View, len(acts)), make([]store.View, len(acts))
	var one, other []store.Call
	for i := range acts {
		acts[i] = p.act(t)
		one, other = append(one, acts[i].made(p, &wanted[i])), append(other, acts[i].made(p, &got[i]))
	}
	want, err := m.Decide(t.Context(), one...)
	if err != nil {
		t.Fatal(err)
	}
	receipts, err := s.Decide(t.Context(), other...)
	if err != nil {
		for i := range want {
			t.Logf("call %d: memory says %v", i, want[i].Err)
		}
		t.Fatal(err)
	}
	for i := range acts {
		again := slices.ContainsFunc(acts[:i], func(a act) bool { return a.id == acts[i].id })
		if w, g := told(wanted[i]), told(got[i]); w != g && !again && wanted[i].Rows != nil { // else it was kept before
			t.Fatalf("call %d of %d, %s\nneed %+v\nwas given\n%s\nwant\n%s\nanswers\n%s\n%v\nwant\n%s\n%v", i, len(acts), acts[i].how, acts[i].need, g, w, answer(receipts[i]), receipts[i].Err, answer(want[i]), want[i].Err)
		}
		if got[i].Rows != nil && locked(&acts[i].need, got[i]) && got[i].Fence == 0 {
			t.Fatalf("call %d: no fence, need %+v", i, acts[i].need)
		}
		if w, g := answer(want[i]), answer(receipts[i]); w != g {
			t.Fatalf("call %d of %d, %s, is answered\n%s\n%v\nwant\n%s\n%v", i, len(acts), acts[i].how, g, receipts[i].Err, w, want[i].Err)
		}
		for _, row := range want[i].Rows {
			if row.Entity.Kind == events.KindMessage {
				p.known = append(p.known, row)
			}
		}
	}
	for i := range acts {
		list, _ := acts[i].made(p, new(store.View)).Fn(wanted[i])
		for _, change := range list.Permits {
			p.permits = append(p.permits, change.Permit.PermitKey)
		}
	}
}
