package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// This file says how transactions begin, and what connections of the pool begin with where they are this process's alone.

const (
	beginWrite = "BEGIN ISOLATION LEVEL READ COMMITTED"
	// beginLook has every query see what was committed when it began, not when the first of them did.
	beginLook = "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY"
)

// pins is the second statement of every transaction: plans must not depend on statistics, and nobody waits for ever. They end with the
// transaction, so that connections may be shared (PgBouncer in transaction mode).
const (
	pins   = "SELECT " + pinned + ", " + durable
	pinned = `set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true),
 set_config('enable_bitmapscan', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
 set_config('enable_sort', 'off', true), set_config('jit', 'off', true), set_config('lock_timeout', $1, true),
 set_config('statement_timeout', $2, true), set_config('idle_in_transaction_session_timeout', $3, true),
 set_config('max_parallel_workers_per_gather', '0', true), ` + wholeTimeout + `$4, true) END`
	// A commit waits for the disk also where the database's own setting would have it wait for nothing: when one backend crashes, the server forgets
	// what had not come there, without having been started anew. That setting may change at any time.
	durable = "CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'local', true) END"
)

// wholeTimeout bounds a transaction as a whole where the server can (Postgres 17), so that whoever was stopped while it sent a batch holds
// what it has for no longer: no other setting bounds that.
const wholeTimeout = "CASE WHEN current_setting('server_version_num')::integer >= 170000 THEN set_config('transaction_timeout', "

func (s *Store) pinArgs() []any {
	ms := func(d time.Duration) string { return fmt.Sprint(max(d.Milliseconds(), 1)) }
	return []any{ms(s.options.LockTimeout), ms(s.options.WriteTimeout), ms(s.options.IdleTimeout), ms(3 * s.options.WriteTimeout)}
}

// A connection that nobody else is given has its pins for good, and is sent the rest of them with a transaction that may write. Where a pooler has come
// between, the session is one of many, and is left as it is.
var (
	sessionPins = "SELECT " + strings.ReplaceAll(pinned, ", true)", ", false)") + " WHERE pg_backend_pid() = $5::bigint"
	writePins   = "SELECT " + durable
)

// ownKey marks a connection that has its pins.
const ownKey = "foundling pins"

func isOwn(conn *pgx.Conn) bool { return conn.PgConn().CustomData()[ownKey] != nil }

// begin adds the statement that begins a transaction, and the pins.
func (p *pipeline) begin(text string) {
	p.exec(text)
	p.writes, p.pins = text == beginWrite, p.batch.Len()
	p.exec(pins, p.store.pinArgs()...)
}

// unpin takes away what a connection has for good.
func (p *pipeline) unpin(conn *pgx.Conn) {
	switch {
	case p.pins == 0 || !isOwn(conn):
	case p.writes:
		p.batch.QueuedQueries[p.pins] = &pgx.QueuedQuery{SQL: writePins}
	default:
		p.batch.QueuedQueries = slices.Delete(p.batch.QueuedQueries, p.pins, p.pins+1)
	}
}

// errPoolerCame is why a connection is not used: what stood behind the same address when the store was opened was the server itself.
var errPoolerCame = errors.New("a pooler has come between this process and the server")

// own makes connections of the pool this process's own where nothing stands between it and the server: they keep their pins, and their statements have
// names, by which the server knows them and their plans. Behind a pooler each transaction may be on another connection.
func (s *Store) own(ctx context.Context, conn *pgx.Conn) error {
	if conn.Config().DefaultQueryExecMode != pgx.QueryExecModeCacheStatement { // it was begun as one of a pooler's
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.options.WriteTimeout)
	defer cancel()
	args := append([]any{pgx.QueryExecModeExec}, s.pinArgs()...) // it is sent once: nothing is to be remembered of it
	done, err := conn.Exec(ctx, sessionPins, append(args, int64(conn.PgConn().PID()))...)
	if err != nil {
		return err
	}
	if done.RowsAffected() == 0 {
		s.pooler.found(true)
		return lostError{errPoolerCame}
	}
	conn.PgConn().CustomData()[ownKey] = true
	return nil
}
