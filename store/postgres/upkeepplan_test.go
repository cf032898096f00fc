package postgres

import (
	"os"
	"testing"

	"github.com/foundling-go/foundling/internal/pgtest"
)

// upkeepPlans is what sweeps, prunes, and erasures ask and write besides.
func upkeepPlans() map[string]planned {
	stretch := "Bitmap Index Scan on events_1_position_idx"
	plans := map[string]planned{
		"all heartbeats":               {text: beatsQuery, must: []string{"Index Scan using beats_pkey"}},
		"a heartbeat that ends":        {text: beatStill, must: []string{"using beats_pkey"}},
		"a lease that is held on":      {text: leaseUpdate, must: []string{"using leases_pkey"}},
		"ages of transactions":         {text: agesQuery, must: []string{"Index Scan using decisions_1_number_idx"}, args: "1, 5, 100"},
		"keys that are over":           {text: overKeys, must: []string{"using keys_over", "using keys_pkey"}},
		"ids that are too old":         {text: dropQuery, must: []string{"using used_ids_pkey"}},
		"an id":                        {text: usedIDQuery, must: []string{"using used_ids_pkey"}},
		"an id that is settled":        {text: touchUsed, must: []string{"using used_ids_pkey"}},
		"messages that came back":      {text: cameQuery, must: []string{"using messages_pkey"}},
		"places":                       {text: placesQuery, must: []string{"using places_pkey"}},
		"claims that do not count":     {text: uncountedQuery, must: []string{"using messages_running"}, sorts: true},
		"a payload that is erased":     {text: erasePayload, must: []string{"using payloads_pkey", "using messages_pkey", "using events_1_stream_version_idx", "using places_pkey"}},
		"results that are erased":      {text: eraseResult, must: []string{"using results_pkey", "using events_1_stream_version_idx"}},
		"what else has events that go": {text: othersQuery, must: []string{stretch, "using snapshots_pkey"}, sorts: true, place: true, args: "1, 90000"},
		"messages nobody tells of":     {text: untoldQuery, must: []string{stretch, "using messages_pkey"}, sorts: true, place: true, args: "1, 90000, 100"},
		"payloads behind first events": {text: pruneStatements[1], must: []string{stretch, "using places_pkey", "using payloads_pkey"}},
		"results that go":              {text: pruneStatements[3], must: []string{"results_pkey"}},
		"snapshots that go":            {text: pruneStatements[4], must: []string{"using snapshots_p"}},
		"events that go":               {text: pruneStatements[5], must: []string{stretch}},
		"transactions that go":         {text: pruneStatements[6], must: []string{"decisions_1_number_idx"}},
	}
	for _, name := range []string{"payloads behind first events", "results that go", "snapshots that go", "events that go", "transactions that go"} {
		q := plans[name]
		q.sorts, q.place, q.args = true, true, "1, 90000"
		plans[name] = q
	}
	return plans
}

// The same as over some thousand rows. It takes minutes to make them.
func TestAMillionRowsAreWalkedByIndexes(t *testing.T) {
	if os.Getenv("FOUNDLING_LONG") == "" {
		t.Skip("a million rows are for the long tests")
	}
	h := newHand(t, openAt(t, pgtest.Database(t), Options{}))
	for _, c := range []struct {
		what string
		make func()
	}{
		{"a million, never analysed", func() { h.fill(1_000_000) }},
		{"a million, analysed", func() { h.do("ANALYZE") }},
	} {
		c.make()
		h.walks(c.what, readPlans())
		h.walks(c.what, writePlans())
		h.walks(c.what, upkeepPlans())
	}
}
