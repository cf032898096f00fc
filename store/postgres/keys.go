package postgres

import (
	"hash/fnv"
	"slices"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// This file is how what has no row yet is held: by advisory locks of the server, which end with the transaction.
//
// The server has room for some thousand locks, of all clients together, so entities of which a commit may hold many share some hundred keys: that
// two of them have the same one costs waiting, nothing else. All commits take them in the same order.

// How many keys there are for entities of a kind, and for what else is held.
const (
	fewKeys     = 1 << 12
	lockKeys    = 1 << 11
	messageKeys = 1 << 7 // only for those without a row
	keyKeys     = 1 << 9
)

// lockKey is the key of what is held of a sort and has a name.
func (s *Store) lockKey(sort, name string) int64 {
	among := uint64(fewKeys)
	switch sort {
	case events.KindLock.String():
		among = lockKeys
	case events.KindMessage.String():
		among = messageKeys
	case "key":
		among = keyKeys
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(s.prefix + "\x00" + sort))
	base := h.Sum64() &^ (fewKeys - 1)
	h.Reset()
	_, _ = h.Write([]byte(name))
	sum := h.Sum64()
	return int64(base | (sum^sum>>32)%among)
}

func (s *Store) entityKey(e events.Entity) int64 {
	if e.Kind.Named() {
		return s.lockKey(e.Kind.String(), e.Name)
	}
	return s.lockKey(e.Kind.String(), string(e.ID[:]))
}

func (s *Store) nameKey(k store.Key) int64 { return s.lockKey("key", k.Topic+"\x00"+k.Name) }

// gate is the advisory locks that a commit takes: whether it has each of them alone.
type gate map[int64]bool

func (g gate) add(key int64, alone bool) { g[key] = g[key] || alone }

// take has a pipeline wait for them, in their order.
func (g gate) take(p *pipeline) {
	if len(g) == 0 {
		return
	}
	keys := make([]int64, 0, len(g))
	for key := range g {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	alone := make([]bool, len(keys))
	for i, key := range keys {
		alone[i] = g[key]
	}
	p.exec(gateQuery, keys, alone)
}

const (
	gateQuery = "SELECT CASE WHEN u.alone THEN pg_advisory_xact_lock(u.key)::text ELSE pg_advisory_xact_lock_shared(u.key)::text END" +
		" FROM unnest($1::bigint[], $2::boolean[]) AS u (key, alone)"
	tryQuery = "SELECT u.lock, pg_try_advisory_xact_lock(u.key) FROM unnest($1::text[], $2::bigint[]) AS u (lock, key)"
	// Messages that are named and have no row: nobody else may make one meanwhile. Their keys come behind the rows of those that have one.
	rowlessQuery = "SELECT pg_advisory_xact_lock(k.key)::text FROM (SELECT DISTINCT u.key FROM unnest($1::uuid[], $2::bigint[]) AS u (id, key)" +
		" WHERE NOT EXISTS (SELECT 1 FROM @messages m WHERE m.id = u.id) ORDER BY u.key OFFSET 0) k"
)
