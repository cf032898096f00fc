// Command joint is one of the processes that share a SQLite file in the tests of the root package: built apart from them, it works
// without the race detector while they have it. What it is told comes on its input; what it says goes to its output, one JSON line each.
//
//	joint work PATH FIRST COUNT   enqueues messages FIRST to FIRST+COUNT−1 and handles messages, both flat out, until its input ends
//	joint write PATH              enqueues, handles and cancels messages until its input ends
//	joint open                    for each line of its input, opens the store of that path, enqueues one message and closes it
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/store/sqlite"
)

// said is a line of the output. Exactly one field is set.
type said struct {
	Ready bool   `json:"ready,omitempty"` // it waits for its input
	Ran   *int   `json:"ran,omitempty"`   // the number of a message whose handler has run
	Done  string `json:"done,omitempty"`  // the path that was opened and closed
	Log   string `json:"log,omitempty"`   // a line of the log, of level WARN or above
	Error string `json:"error,omitempty"` // an error that a caller was given
	Beats *beats `json:"beats,omitempty"` // the heartbeats of its life
}

func main() {
	out := &output{lines: json.NewEncoder(os.Stdout)}
	if err := play(out, os.Args[1:]); err != nil {
		out.say(said{Error: err.Error()})
		os.Exit(1)
	}
}

func play(out *output, args []string) error {
	switch {
	case len(args) == 4 && args[0] == "work":
		first, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		count, err := strconv.Atoi(args[3])
		if err != nil {
			return err
		}
		return work(out, args[1], share{first, count})
	case len(args) == 2 && args[0] == "write":
		return write(out, args[1])
	case len(args) == 1 && args[0] == "open":
		return openEach(out)
	}
	return fmt.Errorf("usage: joint work PATH FIRST COUNT | joint write PATH | joint open; got %q", args)
}

// output is where lines go, from many goroutines.
type output struct {
	mu    sync.Mutex
	lines *json.Encoder
}

// say writes a line. Who cannot be heard ends: nobody is there to be worked for.
func (o *output) say(s said) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.lines.Encode(s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Write implements io.Writer for the log: slog writes a line at a time.
func (o *output) Write(line []byte) (int, error) {
	o.say(said{Log: strings.TrimSpace(string(line))})
	return len(line), nil
}

func (o *output) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(o, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// openEach opens a store for each line of the input. An error of one is said, and the next is opened all the same.
func openEach(out *output) error {
	out.say(said{Ready: true})
	paths := bufio.NewReader(os.Stdin)
	for {
		path, err := paths.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		path = strings.TrimSuffix(path, "\n")
		if err := openOnce(out, path); err != nil {
			out.say(said{Error: err.Error()})
		}
		out.say(said{Done: path})
	}
}

func openOnce(out *output, path string) error {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	c, err := foundling.NewClient(s, foundling.ClientOptions{Logger: out.logger()})
	if err == nil {
		_, err = foundling.NewTopic[int]("opened", foundling.TopicOptions{}).Enqueue(ctx, c, os.Getpid(), foundling.EnqueueOptions{})
	}
	return errors.Join(err, s.Close())
}
