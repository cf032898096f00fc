package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/internal/child"
	"github.com/spf13/cobra"
)

const runHelp = `Run COMMAND once for each line of standard input, as xargs does, so that a crash loses nothing.

A line counts as read when it is on disk. {} in any argument of COMMAND is replaced by the line; without one the line is appended. No
shell is involved. A line that begins with - is seen by COMMAND as an option: where that may be, give COMMAND -- {}. A shell's script
gets the line as an argument of its own, sh -c '… "$1"' sh {}, for in sh -c '… {}' the line would be a piece of the script.

COMMAND runs in the directory where run was given it, with FOUNDLING_MESSAGE (the line's id), FOUNDLING_TOKEN (rises with every claim),
FOUNDLING_ATTEMPT and FOUNDLING_CHILD (a mark by which it is found when this process ends) in its environment. It ends with this
process, and so does all it starts in its process group; what leaves the group (setsid) lives on.

The output of each COMMAND is held and written whole before its line counts as done: what is done was printed. What ran when this
process was killed, at most -j lines, runs again when the batch is resumed, and may be printed twice. Where nobody can prove that a process
has ended, as in a network file system or in a database, that takes until it has been silent for five seconds, and the resume waits for it.

A line is known by its bytes and by how many equal ones came before it. The same batch with the same input does only what is not done
yet, in whatever order the lines come, and lines that were added. What is given besides, COMMAND and flags, holds from then on.
--resume NAME needs neither input nor COMMAND, and so does --store STORE alone, which resumes the batch in that store: there is one in each.

Ctrl-C (or SIGTERM) finishes what runs and begins nothing more; once more aborts. The exit status is 0 where all is done, 1 where lines
are dead letters or part of the input is missing, 4 where there is no such batch, 5 where a process works on it with another COMMAND,
and 130 after an interrupt.`

// runFlags are the flags of run.
type runFlags struct {
	jobs     int
	limit    int
	attempts int
	timeout  time.Duration
	keep     time.Duration
	null     bool
	stdin    bool
	resume   string

	given func(name string) bool // whether the command line has the flag
}

func newRun(a *app) *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:     "run [flags] [--] COMMAND [ARG...]",
		Short:   "Run a command for each line of input; a crash loses nothing",
		Long:    runHelp,
		Example: "  ls *.flac | foundling run --batch opus -j 4 -- flac2opus {}\n  foundling run --resume opus",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.given = cmd.Flags().Changed
			return a.run(cmd.Context(), f, args)
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false) // the flags behind COMMAND are COMMAND's
	flags.IntVarP(&f.jobs, "jobs", "j", runtime.NumCPU(), "how many COMMANDs run at once in this process")
	flags.IntVar(&f.limit, "limit", 0, "how many run at once over all processes of the batch; 0 lifts a limit that was set")
	flags.IntVar(&f.attempts, "attempts", 1, "how often a line is tried; the delay is 1s, doubling to 1m")
	flags.DurationVar(&f.timeout, "timeout", 0, "how long one COMMAND may take; 0 is no bound")
	flags.BoolVarP(&f.null, "null", "0", false, "lines end with a NUL byte, as from find -print0")
	flags.BoolVar(&f.stdin, "stdin", false, "give each line to COMMAND as its standard input instead of an argument")
	flags.StringVar(&f.resume, "resume", "", "go on with the batch of this name; needs no input")
	flags.DurationVar(&f.keep, "keep", 7*24*time.Hour, "finished batches older than this are removed")
	objectsFlag(a, cmd)
	return cmd
}

func (f *runFlags) validate(a *app, args []string) error {
	switch {
	case f.jobs < 1 || f.jobs > 1000:
		return usage("-j %d: want 1 to 1000", f.jobs)
	case f.limit < 0:
		return usage("--limit %d: want 0 or more", f.limit)
	case f.attempts < 1:
		return usage("--attempts %d: want 1 or more", f.attempts)
	case f.timeout < 0 || f.keep < 0:
		return usage("--timeout %s, --keep %s: want 0 or more", f.timeout, f.keep)
	case f.resume != "" && (a.batch != "" || a.store != ""):
		return usage("--resume %s beside --batch or --store: give one of them", f.resume)
	case f.resume == "" && a.store == "" && len(args) == 0:
		return usage("no COMMAND: foundling run [flags] -- COMMAND [ARG with {}]")
	}
	return nil
}

