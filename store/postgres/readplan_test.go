package postgres

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store"
)

// planned is a query with what its plan must name, and whether it may sort what it gives.
type planned struct {
	text  string
	must  []string
	args  string // values, where a plan for none of them would leave out what it is about
	sorts bool
	place bool // bitmaps of blocks are what it goes by
}

// pageOf is the query for a page of rows.
func pageOf(kind events.Kind, f store.RowFilter, after events.Entity) string {
	l := &listing{table: tables[kind], kind: kind, filter: f}
	if after.Kind == kind {
		l.after = &after
	}
	return l.page().query()
}

func permitPageOf(f store.PermitFilter, after *store.PermitKey) string {
	l := permitListing{filter: f, after: after}
	text, _ := l.next()
	return text
}

// readPlans is what readers ask.
func readPlans() map[string]planned {
	message := events.MessageEntity(events.ID{1})
	topic := events.TopicEntity("t")
	bounded := &listing{table: tables[events.KindMessage], kind: events.KindMessage, after: &message}
	bound, _ := bounded.page().bound()
	key := &store.PermitKey{Lock: "l", Token: 1}
	byID := []string{"Index Scan using messages_pkey on messages t", "Index Cond: (id > $1)"}
	return map[string]planned{
		"newest transaction":          {text: newestQuery, must: []string{"Index Scan Backward using decisions_1_number_idx"}},
		"head":                        {args: `5`, text: headQuery, must: []string{"Index Scan Backward using decisions_1_number_idx", "Index Cond: (number <= $1)"}},
		"transactions of a page":      {args: `1, 5, 100`, text: decisionsQuery, must: []string{"Index Scan using decisions_1_number_idx", "Index Cond: ((number >= $1) AND (number <= $2))"}},
		"events of a page":            {args: `1, 90000, 100`, text: eventsQuery, must: []string{"Bitmap Index Scan on events_1_position_idx"}, sorts: true, place: true},
		"events among blocks":         {args: `1, 90000, 100, '{"(0,0)","(3,0)"}', '{"(1,0)","(9,0)"}'`, text: nearQuery, must: []string{"Tid Range Scan on events_1", "TID Cond: ((ctid >= b.low) AND (ctid < b.high))"}, sorts: true},
		"moves of an entity":          {args: `'x', 0, 1, 90000, 100`, text: movesQuery, must: []string{"using events_1_stream_version_idx", "Index Cond: ((stream = $1) AND (version > $2))"}},
		"notes of an entity":          {args: `'x', 1, 90000, 100`, text: notesQuery, must: []string{"using events_1_stream_version_idx", "Index Cond: ((stream = $1) AND (version IS NULL))"}, sorts: true},
		"transactions of events":      {text: decisionsByIDs, must: []string{"using decisions_1_number_idx", "Index Cond: (number = ANY ($1))"}},
		"newest events of entities":   {text: newestEventsQuery, must: []string{"Index Scan Backward using events_1_stream_version_idx", "using decisions_1_number_idx"}},
		"contents":                    {text: contentsQuery, must: []string{"using payloads_pkey", "using results_pkey", "using messages_pkey", "using places_pkey"}},
		"who has a key":               {text: holderQuery, must: []string{"using keys_pkey"}},
		"first claims":                {text: walks[store.FirstClaims].firsts, must: []string{"Index Cond: (worker > $1)", "Index Cond: (worker > f_1.worker)"}},
		"first waits":                 {text: walks[store.FirstWaits].firsts, must: []string{"Index Cond: (ROW(lock, topic) > ROW($1, $2))", "Index Cond: (ROW(lock, topic) > ROW(f_1.lock, f_1.topic))"}},
		"claims of a worker":          {text: openClaims, must: []string{"using messages_running"}},
		"blocked by a lock":           {text: blockedOf, must: []string{"using messages_waiting", "(lock = $1) AND (topic = $2) AND (waiting = 1)"}},
		"page of messages":            {text: pageOf(events.KindMessage, store.RowFilter{}, message), must: byID},
		"page of payloads":            {text: pageOf(events.KindMessage, store.RowFilter{Payloads: true}, message), must: append(byID, "using payloads_pkey")},
		"page of falling messages":    {text: pageOf(events.KindMessage, store.RowFilter{Order: store.Falling}, message), must: []string{"Index Scan Backward using messages_pkey", "(id < $1)"}},
		"page of a topic's messages":  {text: pageOf(events.KindMessage, store.RowFilter{Topic: "t", States: []events.State{1}}, message), must: byID},
		"page of a worker's messages": {text: pageOf(events.KindMessage, store.RowFilter{Worker: events.ID{1}}, message), must: []string{"messages_running", "using messages_pkey on messages m", "Index Cond: (id = held.id)"}, sorts: true},
		"bound of a page":             {text: bound, must: []string{"messages_pkey", "Index Cond: (id > $1)"}},
		"page of topics":              {text: pageOf(events.KindTopic, store.RowFilter{}, topic), must: []string{"using topics_pkey", "Index Cond: (name > $1)"}},
		"page of falling topics":      {text: pageOf(events.KindTopic, store.RowFilter{Order: store.Falling}, topic), must: []string{"Index Scan Backward using topics_pkey"}},
		"page of locks":               {text: pageOf(events.KindLock, store.RowFilter{}, events.LockEntity("l")), must: []string{"using locks_pkey"}},
		"permits":                     {text: permitPageOf(store.PermitFilter{}, key), must: []string{"using permits_pkey", "ROW(lock, token) > ROW($1, $2)"}},
		"permits of a lock":           {text: permitPageOf(store.PermitFilter{Lock: "l"}, key), must: []string{"using permits_pkey", "(lock = $2) AND (token > $1)"}},
		"permits of a worker":         {text: permitPageOf(store.PermitFilter{Worker: events.ID{1}}, key), must: []string{"permits_worker"}, sorts: true},
		"heartbeat":                   {text: beatAgain, must: []string{"using beats_pkey"}},
		"heartbeats of some":          {text: beatsOf, must: []string{"using beats_pkey"}},
		"lease":                       {text: leaseQuery, must: []string{"using leases_pkey"}},
		"newest checkpoint":           {text: newestFirst, must: []string{"Index Scan Backward using checkpoints_pkey"}},
		"what is staged":              {args: `0, 200, 4000000`, text: stagedQuery, must: []string{"Index Scan using staged_pkey", "Index Cond: (place > $1)"}},
		"what is staged of messages":  {args: `0, 200, 4000000, '{}'`, text: stagedOfQuery, must: []string{"using staged_id"}, sorts: true},
		"what is staged and held":     {text: holdStagedQuery, must: []string{"Index Scan using staged_pkey", "Index Cond: (place = ANY ($1))"}},
		"what is staged and goes":     {args: `'{}', 0`, text: deleteStaged, must: []string{"Index Scan using staged_pkey"}},
	}
}

