package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
)

const (
	// DefaultGrace is Options.Grace where none is set.
	DefaultGrace = 5 * time.Second
	// DefaultHoldBytes is Options.HoldBytes where none is set.
	DefaultHoldBytes = 1 << 20
)

// markName is the variable by which a child is found between its start and the
// moment its number is known.
const markName = "FOUNDLING_CHILD"

var (
	// ErrClosed says that the Runner has been closed.
	ErrClosed = errors.New("the runner is closed")
	// ErrWatcher says that the watcher is not there: at New, because the
	// program did not call MaybeWatcher first; at Run, because somebody killed
	// it. Nothing more is started then, as nothing would end it.
	ErrWatcher = errors.New("the process that ends the children when this one dies is not there")
)

// Options configures a Runner. The zero value works.
type Options struct {
	// Grace is how long a child has from being asked to stop until it is
	// killed, and how long something it left behind may hold its output open;
	// 0 means DefaultGrace.
	Grace time.Duration
	// HoldBytes is how much of each of standard output and standard error is
	// held in memory before it goes to a file; 0 means DefaultHoldBytes.
	HoldBytes int
	// Dir is where those files are made; "" means os.TempDir(), which on some
	// systems is memory.
	Dir string
}

func (o Options) validate() error {
	if o.Grace < 0 {
		return fmt.Errorf("grace %s: want 0 (the default, %s) or more", o.Grace, DefaultGrace)
	}
	if o.HoldBytes < 0 {
		return fmt.Errorf("hold bytes %d: want 0 (the default, %d) or more", o.HoldBytes, DefaultHoldBytes)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.Grace == 0 {
		o.Grace = DefaultGrace
	}
	if o.HoldBytes == 0 {
		o.HoldBytes = DefaultHoldBytes
	}
	return o
}

// Runner runs children that end with this process. It may be used by many
// goroutines; how many children there are at once is up to them.
type Runner struct {
	options  Options
	lifeline *lifeline
	starts   chan start
	ended    chan struct{} // closed when the starting goroutine has returned

	mark       string // no other Runner's, ever
	startCount int    // of the starting goroutine

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup // the calls of Run; added to under mu
}

type start struct {
	process *process
	err     chan error // takes one, without blocking
}

// New returns a Runner with its watcher, which takes as long to start as this
// program does; a watcher that does not answer in ten seconds is ErrWatcher.
func New(o Options) (*Runner, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("new runner: %w", err)
	}
	line, err := newLifeline()
	if err != nil {
		return nil, fmt.Errorf("new runner: %w", err)
	}
	r := &Runner{
		options:  o.withDefaults(),
		lifeline: line,
		starts:   make(chan start),
		ended:    make(chan struct{}),
		mark:     fmt.Sprintf("%d-%d", os.Getpid(), time.Now().UnixNano()),
	}
	go r.startAll()
	return r, nil
}

// Run runs one command to its end. How the command ended, badly too, is the
// Result. An error says that it could not be run (ErrTooLong, ErrWatcher,
// ErrClosed, what the system says), that its output could not be held, such
// as on a full disk, or that ctx ended while it ran: the context's cause, and
// the Result then says how the child took it. Close the Result in any case.
func (r *Runner) Run(ctx context.Context, spec Spec) (Result, error) {
	result, err := r.run(ctx, spec)
	if err != nil {
		return result, fmt.Errorf("run %s: %w", spec.Path, err)
	}
	return result, nil
}

func (r *Runner) run(ctx context.Context, spec Spec) (Result, error) {
	if err := context.Cause(ctx); err != nil {
		return Result{}, err
	}
	if err := r.enter(); err != nil {
		return Result{}, err
	}
	defer r.running.Done()
	p, err := newProcess(spec, r.options)
	if err != nil {
		return Result{}, err
	}
	s := start{process: p, err: make(chan error, 1)}
	r.starts <- s // a start takes a millisecond, and all who wait are served
	if err := <-s.err; err != nil {
		p.abandon()
		return Result{}, err
	}
	return r.follow(ctx, p)
}

// follow sees a started child through to its end.
func (r *Runner) follow(ctx context.Context, p *process) (Result, error) {
	outcome := p.follow(ctx, r.options.Grace)
	// Struck off while the number is still taken (see awaitExit). A watcher
	// that is gone need not be told; the next start says that it is.
	_ = r.lifeline.remove(p.pid())
	state, err := p.reap()
	result := Result{}
	if state != nil {
		result = resultOf(state)
	}
	result.LeftBehind = outcome.leftBehind
	result.stdout, result.stderr = p.stdout.held, p.stderr.held
	return result, errors.Join(outcome.cause, outcome.unheld, err)
}

// Close waits for every Run to return, then ends the starting goroutine and the
// watcher. It stops no child: end their contexts. It can be called again.
func (r *Runner) Close() error {
	r.mu.Lock()
	first := !r.closed
	r.closed = true
	r.mu.Unlock()
	r.running.Wait()
	if first {
		close(r.starts)
	}
	<-r.ended
	if !first {
		return nil
	}
	if err := r.lifeline.close(); err != nil {
		return fmt.Errorf("close runner: %w", err)
	}
	return nil
}

func (r *Runner) enter() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return ErrClosed
	}
	r.running.Add(1)
	return nil
}

// startAll starts every child. It keeps its thread to itself, because Linux
// kills a child when the thread that started it ends; the thread ends with this
// goroutine, when no child is left.
func (r *Runner) startAll() {
	defer close(r.ended)
	runtime.LockOSThread()
	for s := range r.starts {
		s.err <- r.startOne(s.process)
	}
}

func (r *Runner) startOne(p *process) error {
	r.startCount++
	mark := fmt.Sprintf("%s-%d", r.mark, r.startCount)
	p.cmd.Env = append(p.cmd.Env, markName+"="+mark)
	if err := r.lifeline.expect(mark); err != nil {
		return fmt.Errorf("%w: %w", ErrWatcher, err)
	}
	if err := p.cmd.Start(); err != nil {
		return errors.Join(startError(err), r.lifeline.expect(""))
	}
	if err := r.lifeline.add(p.pid()); err != nil {
		p.kill()
		_, reaped := p.reap()
		return errors.Join(fmt.Errorf("%w: %w", ErrWatcher, err), reaped)
	}
	return nil
}

func startError(err error) error {
	if errors.Is(err, syscall.E2BIG) {
		return ErrTooLong
	}
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err // it names the file too
	}
	return err
}
