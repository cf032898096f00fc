package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/reaper"
	"github.com/foundling-go/foundling/store"
)

// process is what runs under a worker's incarnation, as one sees it who stands beside the machine.
type process struct {
	worker   events.ID
	interval time.Duration // of its heartbeats; 0 does not beat by itself
	fence    time.Duration
	next     time.Duration // when it beats next, in the story's own time
	silent   bool          // it is stopped, or over
	beats    []time.Time   // those that were confirmed, by the store's time; what lies ahead of it proves nothing
	beaten   bool
	last     time.Duration // when it beat last, in the story's own time
	release  func() error  // of its proof of life; nil where it has none
	leads    *reaper.Beat  // nil where it takes no part in the beat
	waits    bool          // its last step waited for proof
	failed   string        // what went wrong in its last step
}

// kernel proves deaths for an engine that has nothing to prove them by, so that the same stories can be told to all.
type kernel struct {
	store.Store
	store.Heart
	mu     sync.Mutex
	proofs map[events.ID]*proof
}

// proof is that of an incarnation which was attested.
type proof struct{ ended, forgotten bool }

// Unwrap is the engine.
func (k *kernel) Unwrap() store.Store { return k.Store }

// Attest implements store.ProcessWatcher.
func (k *kernel) Attest(_ context.Context, worker events.ID) (func() error, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.proofs[worker] != nil {
		return nil, errors.New("it was attested before")
	}
	p := &proof{}
	k.proofs[worker] = p
	return func() error {
		k.mu.Lock()
		defer k.mu.Unlock()
		p.ended = true
		return nil
	}, nil
}

// Gone implements store.ProcessWatcher.
func (k *kernel) Gone(_ context.Context, workers ...events.ID) ([]events.ID, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var gone []events.ID
	for _, worker := range workers {
		if p := k.proofs[worker]; p != nil && p.ended && !p.forgotten {
			gone = append(gone, worker)
		}
	}
	return gone, nil
}

// Decide implements store.Store. The proof of a worker that has no row any more is forgotten.
func (k *kernel) Decide(ctx context.Context, calls ...store.Call) ([]store.Receipt, error) {
	receipts, err := k.Store.Decide(ctx, calls...)
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, receipt := range receipts {
		for _, e := range receipt.Events {
			if p := k.proofs[e.Entity.ID]; p != nil && (e.To == events.Stopped || e.To == events.Purged) {
				p.forgotten = true
			}
		}
	}
	return receipts, err
}

// Beat implements store.Heart. Whoever lives and has no proof any more is not believed.
func (k *kernel) Beat(ctx context.Context, b store.Beat) (time.Time, error) {
	k.mu.Lock()
	p := k.proofs[b.Worker]
	k.mu.Unlock()
	if p != nil && p.forgotten && !p.ended {
		return time.Time{}, fmt.Errorf("%w: its proof of life was forgotten", store.ErrNotBeating)
	}
	return k.Heart.Beat(ctx, b)
}

// proven gives an engine a kernel where it has no proof of its own.
func proven(engine store.Store) store.Store {
	if _, ok := store.As[store.ProcessWatcher](engine); ok {
		return engine
	}
	heart, _ := store.As[store.Heart](engine)
	return &kernel{Store: engine, Heart: heart, proofs: map[events.ID]*proof{}}
}

// process is that of a worker, begun where there is none yet.
func (w *World) process(worker events.ID) *process {
	for _, p := range w.processes {
		if p.worker == worker {
			return p
		}
	}
	p := &process{worker: worker}
	w.processes = append(w.processes, p)
	return p
}

// attest takes the proof of life of a worker that is about to start.
func (w *World) attest(ctx context.Context, p *process) error {
	if p.release != nil {
		return nil
	}
	watcher, ok := store.As[store.ProcessWatcher](w.engine)
	if !ok {
		return store.ErrNoProof
	}
	release, err := watcher.Attest(ctx, p.worker)
	p.release = release
	return err
}

// gone is those of some workers who are proven to have ended.
func (w *World) gone(ctx context.Context, workers []events.ID) ([]events.ID, error) {
	watcher, ok := store.As[store.ProcessWatcher](w.engine)
	if !ok {
		return nil, store.ErrNoProof
	}
	return watcher.Gone(ctx, workers...)
}

// beat is one heartbeat. Whoever sees by it that the store's clock moved by more than an interval against his own says so.
func (w *World) beat(ctx context.Context, p *process) error {
	heart, ok := store.As[store.Heart](w.engine)
	if !ok {
		return errors.New("the engine keeps no heartbeats")
	}
	p.next = w.passed + p.interval
	at, err := heart.Beat(ctx, store.Beat{Worker: p.worker, First: !p.beaten, Interval: p.interval, FenceAfter: p.fence})
	if err != nil {
		return err
	}
	var step *fsm.StepClock
	if n := len(p.beats); n > 0 {
		want := p.beats[n-1].Add(w.passed - p.last)
		if at.Sub(want).Abs() > p.interval {
			step = &fsm.StepClock{FromAt: want, ToAt: at, Worker: p.worker, Tolerance: p.interval}
		}
	}
	p.beats = slices.DeleteFunc(p.beats, func(b time.Time) bool { return b.After(at) })
	p.beats, p.beaten, p.last = append(p.beats, at), true, w.passed
	if step == nil || p.interval == 0 {
		return nil
	}
	_, err = w.decide(ctx, func(o calls.Origin) store.Call { return calls.OperateClock(o, fsm.OperateClock{StepClock: *step}) })
	return err
}

