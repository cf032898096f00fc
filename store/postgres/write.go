package postgres

import (
	"bytes"
	"slices"
	"strings"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/shorthand"
	"github.com/foundling-go/foundling/store"
)

// This file writes what a transaction has changed beside messages.

const (
	updateTopics = "WITH moved AS (UPDATE @topics t SET version = u.version, state = u.state, running = t.running + u.delta, fields = u.fields" +
		" FROM unnest($1::text[], $2::integer[], $3::smallint[], $4::integer[], $5::bytea[], $6::integer[])" +
		" AS u (name, version, state, delta, fields, seen) WHERE t.name = u.name AND t.version = u.seen RETURNING 1)" +
		" SELECT @must(count(*), $7) FROM moved"
	insertTopics = "INSERT INTO @topics (name, version, state, running, fields) SELECT u.name, u.version, u.state, u.delta, u.fields" +
		" FROM unnest($1::text[], $2::integer[], $3::smallint[], $4::integer[], $5::bytea[]) AS u (name, version, state, delta, fields)"
	countTopics = "WITH moved AS (UPDATE @topics t SET running = t.running + u.delta FROM unnest($1::text[], $2::integer[]) AS u (name, delta)" +
		" WHERE t.name = u.name RETURNING 1) SELECT @must(count(*), $3) FROM moved"

	replaceKeys = "INSERT INTO @keys (topic, name, message, open, until) SELECT * FROM unnest($1::text[], $2::text[], $3::uuid[], $4::boolean[]," +
		" $5::bigint[]) ON CONFLICT (topic, name) DO UPDATE SET message = excluded.message, open = excluded.open, until = excluded.until"
	deleteKeys = "DELETE FROM @keys k USING unnest($1::text[], $2::text[]) AS u (topic, name) WHERE k.topic = u.topic AND k.name = u.name"

	insertPermits = "INSERT INTO @permits (lock, token, worker, message, acquired_at, expires_at)" +
		" SELECT * FROM unnest($1::text[], $2::bigint[], $3::uuid[], $4::uuid[], $5::bigint[], $6::bigint[])"
	deletePermits = "WITH gone AS (DELETE FROM @permits p USING unnest($1::text[], $2::bigint[]) AS u (lock, token)" +
		" WHERE p.lock = u.lock AND p.token = u.token RETURNING 1) SELECT @must(count(*), $3) FROM gone"

	insertPayloads = "INSERT INTO @payloads (place, salt, bytes) SELECT " + placedAt + ", u.salt, u.bytes" +
		" FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bytea[]) AS u (place, ordinal, salt, bytes)"
	insertResults = "INSERT INTO @results (position, salt, bytes) SELECT " + firstHere + " + u.ordinal, u.salt, u.bytes" +
		" FROM unnest($1::bigint[], $2::bytea[], $3::bytea[]) AS u (ordinal, salt, bytes)"
	writeSnapshots = "INSERT INTO @snapshots (stream, position) SELECT u.stream, " + firstHere + " + u.ordinal" +
		" FROM unnest($1::bytea[], $2::bigint[]) AS u (stream, ordinal) ON CONFLICT (stream) DO UPDATE SET position = excluded.position"
	payloadsQuery = "SELECT m.id, p.salt, p.bytes FROM @messages m JOIN @payloads p ON p.place = m.place WHERE m.id = ANY($1::uuid[])"

	insertDecision = "INSERT INTO @decisions (number, at, events, checksum, commits) SELECT (SELECT currval('@blocks')), $1::bigint, $2::integer, $3::integer, $4::bytea"
	insertIDs      = "INSERT INTO @used_ids (id, number, ordinal) SELECT u.id, (SELECT currval('@blocks')), u.ordinal" +
		" FROM unnest($1::uuid[], $2::smallint[]) AS u (id, ordinal)"
	insertEvents = "INSERT INTO @events (position, version, type, schema, from_state, to_state, checksum, stream, body)" +
		" SELECT " + firstHere + " + u.i - 1, nullif(u.version, 0), u.type, u.schema, u.from_state, u.to_state, u.checksum, u.stream, u.body" +
		" FROM unnest($1::integer[], $2::smallint[], $3::smallint[], $4::smallint[], $5::smallint[], $6::integer[], $7::bytea[], $8::bytea[])" +
		" WITH ORDINALITY AS u (version, type, schema, from_state, to_state, checksum, stream, body, i)"
)

