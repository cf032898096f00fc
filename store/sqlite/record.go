package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// record reads rows of one query column by column. What is not of the column's type is noted, not guessed: somebody changed it.
type record struct {
	columns []string
	values  []any
	into    []any
	err     error // the first wrong column of the row that was scanned last
}

// newRecord reads the columns of a list as it stands in the query.
func newRecord(columns string) *record {
	r := &record{columns: strings.Split(columns, ", ")}
	r.values, r.into = make([]any, len(r.columns)), make([]any, len(r.columns))
	for i := range r.values {
		r.into[i] = &r.values[i]
	}
	return r
}

// each reads the rows of a query one by one and calls found for each.
func (r *record) each(rows *sql.Rows, err error, found func() error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		r.err = nil
		if err := rows.Scan(r.into...); err != nil {
			return err
		}
		if err := found(); err != nil {
			return err
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// wrong notes that a column is not what it should be.
func (r *record) wrong(i int, want string) {
	if r.err != nil {
		return
	}
	switch v := r.values[i].(type) {
	case int64:
		r.err = fmt.Errorf("column %s: %d is stored, want %s", r.columns[i], v, want)
	case string:
		r.err = fmt.Errorf("column %s: the text %.40q is stored, want %s", r.columns[i], v, want)
	case []byte:
		r.err = fmt.Errorf("column %s: %d bytes are stored, want %s", r.columns[i], len(v), want)
	default:
		r.err = fmt.Errorf("column %s: %v is stored, want %s", r.columns[i], v, want)
	}
}

func (r *record) null(i int) bool { return r.values[i] == nil }

// whole is a whole number between two bounds.
func (r *record) whole(i int, low, high int64) int64 {
	n, ok := r.values[i].(int64)
	if !ok {
		r.wrong(i, "a whole number")
		return 0
	}
	if n < low || n > high {
		r.wrong(i, fmt.Sprintf("%d to %d", low, high))
		return 0
	}
	return n
}

func (r *record) bytes(i int) []byte {
	b, ok := r.values[i].([]byte)
	if !ok {
		r.wrong(i, "bytes")
	}
	return b
}

func (r *record) array(i int) (id [16]byte) {
	b := r.bytes(i)
	if len(b) != len(id) {
		r.wrong(i, "16 bytes")
		return id
	}
	return [16]byte(b)
}

func (r *record) text(i int) string {
	s, ok := r.values[i].(string)
	if !ok {
		r.wrong(i, "text")
	}
	return s
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

func (r *record) version(i int) int { return int(r.whole(i, 1, math.MaxInt64)) }

// stream is the value of an entity's column events.stream: the bytes of a message's id, the text of everything else.
func stream(e events.Entity) any {
	if e.Kind == events.KindMessage {
		return e.ID[:]
	}
	return e.String()
}

// entity reads what stream writes, and nothing else.
func (r *record) entity(i int) events.Entity {
	text, ok := r.values[i].(string)
	if !ok {
		return events.MessageEntity(r.array(i))
	}
	e, err := events.ParseEntity(text)
	if err != nil || e.Kind == events.KindMessage || e.String() != text {
		r.wrong(i, "a stream")
	}
	return e
}

const eventColumns = "position, stream, version, type, schema, from_state, to_state, body, checksum"

// event is the event of a row that begins with eventColumns.
func (r *record) event() (events.Stored, error) {
	e := events.Stored{
		Position: r.whole(0, 1, math.MaxInt64), Entity: r.entity(1),
		Type: events.Type(r.whole(3, 0, math.MaxUint16)), Schema: int(r.whole(4, 0, math.MaxUint16)),
		From: r.state(5), To: r.state(6), Body: r.bytes(7), Checksum: r.checksum(8),
	}
	if !r.null(2) {
		e.Version = r.version(2)
	}
	if r.err != nil {
		return e, &events.Corrupt{Entity: e.Entity, Version: e.Version, Position: e.Position, Detail: r.err.Error()}
	}
	return e, nil
}

func eventArgs(args []any, e *events.Stored) []any {
	var version any
	if e.Version > 0 {
		version = int64(e.Version)
	}
	return append(args, e.Position, stream(e.Entity), version, int64(e.Type), int64(e.Schema), int64(e.From), int64(e.To),
		e.Body, int64(int32(e.Checksum)))
}

const commitColumns = "first, id, at, count, body, checksum"

// placed is a stored commit with the position of its first event.
type placed struct {
	events.StoredCommit
	first int64
	wrong error // a column that is not what was written
}

// next is the position behind the commit.
func (p *placed) next() int64 { return p.first + int64(p.Count) }

// commit is the commit whose columns, commitColumns, begin at i.
func (r *record) commit(i int) placed {
	p := placed{first: r.whole(i, 1, math.MaxInt64), StoredCommit: events.StoredCommit{
		ID: r.array(i + 1), At: time.UnixMicro(r.whole(i+2, math.MinInt64, math.MaxInt64)).UTC(),
		Count: int(r.whole(i+3, 1, store.MaxEvents)), Body: r.bytes(i + 4), Checksum: r.checksum(i + 5),
	}}
	p.wrong = r.err
	return p
}

func commitArgs(args []any, r *store.Recording) []any {
	c := &r.Commit
	return append(args, r.Stored[0].Position, c.ID[:], c.At.UnixMicro(), int64(c.Count), c.Body, int64(int32(c.Checksum)))
}
