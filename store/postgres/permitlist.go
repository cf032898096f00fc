package postgres

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// Permits implements store.Store.
func (s *Store) Permits(ctx context.Context, f store.PermitFilter) iter.Seq2[store.Permit, error] {
	return func(yield func(store.Permit, error) bool) {
		l := permitListing{filter: f}
		for !l.done {
			list, err := s.permitPage(ctx, &l)
			for _, item := range list {
				if item.err != nil {
					item.err = fmt.Errorf("postgres: permits: %w", item.err)
				}
				if !yield(item.permit, item.err) {
					return
				}
			}
			if err != nil {
				yield(store.Permit{}, fmt.Errorf("postgres: permits: %w", err))
				return
			}
		}
	}
}

// permitListing is where a walk over permits stands.
type permitListing struct {
	filter store.PermitFilter
	after  *store.PermitKey // the last permit that was given
	done   bool
}

// listedPermit is a permit, or what is wrong with it.
type listedPermit struct {
	permit store.Permit
	err    error
}

// permitPage reads the next page.
func (s *Store) permitPage(ctx context.Context, l *permitListing) (list []listedPermit, err error) {
	query, args := l.next()
	after := l.after
	err = s.ask(ctx, func(p *pipeline) {
		list = nil
		r := newRecord(permitColumns)
		if !nameable(l.filter.Lock) {
			return // no lock has such a name
		}
		p.query(r, func() error {
			permit, err := r.permit()
			after = &store.PermitKey{Lock: string(r.values[0]), Token: events.Token(r.raw(1))}
			if err != nil {
				permit = store.Permit{}
			}
			list = append(list, listedPermit{permit, err})
			return nil
		}, query, args...)
	})
	if isDamaged(err) {
		err = &events.Corrupt{Detail: fmt.Sprintf("somewhere among the permits: %v", err)}
	}
	l.after, l.done = after, len(list) < pageRows
	return list, err
}

// next is the query for the next page. What a worker holds and what has expired is found by its index first, since the order of the page would lead
// over all permits; a page sorts it.
func (l *permitListing) next() (query string, args []any) {
	var where []string
	add := func(condition string, values ...any) {
		for _, value := range values {
			args = append(args, value)
			condition = strings.Replace(condition, "?", fmt.Sprintf("$%d", len(args)), 1)
		}
		where = append(where, condition)
	}
	f := &l.filter
	from := "@permits"
	found := func(condition string, value any) {
		args = append(args, value)
		from = fmt.Sprintf("(WITH found AS MATERIALIZED (SELECT %s FROM @permits WHERE %s $%d) SELECT * FROM found) f", permitColumns, condition, len(args))
	}
	switch {
	case f.Worker != (events.ID{}):
		found("worker =", f.Worker)
	case !f.ExpiredAt.IsZero() && f.Lock == "":
		found("expires_at <=", f.ExpiredAt.UnixMicro())
	case !f.ExpiredAt.IsZero():
		from = fmt.Sprintf("(WITH found AS MATERIALIZED (SELECT %s FROM @permits WHERE lock = $1 AND expires_at <= $2) SELECT * FROM found) f", permitColumns)
		args = append(args, f.Lock, f.ExpiredAt.UnixMicro())
	}
	if l.after != nil && f.Lock == "" {
		add("(lock, token) > (?, ?)", l.after.Lock, int64(l.after.Token))
	} else if l.after != nil {
		add("token > ?", int64(l.after.Token))
	}
	if f.Lock != "" {
		add("lock = ?", f.Lock)
	}
	if !f.ExpiredAt.IsZero() {
		add("expires_at <= ?", f.ExpiredAt.UnixMicro())
	}
	query = fmt.Sprintf("SELECT %s FROM %s WHERE %s ORDER BY lock, token LIMIT %d", permitColumns, from, strings.Join(append(where, "true"), " AND "), pageRows)
	return query, args
}
