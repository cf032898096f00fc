package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/reaper"
	"github.com/foundling-go/foundling/store"
)

// run is a step of several commits, which the people's code makes by itself.
type run func(ctx context.Context, w *World, l *line, input string) (Result, error)

// running is the run of a verb; nil where it is none.
func running(verb string) run {
	switch verb {
	case "sweep":
		return runSweep
	case "prune":
		return runPrune
	case "advance":
		return runAdvance
	case "lead":
		return runLead
	case "resign":
		return runResign
	case "beat":
		return runBeat
	case "wake":
		return runWake
	}
	return nil
}

// errKilled is how a sweep hears that its process is over.
var errKilled = errors.New("killed")

// swept is what came of the last sweeps.
type swept struct {
	requeued, deadLettered, locksReleased, spared, dead int

	refused events.Reason
}

func sum(reports []*swept) swept {
	var all swept
	for _, r := range reports {
		all.requeued += r.requeued
		all.deadLettered += r.deadLettered
		all.locksReleased += r.locksReleased
		all.spared += r.spared
		all.dead += r.dead
		if r.refused != "" {
			all.refused = r.refused
		}
	}
	return all
}

// sweeper is a sweep that somebody asked for, with what befalls it.
type sweeper struct {
	w *World
	reaper.Sweep
	lives     int // after how many commits its process is killed; below 0 is never
	failed    bool
	meanwhile []string
}

// sweeper reads whose sweep it is.
func (w *World) sweeper(l *line) (*sweeper, error) {
	caller, err := w.names.id(l.word("worker"))
	if err != nil {
		return nil, err
	}
	s := &sweeper{w: w, lives: l.number("commits", -1)}
	s.Term = l.number("term", 0)
	s.Store, s.Decide, s.Caller, s.Thresholds = w.store, s.commit, caller, thresholds(l)
	s.ID, err = w.mint()
	s.Own = w.process(caller).own(w.time(), s.Thresholds.After)
	return s, err
}

// thresholds reads the settings of a sweep; the defaults are those of OPERATIONS.
func thresholds(l *line) events.Thresholds {
	t := events.Thresholds{
		After: fsm.DefaultReclaimAfter, Grace: fsm.DefaultClaimGrace, Limit: l.number("limit", fsm.DefaultOrphanMaxAttempts),
	}
	if d := l.length("after"); d > 0 {
		t.After = d
	}
	switch grace := l.text("grace"); grace {
	case "":
	case "none":
		t.Grace = 0
	default:
		t.Grace = l.duration("grace", grace)
	}
	switch word := l.text("count"); word {
	case "", events.CountClaims.String():
	case events.CountOrphanings.String():
		t.Count = events.CountOrphanings
	default:
		l.fail("count=%s: want claims or orphanings", word)
	}
	return t
}

// runSweep is a sweep that is asked for. What its input tells happens when it has looked who lives and before its first commit.
func runSweep(ctx context.Context, w *World, l *line, input string) (Result, error) {
	s, err := w.sweeper(l)
	if err = errors.Join(err, l.end()); err != nil {
		return Result{}, err
	}
	for text := range strings.Lines(input) {
		s.meanwhile = append(s.meanwhile, strings.TrimSpace(text))
	}
	w.swept = swept{}
	result, err := w.tell(ctx, func(b *strings.Builder) error { return s.tell(ctx, b) })
	if err != nil {
		return result, err
	}
	if len(s.meanwhile) > 0 {
		return result, errors.New("sweep: it committed nothing, so that its input was not told")
	}
	if w.swept.refused != "" {
		return result, untouched(result.Events)
	}
	if s.failed {
		return result, nil
	}
	return result, s.again(ctx)
}

// tell carries something out that commits by itself, and gives what it left in the log, then what else it says.
func (w *World) tell(ctx context.Context, do func(*strings.Builder) error) (Result, error) {
	var said, b strings.Builder
	from := len(w.log)
	err := do(&said)
	if _, followed := w.follow(ctx); followed != nil || err != nil {
		return Result{}, errors.Join(err, followed)
	}
	if len(w.log) > from {
		w.last = nil
	}
	for _, r := range w.log[max(w.shown, from):] {
		fmt.Fprintln(&b, w.names.text.Line(r))
	}
	w.shown = len(w.log)
	return Result{Text: b.String() + w.names.plain(said.String()), Events: w.log[from:]}, nil
}