// own is the heartbeats that a worker knows of when it looks who lives: those of the last while, and one before.
func (p *process) own(now time.Time, while time.Duration) []time.Time {
	own, from := p.beats, now.Add(-while)
	for len(own) > 1 && !own[1].After(from) {
		own = own[1:]
	}
	return own
}

// pass lets time go by until a time of the story, for the store as for everybody.
func (w *World) pass(until time.Duration) {
	w.now.Add(int64(until - w.passed))
	w.passed = until
}

// nextBeat is the process that beats next by the given time; nil where none does.
func (w *World) nextBeat(until time.Duration) *process {
	var next *process
	for _, p := range w.processes {
		if !p.silent && p.interval > 0 && p.next <= until && (next == nil || p.next < next.next) {
			next = p
		}
	}
	return next
}

// runAdvance lets time go by. Whoever has an interval beats meanwhile, and whoever takes part in the beat does its part.
func runAdvance(ctx context.Context, w *World, l *line, _ string) (Result, error) {
	d, err := time.ParseDuration(l.word("duration"))
	if err == nil && d < 0 {
		err = fmt.Errorf("advance %s: time does not go back", d)
	}
	if err = errors.Join(err, l.end()); err != nil {
		return Result{}, err
	}
	return w.tell(ctx, func(said *strings.Builder) error {
		end := w.passed + d
		for p := w.nextBeat(end); p != nil; p = w.nextBeat(end) {
			w.pass(max(p.next, w.passed))
			if err := w.live(ctx, p, said); err != nil {
				return err
			}
		}
		w.pass(end)
		return nil
	})
}

// live is what a process does at its interval.
func (w *World) live(ctx context.Context, p *process, said *strings.Builder) error {
	err := w.beat(ctx, p)
	if errors.Is(err, store.ErrNotBeating) {
		p.silent = true
		fmt.Fprintf(said, "%s: %v\n", p.worker, store.ErrNotBeating)
		return nil
	}
	if err != nil || p.leads == nil {
		return err
	}
	return w.lead(ctx, p, said)
}

// lookSetClock sets the store's clock. No time goes by.
func lookSetClock(_ context.Context, w *World, l *line, _ string) (string, error) {
	d, err := time.ParseDuration(l.word("duration"))
	w.now.Add(int64(d))
	return "", err
}

// each does something to every process that a line names.
func each(l *line, w *World, do func(*process) error) error {
	if len(l.words) == 0 {
		return fmt.Errorf("%s: which worker?", l.verb)
	}
	for _, word := range l.rest() {
		id, err := w.names.id(word)
		if err == nil {
			err = do(w.process(id))
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", l.verb, word, err)
		}
	}
	return l.end()
}

// runBeat makes workers beat now; with behind=, as if the store had noted it that much earlier.
func runBeat(ctx context.Context, w *World, l *line, _ string) (Result, error) {
	behind := l.length("behind")
	w.now.Add(-int64(behind))
	defer w.now.Add(int64(behind))
	return w.tell(ctx, func(*strings.Builder) error {
		return each(l, w, func(p *process) error { return w.beat(ctx, p) })
	})
}

// runWake lets processes that were stopped go on, with a heartbeat.
func runWake(ctx context.Context, w *World, l *line, _ string) (Result, error) {
	return w.tell(ctx, func(*strings.Builder) error {
		return each(l, w, func(p *process) error { p.silent = false; return w.beat(ctx, p) })
	})
}

// lookSilence stops processes: they beat no more, and live.
func lookSilence(_ context.Context, w *World, l *line, _ string) (string, error) {
	return "", each(l, w, func(p *process) error { p.silent = true; return nil })
}

// lookKill ends processes. The kernel lets go of what they had attested.
func lookKill(_ context.Context, w *World, l *line, _ string) (string, error) {
	return "", each(l, w, (*process).end)
}

func (p *process) end() error {
	p.silent = true
	if p.release == nil {
		return nil
	}
	release := p.release
	p.release = func() error { return nil } // what was gone once is gone for ever
	return release()
}

// lookStill takes the heartbeat rows of workers away.
func lookStill(ctx context.Context, w *World, l *line, _ string) (string, error) {
	heart, ok := store.As[store.Heart](w.engine)
	if !ok {
		return "", errors.New("the engine keeps no heartbeats")
	}
	return "", each(l, w, func(p *process) error { return heart.Still(ctx, p.worker) })
}

// lookBlind takes from everybody the means to read who lives; lookSighted gives it back.
func lookBlind(_ context.Context, w *World, _ *line, _ string) (string, error) {
	w.blind.Store(true)
	return "", nil
}

func lookSighted(_ context.Context, w *World, _ *line, _ string) (string, error) {
	w.blind.Store(false)
	return "", nil
}
