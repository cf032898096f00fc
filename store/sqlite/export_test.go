package sqlite

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	driver "modernc.org/sqlite"
)

// OnWriter runs a statement on the connection that writes.
func (s *Store) OnWriter(statement string) error {
	if err := s.turn.take(context.Background()); err != nil {
		return err
	}
	defer s.turn.give()
	return s.writer.exec(statement)
}

// FailCommits makes SQLite refuse every COMMIT of the connection that writes, until it is called with nil.
func (s *Store) FailCommits(refuse func() int32) error {
	if err := s.writer.ready(); err != nil {
		return err
	}
	return s.writer.conn.Raw(func(conn any) error {
		conn.(driver.HookRegisterer).RegisterCommitHook(refuse)
		return nil
	})
}

// Plan is how SQLite goes about a query.
func (s *Store) Plan(query string) ([]string, error) {
	var steps []string
	r := newRecord("id, parent, notused, detail")
	rows, err := s.readers.Query("EXPLAIN QUERY PLAN "+query, make([]any, strings.Count(query, "?"))...)
	err = r.each(rows, err, func() error {
		steps = append(steps, r.text(3))
		return r.err
	})
	return steps, err
}

// HotQueries are the queries whose cost must not grow with what else is stored.
func HotQueries() map[string]string {
	queries := map[string]string{
		"claims": claimsQuery, "due": dueQuery, "ends": reachQuery, "beyond": beyondQuery, "commit": commitQuery, "commits": commitsQuery, "events": eventsQuery,
		"stream": streamQuery, "drop": dropQuery, "oldest": oldestQuery, "dropped": droppedQuery,
		"ids": selectIDs.text(8), "keys": selectKeys.text(8), "payloads": selectPayloads.text(8), "histories": selectHistories.text(8),
		"free keys": deleteKeys.text(8),
		"newest":    selectNewest.text(8), "waiters": selectWaiters.text(8), "waiters of a topic": waitersQuery, "blocked": blockedQuery,
		"permits": selectPermits.text(8), "permits back": deletePermits.text(8),
		"permits of a worker": workerPermitsQuery, "permits of a lock": lockPermitsQuery,
	}
	maps.Copy(queries, retentionQueries())
	for selection, w := range walks {
		queries[fmt.Sprintf("walk %d", selection)] = w.firsts
	}
	for name, f := range map[string]store.PermitFilter{
		"a lock": {Lock: "l"}, "a worker": {Worker: events.ID{1}}, "what expired": {ExpiredAt: time.Unix(1, 0)},
		"a lock and a worker": {Lock: "l", Worker: events.ID{1}, ExpiredAt: time.Unix(1, 0)},
	} {
		for when, after := range map[string][]any{"first": nil, "next": {"a", int64(1)}} {
			l := permitListing{filter: f, after: after}
			queries[when+" page of permits of "+name], _ = l.next()
		}
	}
	for p, query := range claimableQueries {
		queries["claimable "+p.String()] = query
	}
	for kind, t := range tables {
		queries["rows of "+kind.String()] = t.selects.text(8)
		queries["end of "+kind.String()] = t.deletes.text(8)
	}
	return queries
}

// retentionQueries are those of a prune, of contents, of checkpoints and of rows by what a filter names.
func retentionQueries() map[string]string {
	queries := map[string]string{
		"ages": agesQuery, "untold": untoldQuery, "others": othersQuery, "over keys": overKeys, "ends behind": endsBehindQuery, "beheaded": beheadedQuery, "topic": topicQuery,
		"snapshots": selectSnapshots.text(8), "places": selectPlaces.text(8),
		"payload": payloadQuery, "result": resultQuery, "erase payload": erasePayload, "erase result": eraseResult,
		"newest checkpoint": newestFirst, "view": viewQuery, "drop checkpoint": dropCheckpoint, "holder": holderQuery,
	}
	for i, statement := range pruneStatements {
		queries[fmt.Sprint("prune ", i+1)] = statement.text
	}
	for name, f := range map[string]store.CheckpointFilter{
		"a name": {Name: "n"}, "a version": {Name: "n", Version: 1}, "the newest": {Name: "n", Newest: true},
	} {
		queries["checkpoints of "+name], _ = shelfQuery(f)
	}
	for name, f := range map[string]store.RowFilter{
		"all": {}, "states": {States: []events.State{1, 2}}, "a lock": {Lock: "l"}, "falling": {Order: store.Falling, Topic: "t", Payloads: true},
	} {
		l := &listing{table: tables[events.KindMessage], filter: f, after: []byte{1}}
		p := l.page()
		p.upto = []byte{2}
		queries["page of "+name] = p.query()
		queries["bound of "+name], _ = p.bound()
	}
	return queries
}

// Statements are those that the connection that writes has run so far.
func (s *Store) Statements() []string { return slices.Collect(maps.Keys(s.writer.stmts)) }

// Snapshot runs body in a reader's transaction and gives it a query.
func (s *Store) Snapshot(ctx context.Context, body func(query func() error) error) error {
	return s.snapshot(ctx, func(from source) error {
		return body(func() error {
			_, err := reachOf(from)
			return err
		})
	})
}

// Reading is how many connections are reading.
func (s *Store) Reading() int { return s.readers.Stats().InUse }

// PageSizes is how many rows each page of messages has.
func (s *Store) PageSizes(ctx context.Context, f store.RowFilter) (sizes []int) {
	l := &listing{table: tables[events.KindMessage], filter: f}
	for _, entity := range slices.SortedFunc(slices.Values(f.Entities), events.Entity.Compare) {
		l.keys = append(l.keys, keyOf(entity))
	}
	for !l.done {
		list, err := s.rowPage(ctx, l)
		if err != nil {
			return nil
		}
		sizes = append(sizes, len(list))
	}
	return sizes
}

// Classed is an error as callers see it.
func Classed(err error) error { return classed(err) }

// Waits reports whether somebody has taken over a wait for the turn that another caller of this goroutine began.
func (s *Store) Waits() bool {
	p := s.turn.pending
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wanted
}
