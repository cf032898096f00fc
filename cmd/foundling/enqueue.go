package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/lines"
	"github.com/foundling-go/foundling/store"
	"github.com/spf13/cobra"
)

// enqueueOptions is what the flags of enqueue say.
type enqueueOptions struct {
	foundling.EnqueueOptions
	priority string
	onLocked string
	whole    bool
	nul      bool
}

func newEnqueue(a *app) *cobra.Command {
	var o enqueueOptions
	cmd := &cobra.Command{
		Use:   "enqueue TOPIC [FILE|-]",
		Short: "Make messages out of lines, and print their ids",
		Long: "Each line of FILE, or of standard input, is one message, byte for byte without its line end; empty lines are skipped.\n" +
			"An id is printed once its message is durable, followed by \"known\" where the key was taken and it is another message's.\n" +
			"The store is made where it is not there.",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("key") && o.Key == "" {
				return usage("--key: empty name, want 1 to %d bytes", store.MaxName)
			}
			if cmd.Flags().Changed("lock") && o.Lock == "" {
				return usage("--lock: empty name, want 1 to %d bytes", store.MaxName)
			}
			if cmd.Flags().Changed("on-locked") && o.Lock == "" {
				return usage("--on-locked %s: of which lock? give --lock NAME", o.onLocked)
			}
			return a.enqueue(cmd.Context(), o, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Key, "key", "", "a name for the one message, unique among the open ones of the topic")
	flags.DurationVar(&o.Delay, "delay", 0, "do not handle it before so much time has passed, as in 90s or 2h")
	flags.StringVar(&o.priority, "priority", "normal", "high, normal or low")
	flags.StringVar(&o.Lock, "lock", "", "the lock that is taken while it is handled, over all topics and processes")
	flags.StringVar(&o.onLocked, "on-locked", "wait", "what becomes of it where the lock is taken at its turn: wait, or skip, which discards it")
	flags.IntVar(&o.MaxAttempts, "attempts", 0, "how many attempts it has (default 25)")
	flags.DurationVar(&o.Timeout, "timeout", 0, "how long one attempt may take (default no bound)")
	flags.BoolVarP(&o.nul, "null", "0", false, "messages end in a NUL byte instead of a line end")
	flags.BoolVar(&o.whole, "whole", false, "all of the input, one byte at least, is one message, line ends and all")
	cmd.MarkFlagsMutuallyExclusive("null", "whole")
	printing(a, cmd)
	cmd.ValidArgsFunction = a.topicOrFile()
	complete(cmd, "priority", fixed("high", "normal", "low"))
	complete(cmd, "on-locked", fixed("wait", "skip"))
	complete(cmd, "lock", a.lockNames())
	return cmd
}

func (a *app) enqueue(ctx context.Context, o enqueueOptions, args []string) error {
	if args[0] == "" {
		return usage("topic: empty name")
	}
	priority, err := events.ParsePriority(o.priority)
	if err != nil {
		return usage("--%w", err)
	}
	o.Priority = priority
	if o.OnLocked, err = lockPolicy(o.onLocked); err != nil {
		return err
	}
	if o.Timeout < 0 {
		return usage("--timeout %s: want 0 or more", o.Timeout)
	}
	input, done, err := a.input(args[1:])
	if err != nil {
		return err
	}
	defer done()
	ctx, release := interruptible(ctx)
	defer release()
	input = &heedful{over: ctx.Done(), from: input}
	s, err := a.openOrMake(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	client, err := a.client(s, "enqueue")
	if err != nil {
		return err
	}
	e := &enqueuer{app: a, client: client, topic: foundling.NewTopic[[]byte](args[0], foundling.TopicOptions{}), opts: o}
	if !a.forPeople() {
		if e.feed, err = newFeed[jsonEnqueued](a, "foundling.enqueue/v1"); err != nil {
			return err
		}
	}
	read := e.lines
	if o.whole {
		read = e.whole
	}
	err = read(ctx, input)
	if isInterrupt(ctx, err) {
		err = &exitError{exitInterrupted, errors.New("interrupted: nothing is enqueued but what is listed")}
	}
	if e.feed == nil {
		return err
	}
	now, unknown := s.Now(context.WithoutCancel(ctx))
	return errors.Join(err, e.feed.end(end{AsOf: atTime(now), Truncated: err != nil, Warnings: e.warnings}), unknown)
}

// jsonEnqueued is a message that was made as JSON has it.
type jsonEnqueued struct {
	Message string `json:"message"`
	Known   bool   `json:"known"` // the key was taken: it is another message's
}

// lockPolicy is what the flag --on-locked says.
func lockPolicy(word string) (foundling.LockPolicy, error) {
	for _, p := range []foundling.LockPolicy{foundling.WaitForLock, foundling.SkipIfLocked} {
		if word == p.String() {
			return p, nil
		}
	}
	return 0, usage("--on-locked %q: want wait or skip", word)
}

// input is what a FILE argument names; none, or a dash, is standard input.
func (a *app) input(args []string) (io.Reader, func() error, error) {
	if len(args) == 0 || args[0] == "-" {
		return a.stdin, func() error { return nil }, nil
	}
	file, err := os.Open(args[0])
	if err != nil {
		return nil, nil, usage("%w", err)
	}
	return file, file.Close, nil
}

// maxWarnings is how many of the lines that were passed over are named.
const maxWarnings = 100

// enqueuer makes messages of one topic.
type enqueuer struct {
	*app
	client *foundling.Client
	topic  foundling.Topic[[]byte]
	opts   enqueueOptions
	page   []foundling.Draft

	feed     *feed[jsonEnqueued] // for programs; nil prints for people
	warnings []string            // lines that were passed over
}

// whole makes one message of the whole input.
func (e *enqueuer) whole(ctx context.Context, input io.Reader) error {
	const most = lines.DefaultMaxBytes
	payload, err := io.ReadAll(io.LimitReader(input, most+1))
	if isInterrupt(ctx, err) {
		return err
	}
	if err != nil {
		return &exitError{exitStore, fmt.Errorf("read input: %w", err)}
	}
	if len(payload) == 0 {
		return usage("the input is empty, and a message has at least one byte")
	}
	if len(payload) > most {
		return usage("the input has more than the %d bytes a message may have", most)
	}
	e.add(payload)
	return e.commit(ctx)
}

// lines makes a message of each line. A line that is too long is said and passed over, so that the others are not enqueued twice when
// it is enqueued by itself.
func (e *enqueuer) lines(ctx context.Context, input io.Reader) error {
	passedOver := 0
	pages, err := newPager(input, nulEnded(e.opts.nul).ending(), func(err error) {
		passedOver++
		if len(e.warnings) < maxWarnings {
			e.warnings = append(e.warnings, "not enqueued: "+err.Error())
		}
		if e.feed == nil {
			fmt.Fprintf(e.stderr, "foundling: not enqueued: %v\n", err)
		}
	})
	if err != nil {
		return err
	}
	for {
		page, err := pages.next()
		if isInterrupt(ctx, err) {
			return err
		}
		for _, line := range page {
			e.add(line)
		}
		if e.opts.Key != "" && len(e.page) > 1 {
			return usage("--key %s is for one message, and the input has more", harmless(e.opts.Key))
		}
		if err != nil || e.opts.Key == "" { // with a key, all of the input is known before anything is done
			if err := e.commit(ctx); err != nil {
				return err
			}
		}
		switch {
		case err == nil:
		case err != io.EOF: // bare, as Reader says
			return &exitError{exitStore, err}
		case passedOver > 0:
			return exit(exitUsage)
		default:
			return nil
		}
	}
}

func (e *enqueuer) add(payload []byte) {
	e.page = append(e.page, e.topic.Draft(payload, e.opts.EnqueueOptions))
}

// commit makes the messages of the page durable and prints their ids.
func (e *enqueuer) commit(ctx context.Context) error {
	list, err := e.client.EnqueueMany(context.WithoutCancel(ctx), e.page...) // what was begun is told of to its end
	if err != nil {
		return err
	}
	e.page = e.page[:0]
	if e.feed != nil {
		for _, m := range list {
			if err := e.feed.add(jsonEnqueued{m.ID.String(), m.Known}); err != nil {
				return err
			}
		}
		return e.feed.flush()
	}
	var b bytes.Buffer
	for _, m := range list {
		b.WriteString(m.ID.String())
		if m.Known {
			b.WriteString(" known")
		}
		b.WriteByte('\n')
	}
	if _, err := e.stdout.Write(b.Bytes()); err != nil {
		return &exitError{exitStore, fmt.Errorf("print ids, whose messages are enqueued: %w", err)}
	}
	return nil
}
