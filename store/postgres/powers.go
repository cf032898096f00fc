package postgres

import (
	"context"
	"fmt"

	"github.com/foundling-go/foundling/store"
)

// What the engine offers beside store.Store.
var (
	_ store.Waiter = (*Store)(nil)
	_ store.Heart  = (*Store)(nil)
	_ store.Leaser = (*Store)(nil)
	_ store.Shelf  = (*Store)(nil)
	_ store.Stager = (*Store)(nil)
)

// powers is what stands beside commits: the horizon of readers, heartbeats and leases, hints.
type powers struct {
	horizon horizon
	looks   looks
	spots   spots
	seals   seals
	pulse   *pulse
	hints   *hints
}

// openPowers begins them. Nothing connects before it is needed.
func (s *Store) openPowers() {
	s.powers.pulse = newPulse(s.config, &s.pooler)
	s.powers.hints = newHints(s)
}

// closePowers ends them. No call is under way.
func (s *Store) closePowers() {
	s.powers.hints.close()
	s.powers.looks.done.Wait()
	s.powers.seals.done.Wait()
	s.powers.pulse.close()
}

const sequenceQuery = "SELECT q.name, s.seqcache, s.seqincrement, s.seqcycle FROM (VALUES ('blocks', '@blocks'::regclass), ('fences', '@fences'::regclass))" +
	" AS q (name, id) LEFT JOIN pg_sequence s ON s.seqrelid = q.id"

// checkSequences refuses a store whose numbers would not be drawn in the order of time: readers would lose events, and a token could be given
// twice.
func (s *Store) checkSequences(ctx context.Context) error {
	return s.ask(ctx, func(p *pipeline) {
		r := newRecord("name, cache, increment, cycle")
		p.query(r, func() error {
			name, cache, increment, cycle := r.text(0), r.whole(1, 0, 1<<62), r.whole(2, -1<<62, 1<<62), r.flag(3)
			if r.err == nil && (cache != 1 || increment != 1 || cycle) {
				r.err = fmt.Errorf("sequence %s: cache %d, increment %d, cycle %t: readers of the log would lose events; want cache 1, increment 1, no cycle",
					s.sql("@"+name), cache, increment, cycle)
			}
			return r.err
		}, sequenceQuery)
	})
}
