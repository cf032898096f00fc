package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// scanRows is how many rows a page looks at where few of them may pass: a snapshot that is held for long keeps dead rows from being cleaned up.
const scanRows = 20_000

// listing is where a walk over the rows of one kind stands.
type listing struct {
	table  *table
	kind   events.Kind
	filter store.RowFilter
	keys   []events.Entity // the rows that are asked for; none is all of them
	after  *events.Entity  // the last row that was looked at
	done   bool
}

// page is the next rows of a listing.
type page struct {
	*listing
	selected, columns, from string
	order                   string // the column of it
	where                   []string
	args                    []any
	rows                    int            // at most
	upto                    *events.Entity // it looks no further than at this key, unless nil

	found int
	last  events.Entity // of the last row that it gave
	cut   bool          // it ended before its last row
}

// page is the query for the next page.
func (l *listing) page() *page {
	t, f := l.table, &l.filter
	p := &page{listing: l, selected: of("t", t.columns), columns: t.columns, from: "@" + t.name + " t", order: "t." + t.key, rows: pageRows}
	if f.Limit > 0 {
		p.rows = min(pageRows, f.Limit)
	}
	if f.Worker != (events.ID{}) {
		p.claims()
	}
	if f.Payloads && l.kind == events.KindMessage {
		p.columns, p.selected = p.columns+", salt, bytes", p.selected+", p.salt, p.bytes"
		p.from += " LEFT JOIN @payloads p ON p.place = t.place"
	}
	if n := min(len(l.keys), pageRows); n > 0 {
		p.add(t.key+" = ANY (?)", keysOf(l.kind, l.keys[:n]))
	}
	if l.after != nil {
		p.behind(*l.after)
	}
	if f.Topic != "" {
		p.add("topic = ?", f.Topic)
	}
	if f.Lock != "" {
		p.add("lock = ?", f.Lock)
	}
	if len(f.States) > 0 {
		states := make([]int16, len(f.States))
		for i, state := range f.States {
			states[i] = int16(state)
		}
		p.add("state = ANY (?)", states)
	}
	return p
}

// add adds a condition with its value.
func (p *page) add(condition string, value any) {
	p.args = append(p.args, value)
	p.where = append(p.where, "t."+strings.Replace(condition, "?", fmt.Sprintf("$%d", len(p.args)), 1))
}

// behind has the page begin behind a row.
func (p *page) behind(after events.Entity) {
	condition, value := afterKey(after, p.filter.Order)
	p.add(p.table.key+condition, value)
}

// afterKey is the condition for what comes behind a key. No text of the server has a zero in it: what is more than one that has is more than what
// stands before its zero, and what is less is at most that.
func afterKey(after events.Entity, order store.Order) (condition string, value any) {
	value = any(after.ID)
	cut := false
	if after.Kind.Named() {
		var text string
		text, _, cut = strings.Cut(after.Name, "\x00")
		value = text
	}
	switch {
	case order != store.Falling:
		return " > ?", value
	case cut:
		return " <= ?", value
	}
	return " < ?", value
}

// claims has the page walk over the open claims of a worker. All of them are found by their index first: the order of the page alone would lead over
// all messages.
func (p *page) claims() {
	p.args = append(p.args, p.filter.Worker)
	worker := fmt.Sprintf("$%d", len(p.args))
	p.from = "(WITH held AS MATERIALIZED (SELECT id FROM @messages WHERE worker = " + worker + ") SELECT id FROM held ORDER BY id" + p.falls() + " OFFSET 0) h" +
		" CROSS JOIN LATERAL (SELECT * FROM @messages m WHERE m.id = h.id OFFSET 0) t"
	p.where = append(p.where, "t.worker = "+worker)
	p.order = "h.id"
}

// keysOf is the values of the key column.
func keysOf(kind events.Kind, list []events.Entity) any {
	if kind.Named() {
		names := make([]string, len(list))
		for i, e := range list {
			names[i] = e.Name
		}
		return names
	}
	ids := make([]events.ID, len(list))
	for i, e := range list {
		ids[i] = e.ID
	}
	return ids
}

// falls is how the order of a page is told.
func (p *page) falls() string {
	if p.filter.Order == store.Falling {
		return " DESC"
	}
	return ""
}

// query is the text for a page, whose arguments are p.args. Payloads come for as long as there is room for them.
func (p *page) query() string {
	where := "true"
	if len(p.where) > 0 {
		where = strings.Join(p.where, " AND ")
	}
	rest := fmt.Sprintf("FROM %s WHERE %s ORDER BY %s%s LIMIT %d", p.from, where, p.order, p.falls(), p.rows)
	if p.columns == p.table.columns {
		return "SELECT " + p.selected + " " + rest
	}
	return fmt.Sprintf("SELECT %s FROM (SELECT %s, sum(coalesce(octet_length(p.bytes), 0)) OVER (ORDER BY %s%s) - coalesce(octet_length(p.bytes), 0) AS before %s) w"+
		" WHERE before < %d ORDER BY %s%s", p.columns, p.selected, p.order, p.falls(), rest, pageBytes, p.table.key, p.falls())
}

// narrow bounds how many rows the page looks at, where no index leads to those that pass.
func (s *Store) narrow(ctx context.Context, p *page) error {
	f := &p.filter
	if len(p.keys) > 0 || f.Worker != (events.ID{}) || f.Topic == "" && f.Lock == "" && len(f.States) == 0 {
		return nil
	}
	query, args := p.bound()
	err := s.ask(ctx, func(line *pipeline) {
		p.upto = nil
		r := newRecord(p.table.key)
		line.query(r, func() error {
			bound := events.Entity{Kind: p.kind}
			if p.kind.Named() {
				bound.Name = r.text(0)
			} else {
				bound.ID = r.array(0)
			}
			p.upto = &bound
			return r.err
		}, query, args...)
	})
	if p.upto != nil {
		sign := " <= ?"
		if p.filter.Order == store.Falling {
			sign = " >= ?"
		}
		_, value := afterKey(*p.upto, store.Rising)
		p.add(p.table.key+sign, value)
	}
	return err
}

// bound is the query for the key up to which a page looks.
func (p *page) bound() (query string, args []any) {
	where := "true"
	if p.after != nil {
		condition, value := afterKey(*p.after, p.filter.Order)
		where, args = p.table.key+strings.Replace(condition, "?", "$1", 1), []any{value}
	}
	return fmt.Sprintf("SELECT %[1]s FROM @%[2]s WHERE %[3]s ORDER BY %[1]s%[4]s LIMIT 1 OFFSET %[5]d",
		p.table.key, p.table.name, where, p.falls(), scanRows-1), args
}

// passed steps behind a page.
func (l *listing) passed(p *page) {
	switch {
	case p.cut || p.found == p.rows && (len(l.keys) == 0 || p.rows < pageRows):
		l.after = &p.last
	case p.upto != nil:
		l.after = p.upto
	case len(l.keys) > pageRows:
		l.keys = l.keys[pageRows:]
	default:
		l.done = true
	}
}