var placeholder = regexp.MustCompile(`\$\d+`)

// plan explains a query as it is run: with the pins, by a plan for all arguments.
func (h *hand) plan(q planned) string {
	h.t.Helper()
	ctx := context.Background()
	h.do("BEGIN")
	h.do(pins, h.s.pinArgs()...)
	if q.place {
		h.do(byPlace)
	}
	if _, err := h.try("PREPARE explained AS " + q.text); err != nil {
		h.t.Errorf("%s: %v", q.text, err)
		h.do("ROLLBACK")
		return ""
	}
	execute := "EXECUTE explained"
	used := placeholder.FindAllString(q.text, -1)
	slices.Sort(used)
	if q.args != "" {
		execute += "(" + q.args + ")"
	} else if n := len(slices.Compact(used)); n > 0 {
		execute += "(" + strings.Repeat("NULL, ", n-1) + "NULL)"
	}
	rows, err := h.conn.Query(ctx, "EXPLAIN (COSTS OFF) "+execute)
	if err != nil {
		h.t.Fatal(err)
	}
	var steps []string
	for rows.Next() {
		var step string
		if err := rows.Scan(&step); err != nil {
			h.t.Fatal(err)
		}
		steps = append(steps, strings.TrimSpace(step))
	}
	rows.Close()
	h.do("ROLLBACK")
	h.do("DEALLOCATE explained") // no transaction takes it back
	if err := rows.Err(); err != nil {
		h.t.Errorf("%s: %v", execute, err)
	}
	return strings.Join(steps, "\n")
}

