package sqlite

import (
	"context"
	"fmt"
	"iter"

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
					item.err = fmt.Errorf("sqlite: permits: %w", item.err)
				}
				if !yield(item.permit, item.err) {
					return
				}
			}
			if err != nil {
				yield(store.Permit{}, fmt.Errorf("sqlite: permits: %w", err))
				return
			}
		}
	}
}

// permitListing is where a walk over permits stands.
type permitListing struct {
	filter store.PermitFilter
	after  []any // lock and token of the last permit that was given
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
	r := newRecord(permitColumns)
	after := l.after
	err = s.snapshot(ctx, func(from source) error {
		list = nil
		return from(r, func() error {
			permit, err := r.permit()
			if err != nil {
				permit = store.Permit{}
			}
			list, after = append(list, listedPermit{permit, err}), []any{r.values[0], r.values[1]}
			return nil
		}, query, args...)
	})
	if isDamaged(err) {
		err = &events.Corrupt{Detail: fmt.Sprintf("somewhere among the permits: %v", err)}
	}
	l.after, l.done = after, len(list) < pageRows
	return list, err
}

// next is the query for the next page. What a worker holds and what has expired is found by their indexes; a page sorts it.
func (l *permitListing) next() (query string, args []any) {
	from, where := "permits", "1"
	add := func(condition string, values ...any) {
		where += " AND " + condition
		args = append(args, values...)
	}
	switch {
	case l.filter.Lock == "" && l.after != nil:
		add("(lock, token) > (?, ?)", l.after...)
	case l.filter.Lock != "":
		add("lock = ?", l.filter.Lock)
		if l.after != nil {
			add("token > ?", l.after[1])
		}
	}
	if !l.filter.ExpiredAt.IsZero() {
		from = "permits INDEXED BY permits_expiring"
		add("expires_at <= ?", l.filter.ExpiredAt.UnixMicro())
	}
	if l.filter.Worker != (events.ID{}) {
		from = "permits INDEXED BY permits_worker"
		add("worker = ?", l.filter.Worker[:])
	}
	query = fmt.Sprintf("SELECT %s FROM %s WHERE %s ORDER BY lock, token LIMIT %d", permitColumns, from, where, pageRows)
	return query, args
}
