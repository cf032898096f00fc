package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/projections/replay"
	"github.com/foundling-go/foundling/projections/runner"
	"github.com/foundling-go/foundling/store"
)

// settle waits until nothing is open that should not be. Its error says what still is after the bound.
func (s *simulation) settle() error {
	limit := time.Since(s.began) + s.plan.bound()
	for at := time.Since(s.began); at <= limit; at += s.plan.Unit {
		if !s.until(at) || len(s.unsettled()) == 0 {
			return nil
		}
	}
	return fmt.Errorf("law 4: not settled within %s after the last fault:\n%s", s.plan.bound(), s.plain(strings.Join(s.unsettled(), "\n")))
}

// unsettled is what is open: messages that have not ended and do not wait for a time to come, permits that are out, and acknowledged messages
// that the log does not know.
func (s *simulation) unsettled() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	now := s.clock.now()
	behind := map[queue]bool{} // those who wait behind one that is not due: the clock was set back since it was blocked
	for _, m := range s.laws.messages {
		if m.trying && m.due.After(now) {
			behind[queue{m.lock, m.topic}] = true
		}
	}
	for id, m := range s.laws.messages {
		switch m.state {
		case events.Completed, events.DeadLettered, events.Cancelled, events.Discarded:
			continue
		case events.Queued:
			if m.due.After(now) {
				continue
			}
		case events.Blocked:
			if behind[queue{m.lock, m.topic}] {
				continue
			}
		}
		list = append(list, fmt.Sprintf("message %s is %s, worker %s, lock %q, due in %s", id, m.state, m.worker, m.lock, m.due.Sub(now)))
	}
	for name, k := range s.laws.locks {
		for token, p := range k.out {
			list = append(list, fmt.Sprintf("permit %d of %s is out, worker %s", token, name, p.worker))
		}
	}
	for id := range s.office.acked {
		if s.laws.messages[id] == nil {
			list = append(list, fmt.Sprintf("message %s was acknowledged and is not in the log", id))
		}
	}
	if s.office.busy > 0 {
		list = append(list, fmt.Sprintf("%d wishes of the office are on their way", s.office.busy))
	}
	slices.Sort(list)
	return list
}

// inspect checks what is left once everything has settled.
func (s *simulation) inspect(ctx context.Context) error {
	// From here on nobody becomes dead by the mere passing of time.
	if !s.until(time.Since(s.began) + s.plan.slowest() + 2*s.plan.Unit) {
		return nil
	}
	if err := s.sweepTwice(ctx); err != nil {
		return err
	}
	if err := s.stopAll(); err != nil {
		return err
	}
	return errors.Join(s.once(), s.rows(ctx), s.verify(ctx), s.totals(ctx))
}

// sweepTwice is law 8: a second sweep changes nothing.
func (s *simulation) sweepTwice(ctx context.Context) error {
	o := s.office.sweepOptions()
	o.Wait = 0
	if _, err := s.office.client.Sweep(ctx, o); err != nil {
		return fmt.Errorf("first sweep: %w", err)
	}
	before := s.swept()
	report, err := s.office.client.Sweep(ctx, o)
	if err != nil {
		return fmt.Errorf("second sweep: %w", err)
	}
	if after := s.swept(); after != before || report.Refused != "" || len(report.Dead) > 0 {
		return fmt.Errorf("law 8: the second sweep gives %+v, and %d events that the first had not left", report, after-before)
	}
	return nil
}

// swept is how many events of sweeps there are.
func (s *simulation) swept() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, typ := range []events.Type{
		events.TypeMessageOrphaned, events.TypeLockOrphaned, events.TypeLockReclaimed, events.TypeWorkerLost, events.TypeSweepFinished,
		events.TypeSweepRefused,
	} {
		n += s.met[typ.String()]
	}
	return n
}

// stopAll stops every process as it should be.
func (s *simulation) stopAll() error {
	var errs []error
	for _, p := range s.processes {
		p.life().stop()
	}
	for _, p := range s.processes {
		l := p.life()
		<-l.done
		if l.err != nil {
			errs = append(errs, fmt.Errorf("process %d: %w", p.n+1, l.err))
		}
	}
	return errors.Join(errs...)
}

// once is what an answer is worth: whoever is told that nothing was done may ask again, and then it is done once.
func (s *simulation) once() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.met[events.TypeMessageEnqueued.String()]; n > len(s.plan.Tasks) {
		return fmt.Errorf("law 4: %d tasks were submitted, and %d messages enqueued", len(s.plan.Tasks), n)
	}
	return nil
}

// rows holds what is kept against the log, when nobody works any more.
func (s *simulation) rows(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, err := range s.engine.Permits(ctx, store.PermitFilter{}) {
		return errors.Join(err, fmt.Errorf("law 7: permit %d of %s is kept", p.Token, p.Lock))
	}
	beats, err := s.engine.Beats(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, b := range beats {
		state := s.laws.workers[b.Worker] // the row of one that could not take it stays for a while
		if gone := state != events.Live && state != events.Lost; gone && s.clock.now().Sub(b.At) > s.plan.memory() {
			errs = append(errs, fmt.Errorf("worker %s is %s, and its heartbeat is kept", b.Worker, state))
		}
	}
	for row, err := range s.engine.Rows(ctx, store.RowFilter{}) {
		if err != nil {
			return err
		}
		switch row.Entity.Kind {
		case events.KindTopic:
			if row.Running != 0 || s.laws.topic(row.Entity.Name).running != 0 {
				errs = append(errs, fmt.Errorf("law 2: %d are running in %s, and no claim is open", row.Running, row.Entity.Name))
			}
		case events.KindMessage:
			if row.Worker != (events.ID{}) || row.LockToken != 0 {
				errs = append(errs, fmt.Errorf("law 3: %s is %s, and nobody works", row.Entity, row.State))
			}
		}
	}
	return errors.Join(errs...)
}

// verify is law 1, by those who know the rules.
func (s *simulation) verify(ctx context.Context) error {
	report, err := replay.Verify(ctx, s.engine, replay.Options{Payloads: true})
	if err != nil {
		return err
	}
	var errs []error
	for _, v := range report.Violations {
		errs = append(errs, fmt.Errorf("verify: %s", v.Text(s.names())))
	}
	for _, text := range report.Unchecked {
		errs = append(errs, fmt.Errorf("verify: unchecked: %s", text))
	}
	if report.Events+int(report.Through) != len(s.log) {
		errs = append(errs, fmt.Errorf("verify: %d events went and %d are in the log, %d were seen", report.Through, report.Events, len(s.log)))
	}
	return errors.Join(errs...)
}

// totals holds what was counted against what was seen: each event once, whoever was killed, and whatever retention took.
func (s *simulation) totals(ctx context.Context) error {
	empty := func() projections.Durable { return new(projections.Totals) }
	r, err := runner.New(s.engine, runner.Options{}, empty)
	if err == nil {
		err = r.CatchUp(ctx)
	}
	if err != nil {
		return fmt.Errorf("totals: %w", err)
	}
	read, err := runner.Read(ctx, s.engine, empty, 0)
	if err != nil {
		return fmt.Errorf("totals: %w", err)
	}
	counted, ok := read.What.(*projections.Totals)
	if !ok || read.Since.Position != 0 {
		return fmt.Errorf("totals: they count since position %d", read.Since.Position)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for typ, states := range counted.Counts().Transitions {
		n := 0
		for _, m := range states {
			n += m
		}
		if n != s.met[typ] {
			errs = append(errs, fmt.Errorf("totals: %d times %s was counted, and seen %d times", n, typ, s.met[typ]))
		}
	}
	return errors.Join(errs...)
}
