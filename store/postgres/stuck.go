package postgres

import (
	"context"
	"log/slog"
	"time"
)

// This file names who keeps readers from going on: somebody who wrote to the table of events, or locked it, and has not ended. What a store does there
// is bounded; a session that somebody has left open, or a transaction that was prepared and forgotten, is not.

// stuckAgain is about how often it is said of the same log.
const stuckAgain = time.Minute

// stuck is the writers that have been there for long.
type stuck struct {
	since map[string]time.Time // by virtual transaction: when a look first saw it
	told  time.Time
}

// see takes in who writes, and gives those that have been seen for longer than after, unless that was told a short time ago.
func (w *stuck) see(writers map[string]struct{}, after time.Duration, now time.Time) (long []string) {
	since := make(map[string]time.Time, len(writers))
	for name := range writers {
		at, ok := w.since[name]
		if !ok {
			at = now
		}
		if since[name] = at; now.Sub(at) > after {
			long = append(long, name)
		}
	}
	w.since = since
	if len(long) == 0 || !w.told.IsZero() && now.Sub(w.told) < stuckAgain {
		return nil
	}
	w.told = now
	return long
}

const stuckQuery = "SELECT DISTINCT coalesce(a.pid, 0), coalesce(a.usename::text, ''), coalesce(a.application_name, '')," +
	" coalesce(a.state, 'prepared, or not to be seen by this role'), coalesce(a.xact_start::text, '')" +
	" FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid" +
	" WHERE l.locktype = 'relation' AND l.relation = '@events'::regclass AND l.virtualtransaction = ANY($1::text[])" +
	" AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) ORDER BY 1 LIMIT 10"

// tellStuck says whom a look's readers wait for, where none of a store's own transactions takes as long.
func (s *Store) tellStuck(ctx context.Context, l *look) {
	h := &s.powers.horizon
	h.mu.Lock()
	long := h.stuck.see(l.writers, 3*s.options.WriteTimeout, time.Now())
	h.mu.Unlock()
	if len(long) == 0 {
		return
	}
	var list [][]any
	err := s.ask(ctx, func(p *pipeline) {
		list = nil
		r := newRecord("pid, user, application, state, begun")
		p.query(r, func() error {
			list = append(list, []any{
				slog.Int64("pid", r.whole(0, 0, 1<<31-1)), slog.String("user", r.text(1)), slog.String("application", r.text(2)),
				slog.String("state", r.text(3)), slog.String("begun", r.text(4)),
			})
			return r.err
		}, stuckQuery, long)
	})
	if err != nil {
		return // the reader has the same trouble, and says so
	}
	for _, attrs := range list {
		s.options.Logger.WarnContext(ctx, "readers of the log wait for a transaction that has its table of events: until it ends, nothing that came after it is read",
			attrs...)
	}
}
