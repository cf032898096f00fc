package foundling_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/foundlingtest"
)

// Most Examples run on a foundlingtest.Client: in memory, on a time that stands still until something is due, one message at a time. What they
// show is the same on every store, with workers that run for as long as the program does.

// ctx is that of the Examples.
var ctx = context.Background()

// silent is a logger for Examples whose handlers fail on purpose.
var silent = slog.New(slog.DiscardHandler)

// stage is where an Example plays, in the place of a *testing.T.
type stage struct{ cleanups []func() }

func (*stage) Helper()                           {}
func (s *stage) Cleanup(f func())                { s.cleanups = append(s.cleanups, f) }
func (*stage) Logf(string, ...any)               {} // warnings of handlers that fail on purpose
func (*stage) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// end does what was to be done at the end, the last first.
func (s *stage) end() {
	for i := len(s.cleanups) - 1; i >= 0; i-- {
		s.cleanups[i]()
	}
}

// inMemory is a client for an Example.
func inMemory() (*foundlingtest.Client, *stage) {
	s := new(stage)
	return foundlingtest.New(s), s
}

// mail is what Examples enqueue.
var mail = foundling.NewTopic[string]("mail", foundling.TopicOptions{})

// deliver is a handler of mail that prints what it gets.
func deliver(w *foundling.Worker) {
	mail.Handle(w, func(_ context.Context, m foundling.Message[string]) error {
		fmt.Println("delivered:", m.Payload)
		return nil
	})
}

// must is a value where nothing can have gone wrong.
func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