// mostBytes is the most bytes of payloads that one statement takes.
const mostBytes = 64 << 20

// writeTopics writes the rows of topics, in the order of their names, and moves counts.
func (a *attempt) writeTopics(p *pipeline) {
	var inserts, updates rowColumns
	counts := map[string]int{}
	for topic, delta := range a.deltas {
		counts[topic] = delta
	}
	for _, c := range a.sortedDirty(events.KindTopic) {
		switch {
		case c.kept && c.stored:
			updates.add(c, c.delta)
		case c.kept:
			inserts.add(c, c.row.Running)
		case c.stored:
			a.writeGone(p, c)
		}
	}
	for name := range a.pages.rowed {
		if c := a.cells[events.TopicEntity(name)]; c.delta != 0 && !c.dirty {
			counts[name] += c.delta
		}
	}
	updates.exec(p, updateTopics, true)
	names := sortedNames(counts)
	names = slices.DeleteFunc(names, func(name string) bool { return counts[name] == 0 && a.pages.rowed[name] })
	if len(names) > 0 {
		deltas := make([]int32, len(names))
		for i, name := range names {
			deltas[i] = int32(counts[name])
		}
		p.exec(countTopics, names, deltas, len(names))
	}
	inserts.exec(p, insertTopics, false)
}

// rowColumns is the columns of topics.
type rowColumns struct {
	names    []string
	versions []int32
	states   []int16
	deltas   []int32
	fields   [][]byte
	seen     []int32
}

func (r *rowColumns) add(c *cell, delta int) {
	row := &c.row
	r.names, r.versions, r.states = append(r.names, row.Entity.Name), append(r.versions, int32(row.Version)), append(r.states, int16(row.State))
	r.deltas, r.fields, r.seen = append(r.deltas, int32(delta)), append(r.fields, blob(row.Fields)), append(r.seen, int32(c.from))
}

func (r *rowColumns) exec(p *pipeline, text string, guards guarding) {
	if len(r.names) == 0 {
		return
	}
	args := []any{r.names, r.versions, r.states, r.deltas, r.fields}
	if guards {
		args = append(args, r.seen, len(r.names))
	}
	p.exec(text, args...)
}

// guarding says that a statement checks the versions of the rows that it changes.
type guarding bool

// sortedDirty is the changed entities of a kind, in their order.
func (a *attempt) sortedDirty(kind events.Kind) []*cell {
	var list []*cell
	for _, c := range a.dirty {
		if c.entity.Kind == kind {
			list = append(list, c)
		}
	}
	byID(list)
	return list
}

// writeOthers writes the rows of what is held by an advisory key alone. There are few of them.
func (a *attempt) writeOthers(p *pipeline) {
	for _, kind := range []events.Kind{events.KindWorker, events.KindLock, events.KindLeader, events.KindClock} {
		var ups []*cell
		for _, c := range a.sortedDirty(kind) {
			if c.kept {
				ups = append(ups, c)
			} else if c.stored {
				a.writeGone(p, c)
			}
		}
		writeRows(p, tables[kind], ups)
	}
}

// writeGone takes away the row of something that is no message.
func (a *attempt) writeGone(p *pipeline, c *cell) {
	t := tables[c.entity.Kind]
	text := "WITH gone AS (DELETE FROM @" + t.name + " WHERE " + t.key + " = $1 AND version = $2 RETURNING 1) SELECT @must(count(*), 1) FROM gone"
	if c.entity.Kind.Named() {
		p.exec(text, c.entity.Name, c.from)
	} else {
		p.exec(text, c.entity.ID, c.from)
	}
}

