package foundlingtest

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/store/memory"
)

// TB is what is needed of a test: *testing.T, *testing.B, *testing.F and *rapid.T have it.
type TB interface {
	// Helper marks the caller as one whose lines are not to be shown.
	Helper()
	// Cleanup has f called when the test has ended.
	Cleanup(f func())
	// Logf adds to what is shown of the test.
	Logf(format string, args ...any)
	// Fatalf says why the test has failed, and ends its goroutine.
	Fatalf(format string, args ...any)
}

// Options are a client's settings. The zero value works.
type Options struct {
	// Client is for the foundling.Client. Its zero Actor is "test"; a nil Logger writes warnings and errors to the test.
	Client foundling.ClientOptions
	// Worker is for the workers that are run. Its zero Concurrency is 1, its zero HeartbeatInterval 1 h and its zero ReclaimAfter 24 h; Sweeps is off
	// whatever it says, and PollInterval is for Start alone.
	Worker foundling.WorkerOptions
	// Start is the store's time at the beginning, outside of a bubble; zero is midnight UTC 2000-01-01, which is where bubbles begin.
	Start time.Time
	// Steps is how often one RunUntilEnded may let time go by before it fails the test; 0 is 10,000.
	Steps int
}

// Client is a foundling.Client over an empty store in memory, on a time that the test moves.
type Client struct {
	*foundling.Client
	// Store is what it enqueues to, for who wants to read it past the client. Of workers, RunUntilIdle knows those of this client alone.
	Store *memory.Store

	worker foundling.WorkerOptions
	steps  int
	codec  foundling.Codec
	clock  clock
	engine *engine
	began  time.Time
}

// New makes a client with the zero Options.
func New(t TB) *Client {
	t.Helper()
	return NewWith(t, Options{})
}

// NewWith makes a client. Its store is closed when the test has ended.
func NewWith(t TB, o Options) *Client {
	t.Helper()
	if o.Steps < 0 {
		t.Fatalf("foundlingtest: options: Steps %d, want 0 or more", o.Steps)
	}
	clock, err := newClock(o.Start)
	if err != nil {
		t.Fatalf("foundlingtest: %v", err)
	}
	if o.Client.Actor == "" {
		o.Client.Actor = "test"
	}
	if o.Client.Logger == nil {
		o.Client.Logger = slog.New(slog.NewTextHandler(logWriter{t}, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: withoutTime}))
	}
	s := memory.New(memory.Options{Clock: clock.now})
	e := newEngine(s, clock)
	inner, err := foundling.NewClient(e, o.Client)
	if err != nil {
		t.Fatalf("foundlingtest: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Fatalf("foundlingtest: %v", err)
		}
	})
	if o.Steps == 0 {
		o.Steps = defaultSteps
	}
	return &Client{
		Client: inner, Store: s, worker: workerOptions(o.Worker), steps: o.Steps, codec: o.Client.Codec,
		clock: clock, engine: e, began: clock.now(),
	}
}

// workerOptions gives the settings of a worker their values.
func workerOptions(o foundling.WorkerOptions) foundling.WorkerOptions {
	if o.Concurrency == 0 {
		o.Concurrency = 1
	}
	if o.HeartbeatInterval == 0 {
		o.HeartbeatInterval = time.Hour
	}
	if o.ReclaimAfter == 0 {
		o.ReclaimAfter = 24 * time.Hour
	}
	o.Sweeps = foundling.SweepsOff
	return o
}

// Now is the store's time.
func (c *Client) Now() time.Time { return c.clock.now() }

// Advance lets time go by. In a bubble it sleeps, and what runs meanwhile runs; it returns when nothing goes on without more time. Outside of one it
// moves the store's time at once.
func (c *Client) Advance(d time.Duration) {
	c.clock.advance(d)
	c.engine.hint()
	c.clock.settle()
}

// logWriter writes lines to what is shown of a test.
type logWriter struct{ t TB }

// Write is called with a line at a time.
func (w logWriter) Write(line []byte) (int, error) {
	w.t.Helper()
	w.t.Logf("%s", strings.TrimSuffix(string(line), "\n"))
	return len(line), nil
}

func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// ctx is for calls of the package's own: they have the client's bound on each call to the store, and no other.
func ctx() context.Context { return context.Background() }
