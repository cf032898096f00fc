package scenario

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/mint"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/faulty"
)

// World is a store in the middle of a story. It is for one goroutine.
type World struct {
	engine store.Store // what the story looks at
	store  store.Store // what its people use: the engine behind faults
	fault  atomic.Uint32
	blind  atomic.Bool   // nobody can read who lives
	now    atomic.Int64  // the store's time since the start
	passed time.Duration // what has gone by, whatever the store's clock was set to
	source *mint.Source

	names  *names
	laws   *laws
	head   store.Cursor
	log    []events.Recorded // positions as ordinals
	even   *even
	shown  int                // up to where the story has shown it
	rows   map[hold]store.Row // of claims, as their workers got them
	topics map[string]bool    // known to the people, who then stop naming their settings
	last   []sent

	processes []*process // in the order in which the story spoke of them
	swept     swept      // what came of the last sweep
	sweeps    int        // of the beat, so far
}

// hold is a claim by what its worker knows of it.
type hold struct {
	message events.ID
	token   events.Token
}

// sent is a call as it was committed last.
type sent struct {
	call    store.Call
	receipt store.Receipt
}

// Result is what came of a step.
type Result struct {
	Text     string // everything below, as a story prints it
	Events   []events.Recorded
	Refusals []*fsm.Refusal
}

// New begins a story on a new store of the engine, whose files, if it has any, lie in dir.
func New(ctx context.Context, e Engine, dir string) (*World, error) {
	w := &World{
		source: mint.New(rand.NewChaCha8([32]byte{})), names: newNames(), laws: newLaws(), even: newEven(),
		rows: map[hold]store.Row{}, topics: map[string]bool{},
	}
	engine, err := e.Open(ctx, dir, w.time)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", e.Name, err)
	}
	w.engine = proven(engine)
	w.store = faulty.New(w.engine, w.plan)
	if w.head, err = engine.Head(ctx); err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	return w, nil
}

// plan is what befalls the calls of the people's store.
func (w *World) plan(c faulty.Call) faulty.Fault {
	switch {
	case c.Op == faulty.Decide:
		return faulty.Fault(w.fault.Swap(uint32(faulty.None)))
	case c.Op == faulty.Beats && w.blind.Load():
		return faulty.Fail
	}
	return faulty.None
}

// Close ends what runs and closes the store.
func (w *World) Close() error {
	var errs []error
	for _, p := range w.processes {
		errs = append(errs, p.end())
	}
	return errors.Join(errors.Join(errs...), w.engine.Close())
}

// time is the story's time.
func (w *World) time() time.Time { return start.Add(time.Duration(w.now.Load())) }

// mint makes the id of a message, a worker or a commit.
func (w *World) mint() (events.ID, error) { return w.source.ID(w.time()) }

// Do carries out a step: its line, and the lines of its input. An error says that the step was not understood, that the store failed,
// or that a law was broken; a refused command is a result.
func (w *World) Do(ctx context.Context, text, input string) (Result, error) {
	l, err := parseLine(text)
	if err != nil {
		return Result{}, err
	}
	if look, ok := looks[l.verb]; ok {
		shown, err := look(ctx, w, l, input)
		return Result{Text: w.even.text(shown)}, errors.Join(err, l.end())
	}
	fault, err := takeFault(l)
	if err != nil {
		return Result{}, err
	}
	quiet := l.flag("quiet")
	result, err := w.act(ctx, l, action{input, fault})
	result.Text = w.even.text(result.Text)
	if quiet {
		result.Text = fmt.Sprintf("%d events\n", len(result.Events))
	}
	return result, err
}

// action is what goes with the line of a step.
type action struct {
	input string
	fault faulty.Fault
}

// act carries out a step that commits something.
func (w *World) act(ctx context.Context, l *line, a action) (Result, error) {
	if l.verb == "parallel" {
		w.fault.Store(uint32(a.fault))
		return Result{}, w.parallel(ctx, l, a.input)
	}
	if run := running(l.verb); run != nil {
		w.fault.Store(uint32(a.fault))
		return run(ctx, w, l, a.input)
	}
	steps, err := w.steps(ctx, l, a.input)
	if err != nil {
		return Result{}, err
	}
	w.fault.Store(uint32(a.fault))
	return w.commit(ctx, steps)
}

// takeFault reads what is to befall the step's commit.
func takeFault(l *line) (faulty.Fault, error) {
	word := strings.ReplaceAll(l.text("fault"), "-", " ")
	if word == "" {
		return faulty.None, nil
	}
	for _, fault := range []faulty.Fault{faulty.Fail, faulty.LostBefore, faulty.LostAfter, faulty.Late, faulty.Twice} {
		if word == fault.String() {
			return fault, nil
		}
	}
	return faulty.None, fmt.Errorf("fault %q: want lost-before, lost-after, late, twice or fail", word)
}