// run is the whole of `foundling run`.
func (a *app) run(ctx context.Context, f *runFlags, args []string) error {
	if err := f.validate(a, args); err != nil {
		return err
	}
	if len(args) > 0 { // said once, before any input is read
		if _, err := child.NewTemplate(args, onStdin(f.stdin).input()); err != nil {
			return usage("%w", err)
		}
	}
	b, err := a.openBatch(ctx, f, args)
	if err != nil {
		return err
	}
	defer b.store.Close()
	if b.plan == nil {
		return b.withoutPlan(ctx)
	}
	if err := b.enterDir(); err != nil {
		return err
	}
	template, err := child.NewTemplate(b.plan.argv(), onStdin(b.plan.Stdin).input())
	if err != nil {
		return usage("%w", err)
	}
	runner, err := child.New(child.Options{Dir: b.location.dir()}) // output that is held must not fill the memory
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	defer runner.Close()
	return b.work(ctx, template, runner)
}

// onStdin is the flag that says how a command gets its payload.
type onStdin bool

func (s onStdin) input() child.Input {
	if s {
		return child.Stdin
	}
	return child.Argument
}

// work reads the input, if there is any, and handles lines until all are done or somebody interrupts.
func (b *batch) work(ctx context.Context, template child.Template, runner *child.Runner) error {
	out := b.app.console()
	tally := newTally(b)
	stopping, abort, release := stopSignals(ctx, func(os.Signal) {
		out.say("interrupted: what runs is finished, nothing more begins; once more aborts")
	})
	defer release()
	working, finish := context.WithCancelCause(stopping)
	defer finish(nil)
	out.broken = func(err error) { finish(err) } // this process cannot run lines, or print what they wrote
	// Whatever ends the work lets go of the batch too: its handler is one of those that the worker waits for.
	defer context.AfterFunc(working, b.giveBack)()

	reading := b.startReading(stopping, out)
	commander := &commander{template: template, runner: runner, out: out, stopping: stopping.Done()}
	worker, err := b.newWorker(commander, reading, abortable(abort))
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(working) }()

	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWatching()
	progress := newProgress(b, out, tally)
	followed := make(chan error, 1)
	go func() { followed <- progress.follow(watching, reading, func() { finish(nil) }) }()

	err = <-ended // by finish, by an interrupt, or because it could not go on
	b.giveBack()
	stopWatching()
	err = errors.Join(err, <-followed, reading.err())
	if cause := context.Cause(working); !errors.Is(cause, context.Canceled) {
		err = errors.Join(err, cause)
	}
	return b.conclude(context.WithoutCancel(ctx), out, tally, outcome{err: err, interrupted: stopping.Err() != nil, reading: reading})
}

// Where the end of a process cannot be proven, its silence must do: then its lines are taken back within seconds, since somebody waits for them.
const (
	runHeartbeat    = time.Second
	runReclaimAfter = 5 * time.Second
	runSweeps       = 2 * time.Second
)

// inputHands is how many inputs a process holds at once: its own, and those that were cut off.
const inputHands = 8

// newWorker is the worker of this process: lines up to -j at once, and beside them the batch and its inputs.
func (b *batch) newWorker(c *commander, reading *reading, abortable foundling.Middleware) (*foundling.Worker, error) {
	worker, err := foundling.NewWorker(b.client, foundling.WorkerOptions{
		Concurrency:       b.plan.Jobs + 1 + inputHands,
		PerTopic:          map[string]int{topicLines: b.plan.Jobs, topicBatch: 1, topicInput: inputHands},
		HeartbeatInterval: runHeartbeat,
		ReclaimAfter:      runReclaimAfter,
		ReclaimInterval:   runSweeps,
		ClaimGrace:        foundling.None,
		DrainTimeout:      foundling.None,
		Retention:         foundling.Forever, // lines are known by the beginning of the log; finished batches go whole
	})
	if err != nil {
		return nil, err
	}
	b.lines.Handle(worker, c.handle, abortable)
	b.batches.Handle(worker, b.hold)
	if reading != nil {
		b.inputs.Handle(worker, reading.hold)
	}
	return worker, nil
}
