package sqlite

import (
	"context"
	"strings"

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
		"claims": claimsQuery, "due": dueQuery, "head": headQuery, "commit": commitQuery, "commits": commitsQuery, "events": eventsQuery,
		"stream": streamQuery, "prune": pruneQuery,
		"ids": selectIDs.text(8), "keys": selectKeys.text(8), "payloads": selectPayloads.text(8), "histories": selectHistories.text(8),
		"free keys": deleteKeys.text(8),
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
