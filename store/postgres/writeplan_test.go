package postgres

import (
	"testing"

	"github.com/foundling-go/foundling/internal/pgtest"
)

// writePlans is what commits ask and write.
func writePlans() map[string]planned {
	byID := []string{"Index Scan using messages_pkey on messages", "Index Cond: (id = u.id)"} // without the second, it walks over all of them
	return map[string]planned{
		"claimable messages": {text: claimableQuery, must: []string{
			"Index Scan using messages_claimable on messages", "Index Cond: ((topic = $1) AND (priority = u.priority) AND (due IS NOT NULL) AND (due <=",
			"using payloads_pkey"}},
		"named messages":         {text: namedQuery, must: []string{"Index Scan using messages_pkey on messages", "Index Cond: (id = x.id)"}},
		"messages of pages":      {text: heldQuery, must: []string{"Index Scan using messages_pkey on messages", "Index Cond: (id = u.id)", "using messages_running"}, sorts: true},
		"messages without a row": {text: rowlessQuery, must: []string{"using messages_pkey"}, sorts: true},
		"topics":                 {text: topicsQuery, must: []string{"using topics_pkey"}},
		"commit ids":             {text: idsQuery, must: []string{"using used_ids_pkey"}},
		"keys":                   {text: keysQuery, must: []string{"using keys_pkey"}},
		"permits":                {text: permitsByKey, must: []string{"using permits_pkey"}},
		"permits of a worker":    {text: workerPermitsQuery, must: []string{"using permits_worker"}},
		"permits of a lock":      {text: lockPermitsQuery, must: []string{"using permits_lock"}},
		"claims of a worker":     {text: claimsQuery, must: []string{"using messages_running", "Index Cond: (worker = $1)"}},
		"who waits": {text: waitersQuery, must: []string{
			"Index Scan using messages_waiting on messages m_1", "Index Cond: (lock = w.lock)", "Index Scan using messages_waiting on messages m_2",
			"Index Cond: ((lock = f_1.lock) AND (ROW(topic, waiting) > ROW(f_1.topic, f_1.waiting)))"}},
		"histories":        {text: historiesQuery, must: []string{"using events_1_stream_version_idx", "using decisions_1_number_idx"}, sorts: true},
		"messages that go": {text: deleteMessages, must: byID},
		"messages":         {text: updateMessages, must: byID},
		"what was seen":    {text: confirmQuery, must: byID},
		"what two change":  {text: bothQuery, must: byID},
		"topics that move": {text: updateTopics, must: []string{"using topics_pkey"}},
		"counts":           {text: countTopics, must: []string{"using topics_pkey"}},
		"permits that go":  {text: deletePermits, must: []string{"using permits_pkey"}},
		"keys that go":     {text: deleteKeys, must: []string{"using keys_pkey"}},
		"payloads":         {text: payloadsQuery, must: []string{"using messages_pkey", "Index Cond: (id = ANY ($1))", "using payloads_pkey"}},
		"first events that go": {text: beheadedQuery, must: []string{
			"Bitmap Index Scan on events_1_position_idx", "Index Scan Backward using events_1_stream_version_idx", "using messages_pkey"}, place: true, args: "1, 90000"},
		"messages that ended behind": {text: endsBehindQuery, must: []string{
			"Bitmap Index Scan on events_1_position_idx", "Index Scan Backward using events_1_stream_version_idx", "using messages_pkey"},
			sorts: true, place: true, args: "1, 90000, 90000"},
		"messages that stay": {text: keepRowsQuery, must: []string{"Bitmap Index Scan on events_1_position_idx", "using messages_pkey on messages m"},
			sorts: true, place: true, args: "1, 90000"},
		"payloads that go": {text: pruneStatements[0], must: []string{"Bitmap Index Scan on events_1_position_idx", "using payloads_pkey"},
			sorts: true, place: true, args: "1, 90000"},
		"places that go": {text: pruneStatements[2], must: []string{"Bitmap Index Scan on events_1_position_idx", "using places_pkey"},
			sorts: true, place: true, args: "1, 90000"},
		"ids that are old": {text: oldestQuery, must: []string{"using used_ids_pkey"}},
		"commits of ids":   {text: decisionsOf, must: []string{"using decisions_1_number_idx"}},
		"events of commits": {text: eventsOf, must: []string{"Bitmap Index Scan on events_1_position_idx"}, sorts: true, place: true,
			args: "'{1,2}'"},
	}
}

// Plans must not depend on statistics: they are the same over tables that are empty, large and never looked at, and large.
func TestCommitsWalkIndexes(t *testing.T) {
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
		h.walks(c.what, writePlans())
		h.walks(c.what, upkeepPlans())
	}
}