// tell runs the sweep.
func (s *sweeper) tell(ctx context.Context, b *strings.Builder) error {
	report := new(swept)
	err := s.run(ctx, report)
	s.w.swept = *report
	if report.refused != "" {
		fmt.Fprintf(b, "refused: %s\n", report.refused)
	}
	if s.failed = err != nil; s.failed {
		fmt.Fprintln(b, err)
	}
	return nil
}

// run runs the sweep, as a client does that is asked for one: where it doubts, and somebody could be dead, it refuses.
func (s *sweeper) run(ctx context.Context, report *swept) error {
	r, err := s.Run(ctx)
	*report = counted(r)
	if err != nil || r.Doubt == nil || !r.Blind() && r.Suspects == 0 {
		return err
	}
	report.refused = r.Doubt.Reason
	return s.Refuse(ctx, r)
}

func counted(r reaper.Report) swept {
	return swept{
		requeued: r.Requeued, deadLettered: r.DeadLettered, locksReleased: r.LocksReleased, spared: r.Spared, dead: len(r.Dead),
	}
}

// commit is the sweep's way to the store.
func (s *sweeper) commit(ctx context.Context, prepare func(calls.Origin) store.Call) (store.Receipt, error) {
	told := s.meanwhile
	s.meanwhile = nil
	for _, text := range told {
		if _, err := s.w.Do(ctx, text, ""); err != nil {
			return store.Receipt{}, err
		}
	}
	if s.lives == 0 {
		return store.Receipt{}, errKilled
	}
	receipt, err := s.w.decide(ctx, prepare)
	if len(receipt.Events) > 0 {
		s.lives--
	}
	return receipt, err
}

// decide commits one call, as the client of whoever makes several does.
func (w *World) decide(ctx context.Context, prepare func(calls.Origin) store.Call) (store.Receipt, error) {
	o, err := w.origin()
	if err != nil {
		return store.Receipt{}, err
	}
	receipts, err := w.settle(ctx, []store.Call{prepare(o)})
	if err != nil {
		return store.Receipt{}, err
	}
	return receipts[0], receipts[0].Err
}

// untouched is law 8 of a sweep that does not trust what it knows: it leaves its refusal and what it could prove.
func untouched(list []events.Recorded) error {
	for _, r := range list {
		if evidence, _ := events.EvidenceOf(r.Event); evidence.Reason != "" && evidence.Reason != events.ReasonProcessGone {
			return fmt.Errorf("law 8: a sweep that was refused left %s", r.Event.Type())
		}
	}
	return nil
}

// again is law 8 of a sweep that was not refused: run a second time it would change nothing. What it spares it may say again. Nothing is
// kept of that second run.
func (s *sweeper) again(ctx context.Context) error {
	wanted := map[events.Type]bool{}
	second := s.Sweep
	second.Decide = func(ctx context.Context, prepare func(calls.Origin) store.Call) (store.Receipt, error) {
		return s.w.decide(ctx, func(o calls.Origin) store.Call {
			call := prepare(o)
			call.Fn = forgetful(call.Fn, wanted)
			return call
		})
	}
	var err error
	if second.ID, err = s.w.mint(); err != nil {
		return err
	}
	if _, err = second.Run(ctx); err == nil && len(wanted) > 0 {
		err = fmt.Errorf("law 8: a second sweep on the spot would leave %v", slices.Sorted(maps.Keys(wanted)))
	}
	return err
}

// forgetful is a rule whose changes are only noted.
func forgetful(fn func(store.View) (store.Changes, error), wanted map[events.Type]bool) func(store.View) (store.Changes, error) {
	return func(view store.View) (store.Changes, error) {
		changes, err := fn(view)
		for _, c := range changes.Rows {
			for _, t := range c.Transitions {
				if e, ok := t.Event.(*events.SweepFinished); !ok || len(e.Dead) > 0 {
					wanted[t.Event.Type()] = true
				}
			}
		}
		return store.Changes{}, err
	}
}