// writeRows makes or replaces rows of a table that has only the columns that all have. A row is replaced only where it is the one that was seen.
func writeRows(p *pipeline, t *table, list []*cell) {
	if len(list) == 0 {
		return
	}
	var names []string
	var ids []events.ID
	versions, states, fields, seen := make([]int32, len(list)), make([]int16, len(list)), make([][]byte, len(list)), make([]int32, len(list))
	for i, c := range list {
		names, ids = append(names, c.entity.Name), append(ids, c.entity.ID)
		versions[i], states[i], fields[i] = int32(c.row.Version), int16(c.row.State), blob(c.row.Fields)
		if c.stored {
			seen[i] = int32(c.from)
		}
	}
	typ, keys := "uuid[]", any(ids)
	if list[0].entity.Kind.Named() {
		typ, keys = "text[]", names
	}
	p.exec("WITH u AS (SELECT * FROM unnest($1::"+typ+", $2::integer[], $3::smallint[], $4::bytea[], $5::integer[]) AS u (key, version, state, fields, seen)),"+
		" kept AS (INSERT INTO @"+t.name+" AS t ("+t.key+", version, state, fields) SELECT key, version, state, fields FROM u"+
		" ON CONFLICT ("+t.key+") DO UPDATE SET version = excluded.version, state = excluded.state, fields = excluded.fields"+
		" WHERE t.version = (SELECT u.seen FROM u WHERE u.key = t."+t.key+") RETURNING 1) SELECT @must(count(*), $6) FROM kept",
		keys, versions, states, fields, seen, len(list))
}

func (a *attempt) writeKeys(p *pipeline) {
	slices.SortFunc(a.dirtyKeys, func(a, b *keyCell) int {
		if c := strings.Compare(a.Key.Topic, b.Key.Topic); c != 0 {
			return c
		}
		return strings.Compare(a.Key.Name, b.Key.Name)
	})
	var topics, names, goneTopics, goneNames []string
	var messages []events.ID
	var open []bool
	var until []*int64
	for _, k := range a.dirtyKeys {
		if k.Row == (store.KeyRow{}) {
			goneTopics, goneNames = append(goneTopics, k.Key.Topic), append(goneNames, k.Key.Name)
			continue
		}
		topics, names = append(topics, k.Key.Topic), append(names, k.Key.Name)
		messages, open, until = append(messages, k.Row.Message), append(open, k.Row.Open), append(until, instant(k.Row.UntilAt))
	}
	if len(topics) > 0 {
		p.exec(replaceKeys, topics, names, messages, open, until)
	}
	if len(goneTopics) > 0 {
		p.exec(deleteKeys, goneTopics, goneNames)
	}
}

func (a *attempt) writePermits(p *pipeline) {
	var locks, goneLocks []string
	var tokens, goneTokens, acquired []int64
	var workers []events.ID
	var messages []*events.ID
	var expires []*int64
	for _, c := range a.dirtyPermits {
		switch {
		case c.out && !c.stored:
			locks, tokens, workers = append(locks, c.Lock), append(tokens, int64(c.Token)), append(workers, c.Worker)
			acquired, expires = append(acquired, c.AcquiredAt.UnixMicro()), append(expires, instant(c.ExpiresAt))
			var message *events.ID
			if c.Message != (events.ID{}) {
				message = &c.Message
			}
			messages = append(messages, message)
		case !c.out && c.stored:
			goneLocks, goneTokens = append(goneLocks, c.Lock), append(goneTokens, int64(c.Token))
		}
	}
	if len(locks) > 0 {
		p.exec(insertPermits, locks, tokens, workers, messages, acquired, expires)
	}
	if len(goneLocks) > 0 {
		p.exec(deletePermits, goneLocks, goneTokens, len(goneLocks))
	}
}

