package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/store"
	"github.com/jackc/pgx/v5"
)

// EnqueueTx enqueues messages in a transaction of the caller's own, of the database that the client's store is in: they are there once it commits, and
// never if it does not. It gives their ids, in the order of the drafts, of which there are [foundling.MaxDrafts] at most. It takes one round trip on the
// transaction's connection, and no lock but those of its own rows, for however long the transaction stays open.
//
// The messages are staged in the transaction, and move into the log after its commit: within some milliseconds to a second while any worker of the store
// runs, and otherwise when somebody waits for one or acts on it. Until then Client.Get shows them as Staged. A delay counts from the call. A key that is taken shows
// when the message moves: it ends as discarded, and so does one whose id the caller gave where that is as old as what retention has let go of. An id that
// is known already stays with the message that has it, which tells of the other as refused.
//
// It refuses bad drafts before it sends anything, as Client.EnqueueMany does. Where the server refuses it, the transaction has failed, as after any
// statement of the caller's own; what becomes of it is the caller's business. The transaction's role needs no more than INSERT on the table "staged".
func EnqueueTx(ctx context.Context, c *foundling.Client, tx pgx.Tx, drafts ...foundling.Draft) ([]foundling.ID, error) {
	if tx == nil {
		return nil, errNoTx
	}
	mode := pgx.QueryExecModeExec // no statement gets a name, whatever the caller's own do
	if conn := tx.Conn(); conn != nil && conn.Config().DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol {
		mode = pgx.QueryExecModeSimpleProtocol
	}
	return enqueueIn(ctx, c, drafts, func(ctx context.Context, text string, args []any) error {
		_, err := tx.Exec(ctx, text, append([]any{mode}, args...)...)
		return err
	})
}

// EnqueueSQLTx is EnqueueTx for a transaction of database/sql. The driver may be any that takes $1 for a placeholder.
func EnqueueSQLTx(ctx context.Context, c *foundling.Client, tx *sql.Tx, drafts ...foundling.Draft) ([]foundling.ID, error) {
	if tx == nil {
		return nil, errNoTx
	}
	return enqueueIn(ctx, c, drafts, func(ctx context.Context, text string, args []any) error {
		_, err := tx.ExecContext(ctx, text, args...)
		return err
	})
}

var errNoTx = fmt.Errorf("postgres: enqueue: there is no transaction, it is nil: %w", foundling.ErrInvalid)

// inTx runs a statement in somebody's transaction.
type inTx func(ctx context.Context, text string, args []any) error

// stagesIn is a store that transactions can stage messages for.
type stagesIn interface {
	stageIn(ctx context.Context, run inTx, list []store.Staged) error
}

func enqueueIn(ctx context.Context, c *foundling.Client, drafts []foundling.Draft, run inTx) ([]foundling.ID, error) {
	if c == nil {
		return nil, fmt.Errorf("postgres: enqueue: there is no client, it is nil: %w", foundling.ErrInvalid)
	}
	ids, err := c.Stage(ctx, drafts, func(ctx context.Context, s store.Store, list []store.Staged) error {
		to, ok := store.As[stagesIn](s)
		if !ok {
			return fmt.Errorf("the client's store is none on Postgres, which a transaction could reach: %w", foundling.ErrInvalid)
		}
		return to.stageIn(ctx, run, list)
	})
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	return ids, nil
}

// desk is where messages are staged. It has no connection: what it has to say it says in transactions of others.
type desk struct {
	schema string
	prefix string
	clock  func() time.Time // nil is the server's
	quiet  bool

	mu   sync.Mutex
	told time.Time // when it notified last
}

// tellEvery is how often a process has a notification sent at most. All commits of a database that notify take turns.
const tellEvery = time.Second

func newDesk(o Options) *desk {
	return &desk{schema: o.Schema, prefix: pgx.Identifier{o.Schema}.Sanitize() + ".", clock: o.Clock, quiet: o.NoNotify}
}