var (
	walksOver = regexp.MustCompile(`Seq Scan on \S+`)
	sorting   = regexp.MustCompile(`(?m)Sort$`)
)

// fill makes tables large by hand, so that nothing but their size changes.
func (h *hand) fill(n int) {
	h.t.Helper()
	for _, text := range []string{
		"INSERT INTO @messages (place, due, claimed_at, lock_token, version, state, priority, waiting, counted, id, worker, topic, lock, fields)" +
			" SELECT i << 14, CASE WHEN i % 3 = 0 THEN i END, CASE WHEN i % 3 = 1 THEN i END, NULL, 1, 3, 1, CASE WHEN i % 3 = 2 THEN 1 ELSE 0 END, false," +
			" gen_random_uuid(), CASE WHEN i % 3 = 1 THEN lpad((i % 50)::text, 32, '0')::uuid END, 't' || i % 7, CASE WHEN i % 3 = 2 THEN 'l' || i % 100 END, 'x' FROM generate_series(1, N) i",
		"INSERT INTO @decisions SELECT i, i, 3, 0, 'x' FROM generate_series(1, N) i",
		"INSERT INTO @events SELECT i << 14 | k, k + 1, 1, 1, 1, 1, 0, decode(md5(i::text), 'hex'), 'x' FROM generate_series(1, N) i, generate_series(0, 2) k",
		"INSERT INTO @permits SELECT 'l' || i % 100, i, lpad((i % 50)::text, 32, '0')::uuid, NULL, i, CASE WHEN i % 2 = 0 THEN i END FROM generate_series(1, N) i",
		"INSERT INTO @topics SELECT 't' || i, 1, 1, 0, 'x' FROM generate_series(1, N) i",
		"INSERT INTO @locks SELECT 'l' || i, 1, 1, 'x' FROM generate_series(1, N) i",
		"INSERT INTO @payloads SELECT i << 14, 'x', 'x' FROM generate_series(1, N) i",
		"INSERT INTO @beats SELECT lpad(i::text, 32, '0')::uuid, i, i, i, 0 FROM generate_series(1, N) i",
	} {
		h.do(strings.ReplaceAll(text, "N)", fmt.Sprint(n, "::bigint)")))
	}
}

// walks holds plans against what they must be.
func (h *hand) walks(what string, plans map[string]planned) {
	h.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(plans)) {
		q := plans[name]
		q.text = h.s.sql(q.text)
		plan := h.plan(q)
		wrong := walksOver.MatchString(plan) || sorting.MatchString(plan) && !q.sorts
		for _, part := range q.must {
			wrong = wrong || !strings.Contains(plan, part)
		}
		if wrong {
			h.t.Errorf("%s (%s): want %q\n%s", name, what, q.must, plan)
		}
	}
}

// Plans must not depend on statistics: they are the same over tables that are empty, large and never looked at, and large.
func TestReadersWalkIndexes(t *testing.T) {
	s := openAt(t, pgtest.Database(t), Options{})
	h := newHand(t, s)
	for _, c := range []struct {
		what string
		make func()
	}{
		{"empty", func() {}},
		{"large, never analysed", func() { h.fill(20_000) }},
		{"large, analysed", func() { h.do("ANALYZE") }},
		{"analysed when it was empty", func() {
			h.do("TRUNCATE @messages, @events, @decisions, @permits, @topics, @locks, @payloads, @beats")
			h.do("ANALYZE")
			h.fill(20_000)
		}},
	} {
		c.make()
		h.walks(c.what, readPlans())
	}
}