// writePlaced writes what stands at positions, events aside.
func (a *attempt) writePlaced(p *pipeline) {
	a.newMessages(p)
	for list := a.payloads; len(list) > 0; {
		n, size := 0, 0
		for n < len(list) && (n == 0 || size < mostBytes) {
			size += len(list[n].row.Payload.Bytes)
			n++
		}
		places, ordinals := placesOf(list[:n])
		salts, contents := make([][]byte, n), make([][]byte, n)
		for i, c := range list[:n] {
			salts[i], contents[i] = c.row.Payload.Salt[:], blob(c.row.Payload.Bytes)
		}
		p.exec(insertPayloads, places, ordinals, salts, contents)
		list = list[n:]
	}
	if len(a.results) > 0 {
		n := len(a.results)
		ordinals, salts, contents := make([]int64, n), make([][]byte, n), make([][]byte, n)
		for i, r := range a.results {
			ordinals[i], salts[i], contents[i] = int64(r.ordinal), r.Salt[:], blob(r.Bytes)
		}
		p.exec(insertResults, ordinals, salts, contents)
	}
	a.writeSnapshots(p)
}

// writeSnapshots notes which events say all of an entity's state: of each entity the newest.
func (a *attempt) writeSnapshots(p *pipeline) {
	newest := map[events.Entity]int{}
	for _, s := range a.snapshots {
		newest[s.entity] = s.ordinal
	}
	var streams [][]byte
	ordinal := map[string]int{}
	for entity, at := range newest {
		b := stream(entity)
		streams = append(streams, b)
		ordinal[string(b)] = at
	}
	if len(streams) == 0 {
		return
	}
	slices.SortFunc(streams, bytes.Compare)
	ordinals := make([]int64, len(streams))
	for i, b := range streams {
		ordinals[i] = int64(ordinal[string(b)])
	}
	p.exec(writeSnapshots, streams, ordinals)
}

// fillRows reads the payloads of receipts' rows.
func (a *attempt) fillRows(p *pipeline) {
	if len(a.fills) == 0 {
		return
	}
	ids := make([]events.ID, len(a.fills))
	for i, f := range a.fills {
		ids[i] = f.cell.entity.ID
	}
	r := newRecord("id, salt, bytes")
	p.query(r, func() error {
		id, payload := events.ID(r.array(0)), r.payload(1)
		for _, f := range a.fills {
			if f.cell.entity.ID == id && r.err == nil { // else as where it is claimed
				f.row.Payload = &store.Payload{Salt: payload.Salt, Bytes: bytes.Clone(payload.Bytes)}
			}
		}
		return nil
	}, payloadsQuery, ids)
}

// writeLog appends the events, behind what their commits share.
func (a *attempt) writeLog(p *pipeline) {
	n := a.events
	versions, types, schemas := make([]int32, 0, n), make([]int16, 0, n), make([]int16, 0, n)
	froms, tos, sums := make([]int16, 0, n), make([]int16, 0, n), make([]int32, 0, n)
	streams, bodies := make([][]byte, 0, n), make([][]byte, 0, n)
	ids := make(map[store.CommitID]bool, len(a.log))
	ordinal := make(map[store.CommitID]int16, len(a.log))
	for i, r := range a.log {
		ids[r.Commit.ID], ordinal[r.Commit.ID] = true, int16(i)
		for j := range r.Stored {
			e := &r.Stored[j]
			versions, types, schemas = append(versions, int32(e.Version)), append(types, int16(e.Type)), append(schemas, int16(e.Schema))
			froms, tos, sums = append(froms, int16(e.From)), append(tos, int16(e.To)), append(sums, int32(e.Checksum))
			streams, bodies = append(streams, stream(e.Entity)), append(bodies, shorthand.Append(nil, e.Body))
		}
	}
	packed := pack(a.log)
	at := a.log[len(a.log)-1].Commit.At
	p.exec(insertDecision, at.UnixMicro(), n, int32(packedSum(at, n, packed)), packed)
	sorted := sortedIDs(ids)
	ordinals := make([]int16, len(sorted))
	for i, id := range sorted {
		ordinals[i] = ordinal[id]
	}
	p.exec(insertIDs, sorted, ordinals)
	p.exec(insertEvents, versions, types, schemas, froms, tos, sums, streams, bodies)
}
