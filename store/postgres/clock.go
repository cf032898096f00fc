package postgres

import (
	"context"
	"fmt"
	"time"
)

// Now implements store.Store.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	var now time.Time
	var err error
	if s.options.Clock != nil {
		if err = s.enter(ctx); err == nil {
			now = s.clock()
			s.calls.Done()
		}
	} else {
		err = s.ask(ctx, func(p *pipeline) { s.askTime(p, &now) })
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("postgres: now: %w", err)
	}
	return now, nil
}
