package postgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/shorthand"
	"github.com/foundling-go/foundling/store"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Store is a store.Store in a schema of a Postgres database.
type Store struct {
	pool    *pgxpool.Pool // commits, reads; beats and leases have a connection of their own
	config  *pgx.ConnConfig
	direct  *pgx.ConnConfig // past a pooler, for what belongs to a session
	prefix  string          // the quoted schema with its point
	id      events.ID
	options Options

	texts    sync.Map // of statements, by what they are without the schema
	ranges   ranges
	epochs   epochs
	ticks    ticks
	counts   counting
	empties  empties
	ids      idUpkeep
	warnings warnings
	pooler   pooler
	powers   powers // what stands beside commits and reads: heartbeats, leases, hints
	desk     *desk  // where transactions of users' own stage messages

	mu      sync.Mutex
	closed  bool
	closing chan struct{}
	calls   sync.WaitGroup // of methods that are under way
}

var _ store.Store = (*Store)(nil)

// sql is the text of a statement, in which every @ stands for the schema: "SELECT … FROM @messages".
func (s *Store) sql(text string) string {
	if full, ok := s.texts.Load(text); ok {
		return full.(string)
	}
	full := strings.ReplaceAll(text, "@", s.prefix)
	s.texts.Store(text, full)
	return full
}

// enter begins a call that Close waits for. The caller ends it with s.calls.Done.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	s.calls.Add(1)
	return nil
}

// pipeline is statements that go to the server together, in one round trip. What is read from their answers is read in their order.
type pipeline struct {
	store *Store
	batch pgx.Batch

	pins   int  // the place of the pins in the batch; 0 where they are not in it
	writes bool // the transaction may
}

func (s *Store) pipeline() *pipeline { return &pipeline{store: s} }

// exec adds a statement whose rows nobody reads.
func (p *pipeline) exec(text string, args ...any) { p.batch.Queue(p.store.sql(text), arrays(args)...) }

// query adds a query. Its rows are read one by one into r, and found is called for each.
func (p *pipeline) query(r *record, found func() error, text string, args ...any) {
	p.batch.Queue(p.store.sql(text), arrays(args)...).Query(func(rows pgx.Rows) error { return r.each(rows, found) })
}

// run sends them and reads the answers, up to the first error.
func (p *pipeline) run(ctx context.Context, conn *pgx.Conn) error {
	p.unpin(conn)
	if p.batch.Len() == 0 {
		return nil
	}
	return conn.SendBatch(ctx, &p.batch).Close()
}

// release gives a connection back, with nothing left of its transaction. One that is in no state to be told so is closed by the pool.
func (s *Store) release(conn *pgxpool.Conn) {
	if c := conn.Conn(); !c.IsClosed() && c.PgConn().TxStatus() != 'I' {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_, _ = c.Exec(ctx, "ROLLBACK")
		cancel()
	}
	conn.Release()
}

// record reads rows of one query column by column, as the server sends them in binary. What is not what could have been written is noted, not
// guessed: somebody changed it.
type record struct {
	columns []string
	values  [][]byte // of the row that is read now; nil for NULL
	err     error    // the first wrong column of that row
}

// newRecord reads the columns of a list as it stands in the query.
func newRecord(columns string) *record { return &record{columns: strings.Split(columns, ", ")} }

func (r *record) each(rows pgx.Rows, found func() error) error {
	for rows.Next() {
		r.err = nil
		if r.values = rows.RawValues(); len(r.values) != len(r.columns) {
			return fmt.Errorf("%d columns came where %d were asked for", len(r.values), len(r.columns))
		}
		for i, d := range rows.FieldDescriptions() {
			if d.Format != pgx.BinaryFormatCode && d.DataTypeOID != pgtype.TextOID { // a text is the same either way
				return fmt.Errorf("column %s came as text", r.columns[i])
			}
		}
		if err := found(); err != nil {
			return err
		}
	}
	return rows.Err()
}

// wrong notes that a column is not what it should be.
func (r *record) wrong(i int, got any, want string) {
	if r.err == nil {
		r.err = fmt.Errorf("column %s: %v is stored, want %s", r.columns[i], got, want)
	}
}

func (r *record) null(i int) bool { return r.values[i] == nil }

// whole is a whole number between two bounds, from a column of any width.
func (r *record) whole(i int, low, high int64) int64 {
	var n int64
	switch b := r.values[i]; len(b) {
	case 2:
		n = int64(int16(binary.BigEndian.Uint16(b)))
	case 4:
		n = int64(int32(binary.BigEndian.Uint32(b)))
	case 8:
		n = int64(binary.BigEndian.Uint64(b))
	default:
		r.wrong(i, fmt.Sprintf("a value of %d bytes", len(b)), "a whole number")
		return 0
	}
	if n < low || n > high {
		r.wrong(i, n, fmt.Sprintf("%d to %d", low, high))
		return 0
	}
	return n
}

// bytes is the reader's own.
func (r *record) bytes(i int) []byte {
	if r.null(i) {
		r.wrong(i, "NULL", "bytes")
		return nil
	}
	return append(make([]byte, 0, len(r.values[i])), r.values[i]...)
}

// expanded reads a text that is kept in shorthand.
func (r *record) expanded(i int) []byte {
	text, err := shorthand.Text(r.values[i])
	if r.null(i) || err != nil {
		r.wrong(i, fmt.Sprintf("%.40q", r.values[i]), "a text in shorthand")
		return nil
	}
	return text
}

func (r *record) array(i int) (id [16]byte) {
	if b := r.values[i]; len(b) != len(id) {
		r.wrong(i, fmt.Sprintf("a value of %d bytes", len(b)), "16 bytes")
		return id
	}
	return [16]byte(r.values[i])
}

func (r *record) text(i int) string {
	if r.null(i) {
		r.wrong(i, "NULL", "text")
	}
	return string(r.values[i])
}

func (r *record) flag(i int) bool {
	if len(r.values[i]) != 1 {
		r.wrong(i, "NULL", "a boolean")
		return false
	}
	return r.values[i][0] != 0
}

// time is an instant, zero where the column is NULL.
func (r *record) time(i int) time.Time {
	if r.null(i) {
		return time.Time{}
	}
	return time.UnixMicro(r.whole(i, math.MinInt64, math.MaxInt64)).UTC()
}

// checksum is stored as a signed number, which takes four bytes whatever it is.
func (r *record) checksum(i int) uint32 { return uint32(r.whole(i, math.MinInt32, math.MaxInt32)) }

func (r *record) state(i int) events.State { return events.State(r.whole(i, 0, math.MaxUint8)) }

func (r *record) token(i int) events.Token { return events.Token(r.whole(i, 1, math.MaxInt64)) }

func (r *record) version(i int) int { return int(r.whole(i, 1, math.MaxInt32)) }

func width(columns string) int { return strings.Count(columns, ",") + 1 }

// of is the columns of one table in a query of several.
func of(table, columns string) string {
	return table + "." + strings.ReplaceAll(columns, ", ", ", "+table+".")
}

// damaged is the error of an entity's columns that are not what was written.
func damaged(entity events.Entity, what string, err error) error {
	if err == nil {
		return nil
	}
	return &events.Corrupt{Entity: entity, Detail: what + ": " + err.Error()}
}

// instant is a time in whole microseconds, NULL where it is zero.
func instant(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	at := t.UnixMicro()
	return &at
}

// castagnoli is a constant of the format.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)
