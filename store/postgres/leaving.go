package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
)

// This file takes away the tables of ranges of which a prune has left nothing. What a prune lets go of in between, it deletes row by row.
//
// A range leaves the log while others read and write it: it is detached concurrently, which stops nobody and waits for whoever had begun to use
// the log before, such as a dump of the database. Nobody is waited for longer than for a lock; what was left half done, then or by a process that
// ended, is seen in the catalog and finished by whoever prunes next.

// leaving is what a process does about it. It belongs to what ranges.mu guards.
type leaving struct {
	busy  bool
	again time.Time // not before, since somebody was in the way
}

// leaveAgain is how long after somebody was in the way it is tried again at the earliest.
const leaveAgain = time.Minute

// gone reports whether nothing of a range is left in a log that was pruned through a position.
func (s span) gone(through int64) bool { return firstOf(s.upper) <= through }

// leave takes away, beside the caller, what a prune through a position has left of ranges. That prune must be committed. Behind a pooler, of which
// nothing may be asked that is called off, it is left to whoever has a way past it.
func (s *Store) leave(through int64) {
	if s.pooler.between.Load() && s.options.Direct == "" {
		return
	}
	r := &s.ranges
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []span
	for _, span := range r.list {
		if span.gone(through) {
			list = append(list, span)
		}
	}
	if len(list) == 0 || r.leaving.busy || time.Now().Before(r.leaving.again) {
		return
	}
	r.leaving.busy = true
	s.calls.Add(1) // the caller is one of those that Close waits for
	go func() {
		defer s.calls.Done()
		err := s.leaveAll(context.Background(), list)
		if err != nil && code(err) != codeLocked { // else somebody is in the way, as a dump is
			s.options.Logger.Warn("tables of a range of the log whose events are all pruned were not dropped: it is tried again", slog.Any("error", err))
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.leaving = (leaving{}); err != nil {
			r.leaving.again = time.Now().Add(leaveAgain)
		}
	}()
}

// leaveAll takes ranges away, the oldest first, up to the first where somebody is in the way.
func (s *Store) leaveAll(ctx context.Context, list []span) error {
	conn, err := s.connectCancelling(ctx)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	for _, span := range list {
		if s.isClosed() {
			return nil
		}
		if err := s.leaveOne(ctx, conn, span); err != nil {
			return fmt.Errorf("range of numbers from %d: %w", span.lower, s.classed(err))
		}
		s.ranges.forget(span)
	}
	return nil
}

// forget takes a range out of those that are known.
func (r *ranges) forget(gone span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = slices.DeleteFunc(slices.Clone(r.list), func(s span) bool { return s.lower == gone.lower })
}

// connectCancelling is a connection whose statements are called off when their context ends. Not every statement can be in a transaction, and outside of
// one a setting that bounds it would stay behind in a connection that a pooler shares.
func (s *Store) connectCancelling(ctx context.Context) (*pgx.Conn, error) {
	config := s.direct.Copy()
	config.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: s.options.WriteTimeout}
	}
	ctx, cancel := context.WithTimeout(ctx, s.options.WriteTimeout)
	defer cancel()
	return pgx.ConnectConfig(ctx, config)
}

const (
	attachedQuery = "SELECT inhdetachpending FROM pg_inherits WHERE inhrelid = to_regclass($1) AND inhparent = to_regclass($2)"
	// A server that took over may not have the prune, and still have what is to go.
	goneQuery = "SELECT @must(count(*), 1)::text FROM @pruned WHERE through >= $1"
)

func (s *Store) leaveOne(ctx context.Context, conn *pgx.Conn, r span) error {
	if _, err := conn.Exec(ctx, s.sql(goneQuery), firstOf(r.upper)); err != nil {
		return err
	}
	for _, parent := range []string{"@events", "@decisions"} {
		if err := s.detach(ctx, conn, s.sql(parent), fmt.Sprintf("%s_%d", s.sql(parent), r.lower)); err != nil {
			return err
		}
	}
	return s.write(ctx, func(p *pipeline) {
		p.exec(goneQuery, firstOf(r.upper))
		p.exec(fmt.Sprintf("DROP TABLE IF EXISTS @events_%d, @decisions_%[1]d", r.lower))
		p.exec("DELETE FROM @ranges WHERE lower = $1", r.lower)
	})
}

// detach makes a partition a table of its own, unless it is one or is no more.
func (s *Store) detach(ctx context.Context, conn *pgx.Conn, parent, partition string) error {
	ctx, cancel := context.WithTimeout(ctx, s.options.LockTimeout)
	defer cancel()
	attached, pending := false, false
	rows, err := conn.Query(ctx, attachedQuery, partition, parent)
	if err != nil {
		return err
	}
	if _, err := pgx.ForEachRow(rows, []any{&pending}, func() error { attached = true; return nil }); err != nil || !attached {
		return err
	}
	how := "CONCURRENTLY"
	if pending {
		how = "FINALIZE"
	}
	_, err = conn.Exec(ctx, strings.Join([]string{"ALTER TABLE", parent, "DETACH PARTITION", partition, how}, " "), pgx.QueryExecModeSimpleProtocol)
	return err
}