// steps prepares the calls of a step.
func (w *World) steps(ctx context.Context, l *line, input string) ([]*step, error) {
	list := []*line{l}
	if l.verb == "together" {
		if err := l.end(); err != nil {
			return nil, err
		}
		var err error
		if list, err = lines(input); err != nil {
			return nil, err
		}
		input = ""
	}
	var steps []*step
	for _, l := range list {
		s, err := w.step(ctx, l, input)
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// step prepares the call of one line.
func (w *World) step(ctx context.Context, l *line, input string) (*step, error) {
	prepare, ok := commands[l.verb]
	if !ok {
		return nil, fmt.Errorf("step %q is not known", l.verb)
	}
	s, err := prepare(ctx, w, l, input)
	return s, errors.Join(err, l.end())
}

// commit brings the steps to the store as one commit, looks at what it left in the log, and tells it.
func (w *World) commit(ctx context.Context, steps []*step) (Result, error) {
	calls := make([]store.Call, len(steps))
	for i, s := range steps {
		calls[i] = s.call
	}
	receipts, err := w.settle(ctx, calls)
	if err != nil {
		return Result{}, err
	}
	fresh, err := w.follow(ctx)
	if err != nil {
		return Result{}, err
	}
	var told []events.Recorded
	var b strings.Builder
	result := Result{Events: fresh}
	w.last = nil
	for i, receipt := range receipts {
		told = append(told, receipt.Events...)
		w.keep(receipt)
		w.last = append(w.last, sent{calls[i], receipt})
	}
	if err := w.same(told, fresh); err != nil {
		return Result{}, fmt.Errorf("receipt and log differ: %w", err)
	}
	for _, r := range fresh {
		fmt.Fprintln(&b, w.names.text.Line(r))
	}
	w.shown = len(w.log)
	for i, s := range steps {
		notes, refusals, err := s.told(receipts[i])
		if err != nil {
			return Result{}, err
		}
		for _, note := range notes {
			fmt.Fprintln(&b, w.names.plain(note))
		}
		for _, r := range refusals {
			fmt.Fprintln(&b, w.names.plain(r.Error()))
		}
		result.Refusals = append(result.Refusals, refusals...)
	}
	result.Text = b.String()
	return result, w.finish(ctx, steps, receipts)
}

// finish does what follows from the commits of steps.
func (w *World) finish(ctx context.Context, steps []*step, receipts []store.Receipt) error {
	var errs []error
	for i, s := range steps {
		if s.done != nil && receipts[i].Err == nil {
			errs = append(errs, s.done(ctx, receipts[i]))
		}
	}
	return errors.Join(errs...)
}

// keep remembers what a receipt gave of claims and topics, as a worker and a client do.
func (w *World) keep(receipt store.Receipt) {
	for _, r := range receipt.Events {
		if r.Entity.Kind == events.KindTopic {
			w.topics[r.Entity.Name] = true
		}
		e, ok := r.Event.(*events.MessageClaimed)
		at := slices.IndexFunc(receipt.Rows, func(row store.Row) bool { return row.Entity == r.Entity })
		if ok && at >= 0 {
			w.rows[hold{r.Entity.ID, e.Token}] = receipt.Rows[at]
		}
	}
}

// attempts bounds how often a commit is sent.
const attempts = 5

// settle commits the calls, whatever befalls their answers, as a client does: what is unknown is asked for, and what is certain not to
// have happened is sent again under a new id.
func (w *World) settle(ctx context.Context, calls []store.Call) ([]store.Receipt, error) {
	receipts := make([]store.Receipt, len(calls))
	open := make([]int, len(calls)) // those without a receipt
	for i := range open {
		open[i] = i
	}
	for range attempts {
		batch := make([]store.Call, len(open))
		for i, at := range open {
			batch[i] = calls[at]
		}
		list, err := w.store.Decide(ctx, batch...)
		if err == nil {
			for i, at := range open {
				receipts[at] = list[i]
			}
			return receipts, nil
		}
		if errors.Is(err, store.ErrUnknown) {
			if open, err = w.ask(ctx, calls, receipts, open); err != nil || len(open) == 0 {
				return receipts, err
			}
		} else if !errors.Is(err, faulty.ErrPlanned) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("no answer after %d attempts", attempts)
}

// ask asks for the outcome of the open calls. Those that did not happen get a new id and are given back by their places.
func (w *World) ask(ctx context.Context, calls []store.Call, receipts []store.Receipt, unknown []int) ([]int, error) {
	var open []int
	for _, i := range unknown {
		receipt, committed, err := w.store.Outcome(ctx, calls[i].ID)
		if err != nil {
			return nil, fmt.Errorf("outcome: %w", err)
		}
		if receipts[i] = receipt; committed {
			continue
		}
		open = append(open, i)
		if calls[i].ID, err = w.mint(); err != nil {
			return nil, err
		}
	}
	return open, nil
}

// follow reads what is new in the log, names who appears in it and holds it against the laws.
func (w *World) follow(ctx context.Context) ([]events.Recorded, error) {
	var fresh []events.Recorded
	for r, err := range w.engine.Read(ctx, w.head, store.Filter{}) {
		if err != nil {
			return nil, fmt.Errorf("read: %w", err)
		}
		w.head, w.laws.at = w.engine.After(r), r.Position
		position := r.Position
		r.Position = int64(len(w.log) + 1)
		w.even.meet(r, position)
		w.names.meet(r)
		w.log = append(w.log, r)
		fresh = append(fresh, r)
		if err := w.laws.event(r); err != nil {
			return nil, fmt.Errorf("%s: %w", w.names.text.Line(r), err)
		}
	}
	if err := w.laws.settled(); err != nil {
		return nil, err
	}
	return fresh, nil
}

// same compares events, positions aside.
func (w *World) same(got, want []events.Recorded) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d events against %d", len(got), len(want))
	}
	for i := range got {
		a, b := got[i], want[i]
		a.Position, b.Position = 0, 0
		if x, y := w.names.text.Line(a), w.names.text.Line(b); x != y || a.Commit.Checksum != b.Commit.Checksum {
			return fmt.Errorf("%q against %q", x, y)
		}
	}
	return nil
}

// ID is the id that a name stands for, made up where nobody has it.
func (w *World) ID(name string) (events.ID, error) { return w.names.id(name) }