// channel is that of the notifications. Who may only insert knows no more of the store than its schema.
func (d *desk) channel() string { return "foundling_staged_" + d.schema }

// stageIn implements stagesIn.
func (s *Store) stageIn(ctx context.Context, run inTx, list []store.Staged) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	return s.desk.stage(ctx, run, list)
}

// stage stages messages in a transaction: in one statement, unless their payloads are too many bytes for one.
func (d *desk) stage(ctx context.Context, run inTx, list []store.Staged) error {
	for len(list) > 0 {
		n, size := 0, 0
		for n < len(list) && (n == 0 || size < mostBytes) {
			size += len(list[n].Payload.Bytes)
			n++
		}
		tells := n == len(list) && d.tells()
		text, args := d.statement(list[:n], tells)
		if err := run(ctx, text, args); err != nil {
			return d.classed(err)
		}
		list = list[n:]
	}
	return nil
}

// tells reports whether it is time to notify again. Where the transaction comes to nothing nobody is notified, and what others stage meanwhile is
// found by looking.
func (d *desk) tells() notifying {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.quiet || time.Since(d.told) < tellEvery {
		return false
	}
	d.told = time.Now()
	return true
}

// notifying says that a statement notifies besides.
type notifying bool

// statement is one INSERT, with placeholders that any driver knows. What a statement of WITH does is done whether or not it is read.
func (d *desk) statement(list []store.Staged, tells notifying) (string, []any) {
	var text strings.Builder
	at := nowColumn
	if d.clock != nil {
		at = strconv.FormatInt(d.clock().UnixMicro(), 10)
	}
	if tells {
		text.WriteString("WITH kept AS (")
	}
	text.WriteString("INSERT INTO " + d.prefix + "staged (at, id, checksum, topic, draft, salt, bytes) VALUES ")
	args := make([]any, 0, 6*len(list))
	for i := range list {
		m := &list[i]
		if i > 0 {
			text.WriteString(", ")
		}
		n := len(args)
		fmt.Fprintf(&text, "(%s, $%d::uuid, $%d::integer, $%d::text, $%d::bytea, $%d::bytea, $%d::bytea)", at, n+1, n+2, n+3, n+4, n+5, n+6)
		args = append(args, m.Message.String(), int64(int32(stagedSum(m))), m.Topic, m.Draft, m.Payload.Salt[:], blob(m.Payload.Bytes))
	}
	if tells {
		text.WriteString(") SELECT pg_notify('" + d.channel() + "', '')")
	}
	return text.String(), args
}

// codeFailedTx is in_failed_sql_transaction.
const codeFailedTx = "25P02"

// classed says what an error of a caller's transaction means. Its driver may be any.
func (d *desk) classed(err error) error {
	var coded interface{ SQLState() string }
	state := ""
	if errors.As(err, &coded) {
		state = coded.SQLState()
	}
	table := d.prefix + "staged"
	switch {
	case state == codeFailedTx:
		return fmt.Errorf("the transaction has failed before, so that it can only be rolled back: %w", err)
	case state == codeReadOnly:
		return fmt.Errorf("the transaction, or the server, takes no writes: %w", err)
	case state == codeNoTable || state == codeNoSchema:
		return fmt.Errorf("%w: the transaction's database has no table %s: the store is another's, or was not migrated; foundling migrate does so: %w",
			store.ErrForeign, table, err)
	case state == codeDenied:
		return fmt.Errorf("the transaction's role may not insert into %s; GRANT USAGE ON SCHEMA %s and GRANT INSERT ON %s let it: %w",
			table, strings.TrimSuffix(d.prefix, "."), table, err)
	case errors.Is(err, pgx.ErrTxClosed) || errors.Is(err, sql.ErrTxDone):
		return fmt.Errorf("the transaction has ended already: %w", err)
	}
	return fmt.Errorf("stage in the transaction: %w", err)
}
