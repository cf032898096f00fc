package storetest

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/foundling-go/foundling/store"
)

// Verdict is what came of a sentence that was tested for an engine.
type Verdict struct {
	Known bool     // there is such a sentence
	Ended bool     // it did, in time
	Said  []string // its complaints: none is a sentence that holds
	Panic string   // what it panicked with, and where
}

// Try tests one sentence for an engine without failing any test. What is opened is opened for no test.
func (s Suite) Try(ctx context.Context, says string) Verdict {
	for _, g := range groups() {
		for _, it := range g.sentences {
			if it.says == says {
				return s.try(ctx, it)
			}
		}
	}
	return Verdict{}
}

func (s Suite) try(ctx context.Context, it sentence) Verdict {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &recorder{verdict: Verdict{Known: true}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer r.clean(cancel)
		defer r.recover()
		it.test(s.reporting(ctx, r, nil))
	}()
	timer := time.NewTimer(2 * patience)
	defer timer.Stop()
	select {
	case <-ended:
		r.verdict.Ended = true
	case <-timer.C:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.verdict
}

// Skipped is why the suite skips what, for the engine of a store.
func (s Suite) Skipped(probe store.Store) map[string]string {
	all, lacks := map[string]string{}, s.lacks(probe)
	for _, g := range groups() {
		if why := g.skipped(lacks); why != "" {
			all[g.about] = why
		}
	}
	return all
}

// Sentences is all that the suite says.
func Sentences() []string {
	var all []string
	for _, g := range groups() {
		for _, it := range g.sentences {
			all = append(all, it.says)
		}
	}
	return all
}

// recorder hears what a sentence reports, in place of a *testing.T.
type recorder struct {
	mu       sync.Mutex
	verdict  Verdict
	cleanups []func()
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.verdict.Said = append(r.verdict.Said, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatal(args ...any) {
	r.Errorf("%s", fmt.Sprint(args...))
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

// clean does what package testing does behind a test.
func (r *recorder) clean(cancel func()) {
	cancel()
	r.mu.Lock()
	list := r.cleanups
	r.mu.Unlock()
	for _, f := range slices.Backward(list) {
		f()
	}
}

func (r *recorder) recover() {
	if v := recover(); v != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.verdict.Panic = fmt.Sprintf("%v\n%s", v, debug.Stack())
	}
}
