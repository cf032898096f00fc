package main

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/child"
	"github.com/foundling-go/foundling/store"
	"github.com/spf13/cobra"
)

// emptyLook is how often work looks whether anything is left.
const emptyLook = 250 * time.Millisecond

// errEmpty is the cause with which work ends when its topics have nothing queued or running. Dead letters do not count.
var errEmpty = errors.New("nothing is queued or running")

// workOptions is what the command line of work says.
type workOptions struct {
	topics     []string
	command    []string
	jobs       int
	stdin      bool
	untilEmpty bool
	settings
}

func newWork(a *app) *cobra.Command {
	var o workOptions
	cmd := &cobra.Command{
		Use:   "work [flags] TOPIC… -- COMMAND [ARG with {}]...",
		Short: "Run a command for each message of some topics",
		Long: "COMMAND runs once for each message, never through a shell; {} in any argument is the payload, which is appended where no\n" +
			"argument has it. It finds FOUNDLING_MESSAGE, FOUNDLING_TOKEN and FOUNDLING_ATTEMPT in its environment. Exit status 0\n" +
			"completes the message once all output is written; any other tries it again, or dead-letters it when its attempts are spent.\n" +
			"Ctrl-C (or SIGTERM) waits for what runs and ends; a second one stops that too and gives it back.\n" +
			"The exit status is 130 after Ctrl-C, 0 after SIGTERM; with --until-empty 0, or 1 where a message was dead-lettered meanwhile.",
		Example: "  foundling work mail receipts -j 4 -- ./send {}",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			if dash < 0 || dash == len(args) {
				return usage("no command: give it behind the topics, as in foundling work mail -- ./send {}")
			}
			o.topics, o.command = args[:dash], args[dash:]
			if err := o.checkWorker(); err != nil {
				return err
			}
			return a.work(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.IntVarP(&o.jobs, "jobs", "j", runtime.NumCPU(), "how many run at once in this process")
	flags.BoolVar(&o.stdin, "stdin", false, "give the payload as standard input instead of an argument")
	flags.BoolVar(&o.untilEmpty, "until-empty", false, "end when the topics have nothing queued or running, here or elsewhere; dead letters do not count")
	o.working(cmd)
	objectsFlag(a, cmd)
	cmd.ValidArgsFunction = a.topicsThenCommand()
	return cmd
}

func (o workOptions) validate() (child.Template, error) {
	if len(o.topics) == 0 {
		return child.Template{}, usage("no topic: give at least one before the --")
	}
	if o.jobs < 1 {
		return child.Template{}, usage("--jobs %d: want 1 or more", o.jobs)
	}
	template, err := child.NewTemplate(o.command, onStdin(o.stdin).input())
	if err != nil {
		return template, usage("%w", err)
	}
	return template, nil
}

func (a *app) work(ctx context.Context, o workOptions) error {
	template, err := o.validate()
	if err != nil {
		return err
	}
	s, err := a.openOrMake(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	runner, err := child.New(child.Options{})
	if err != nil {
		return &exitError{exitStore, err}
	}
	defer runner.Close()

	out := a.console()
	stop, abort, release := stopSignals(ctx, func(os.Signal) {
		out.say("foundling: stopping when what runs has ended; again to stop that too")
	})
	defer release()
	commander := &commander{template: template, runner: runner, out: out, stopping: stop.Done(), done: newWorked(o.topics)}
	worker, err := a.commandWorker(s, commander, o, abortable(abort))
	if err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(stop)
	defer end(nil)
	out.broken = end // of several causes the first counts
	before, err := s.Head(ctx)
	if err != nil {
		return err
	}
	var looking sync.WaitGroup
	if o.untilEmpty {
		looking.Go(func() { end(waitEmpty(ctx, s, o.topics)) })
	}
	err = worker.Run(ctx)
	cause := context.Cause(ctx)
	end(nil)
	looking.Wait()
	at, unread := s.Now(context.WithoutCancel(ctx))
	commander.done.print(a, out, workEnd{cause, at})
	if err != nil && !errors.Is(err, context.Canceled) { // ended before it had begun, it says no more than cause does
		return err
	}
	if unread != nil {
		return unread
	}
	if errors.Is(cause, errEmpty) {
		return anyDead(context.WithoutCancel(ctx), s, before, o.topics)
	}
	if abort.Err() != nil {
		return exit(exitInterrupted)
	}
	return o.ended(cause)
}

// commandWorker is a worker that runs a command for each message of the topics.
func (a *app) commandWorker(s store.Store, c *commander, o workOptions, m foundling.Middleware) (*foundling.Worker, error) {
	client, err := foundling.NewClient(s, foundling.ClientOptions{Actor: a.actor("work"), Logger: a.loggerTo(lineWriter{c.out}, slog.LevelWarn)})
	if err != nil {
		return nil, err
	}
	options, err := o.worker(foundling.WorkerOptions{Concurrency: o.jobs, DrainTimeout: foundling.None})
	if err != nil {
		return nil, err
	}
	worker, err := foundling.NewWorker(client, options)
	if err != nil {
		return nil, err
	}
	for i, name := range o.topics {
		foundling.NewTopic[[]byte](name, foundling.TopicOptions{}).Handle(worker, c.done.counting(i, c.handle), m)
	}
	return worker, nil
}

// ended is how work ends where it was not for want of messages.
func (o workOptions) ended(cause error) error {
	var by *interrupted
	switch {
	case !errors.As(cause, &by):
		return &exitError{exitStore, cause}
	case by.by == syscall.SIGTERM && !o.untilEmpty:
		return nil // the way a service is ended
	}
	return exit(exitInterrupted)
}

// waitEmpty waits until the topics have nothing queued or running, here or elsewhere, and returns errEmpty then. Dead letters do not
// count: they wait for an operator.
func waitEmpty(ctx context.Context, s store.Store, topics []string) error {
	ticker := time.NewTicker(emptyLook)
	defer ticker.Stop()
	for {
		open, err := anyOpen(ctx, s, topics)
		if err != nil {
			return err
		}
		if !open {
			return errEmpty
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// anyOpen reports whether a message of the topics still has to end.
func anyOpen(ctx context.Context, s store.Store, topics []string) (bool, error) {
	for kept, err := range stagedOf(ctx, s, store.StagedFilter{}) { // first: what leaves that meanwhile is among the rows
		if err != nil || slices.Contains(topics, kept.Topic) {
			return err == nil, err
		}
	}
	for _, topic := range topics {
		for row, err := range s.Rows(ctx, store.RowFilter{Kind: events.KindMessage, Topic: topic}) {
			if err != nil {
				return false, err
			}
			if row.State != events.DeadLettered {
				return true, nil
			}
		}
	}
	return false, nil
}

// anyDead is the exit status 1 where a message of the topics was dead-lettered behind a place in the log and still is.
func anyDead(ctx context.Context, s store.Store, after store.Cursor, topics []string) error {
	filter := store.Filter{Types: []events.Type{events.TypeMessageDeadLettered}}
	dead, err := entitiesOf(s.Read(ctx, after, filter))
	if errors.Is(err, store.ErrPruned) { // retention went past it meanwhile: all that is kept is newer
		dead, err = entitiesOf(logOf(ctx, s, filter))
	}
	if err != nil {
		return err
	}
	for _, topic := range topics {
		for row, err := range s.Rows(ctx, store.RowFilter{Kind: events.KindMessage, Topic: topic}) {
			if err != nil {
				return err
			}
			if dead[row.Entity] && row.State == events.DeadLettered {
				return exit(exitFinding)
			}
		}
	}
	return nil
}

// entitiesOf is what events are of.
func entitiesOf(list iter.Seq2[events.Recorded, error]) (map[events.Entity]bool, error) {
	of := map[events.Entity]bool{}
	for r, err := range list {
		if err != nil {
			return nil, err
		}
		of[r.Entity] = true
	}
	return of, nil
}
