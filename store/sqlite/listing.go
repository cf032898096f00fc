package sqlite

import (
	"fmt"
	"strings"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// scanRows is how many rows a page looks at where few of them may pass: a snapshot that is held for long keeps the write-ahead log from
// being taken home.
const scanRows = 20_000

// listing is where a walk over the rows of one kind stands.
type listing struct {
	table  *table
	filter store.RowFilter
	keys   []any // the rows that are asked for; none is all of them
	after  any   // the key of the last row that was looked at
	done   bool
}

// page is the next rows of a listing.
type page struct {
	*listing
	selected, columns, from string
	where                   []string
	args                    []any
	rows                    int // at most
	upto                    any // it looks no further than at this key, unless nil

	found int
	last  any  // the key of the last row that it gave
	cut   bool // it ended before its last row
}

// page is the query for the next page.
func (l *listing) page() page {
	t, f := l.table, &l.filter
	p := page{listing: l, selected: of("t", t.columns), columns: t.columns, from: t.name + " t", rows: pageRows}
	if f.Limit > 0 {
		p.rows = min(pageRows, f.Limit)
	}
	if f.Worker != (events.ID{}) {
		p.from += " INDEXED BY messages_running"
	}
	if f.Payloads && t == tables[events.KindMessage] {
		p.columns, p.selected, p.from = p.columns+", salt, bytes", p.selected+", p.salt, p.bytes", p.from+" LEFT JOIN payloads p ON p.place = t.place"
	}
	if n := min(len(l.keys), pageRows); n > 0 {
		p.add(t.key+" IN (?"+strings.Repeat(", ?", n-1)+")", l.keys[:n]...)
	}
	if l.after != nil {
		p.add(t.key+l.sign("> ?", "< ?"), l.after)
	}
	if f.Topic != "" {
		p.add("topic = ?", f.Topic)
	}
	if f.Lock != "" {
		p.add("lock = ?", f.Lock)
	}
	if f.Worker != (events.ID{}) {
		p.add("worker = ?", f.Worker[:])
	}
	if n := len(f.States); n > 0 {
		states := make([]any, n)
		for i, state := range f.States {
			states[i] = int64(state)
		}
		p.add("state IN (?"+strings.Repeat(", ?", n-1)+")", states...)
	}
	return p
}

func (p *page) add(condition string, values ...any) {
	p.where = append(p.where, "t."+condition)
	p.args = append(p.args, values...)
}

// sign is what an order makes of a condition.
func (l *listing) sign(rising, falling string) string {
	if l.filter.Order == store.Falling {
		return " " + falling
	}
	return " " + rising
}

// narrow bounds how many rows the page looks at, where no index leads to those that pass.
func (p *page) narrow(from source) error {
	f := &p.filter
	if len(p.keys) > 0 || f.Worker != (events.ID{}) || f.Topic == "" && f.Lock == "" && len(f.States) == 0 {
		return nil
	}
	query, args := p.bound()
	r := newRecord(p.table.key)
	err := from(r, func() error {
		p.upto = r.values[0]
		return nil
	}, query, args...)
	if p.upto != nil {
		p.add(p.table.key+p.sign("<= ?", ">= ?"), p.upto)
	}
	return err
}

// bound is the query for the key up to which a page looks.
func (p *page) bound() (query string, args []any) {
	where := "1"
	if p.after != nil {
		where, args = p.table.key+p.sign("> ?", "< ?"), []any{p.after}
	}
	return fmt.Sprintf("SELECT %[1]s FROM %[2]s WHERE %[3]s ORDER BY %[1]s%[4]s LIMIT 1 OFFSET %[5]d",
		p.table.key, p.table.name, where, p.sign("", "DESC"), scanRows-1), args
}

func (p *page) query() string {
	where := "1"
	if len(p.where) > 0 {
		where = strings.Join(p.where, " AND ")
	}
	return fmt.Sprintf("SELECT %s FROM %s WHERE %s ORDER BY t.%s%s LIMIT %d", p.selected, p.from, where, p.table.key, p.sign("", "DESC"), p.rows)
}

// passed steps behind a page.
func (l *listing) passed(p *page) {
	switch {
	case p.cut || p.found == p.rows && (len(l.keys) == 0 || p.rows < pageRows):
		l.after = p.last
	case p.upto != nil:
		l.after = p.upto
	case len(l.keys) > pageRows:
		l.keys = l.keys[pageRows:]
	default:
		l.done = true
	}
}
