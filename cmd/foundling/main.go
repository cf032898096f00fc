// Command foundling runs work that must not get lost, and answers from the log what became of it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/foundling-go/foundling/internal/child"
	"github.com/spf13/cobra"
)

func main() {
	child.MaybeWatcher() // this may be the process that ends children when their parent is killed
	os.Exit(execute(context.Background(), &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: os.Getenv}, os.Args[1:]))
}

// app is what every command works with.
type app struct {
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	env    func(string) string

	store string // --store
	batch string // --batch
	json  bool   // --json

	proofless bool // stores are opened as where no proof of death is to be had, see there
}

// execute runs one command line and gives the exit code.
func execute(ctx context.Context, a *app, args []string) int {
	root := newRoot(a)
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	err := root.ExecuteContext(ctx)
	code := codeOf(err)
	var silent *exitError
	switch {
	case err == nil || errors.As(err, &silent) && silent.err == nil:
	case a.json:
		_ = writeJSON(a.stderr, errorDocument(err, code)) // where nobody can hear it, the code says it
	default:
		for line := range strings.SplitSeq(err.Error(), "\n") { // one for each of several errors
			fmt.Fprintf(a.stderr, "foundling: %s\n", oneLine(line))
		}
	}
	return code
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:           "foundling",
		Short:         "Work that must not get lost, and must be accounted for",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          usageArgs(cobra.NoArgs),
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmd.ValidateFlagGroups(); err != nil { // done again by cobra, whose error has no exit code
				return usage("%w", err)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	root.PersistentFlags().StringVar(&a.store, "store", "", "the store: `FILE` or sqlite:FILE (default $FOUNDLING_STORE)")
	root.PersistentFlags().StringVar(&a.batch, "batch", "", "the store of the batch `NAME`, which foundling run made")
	root.MarkFlagsMutuallyExclusive("store", "batch")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage("%w", err) })
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(
		newRun(a),
		newEnqueue(a), newWork(a),
		newStatus(a), newTopics(a), newWorkers(a), newLocks(a), newTrace(a), newEvents(a),
		newSweep(a), newRequeue(a), newRedrive(a), newCancel(a), newReleaseLock(a),
		newVerify(a), newMachines(a), newVersion(a),
		newDemo(a), newDemoWorker(a),
	)
	for _, cmd := range root.Commands() {
		cmd.Args = usageArgs(cmd.Args)
	}
	return root
}

// usageArgs makes wrong arguments a usage error.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	if check == nil {
		check = cobra.NoArgs
	}
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usage("%w; see %s --help", err, cmd.CommandPath())
		}
		return nil
	}
}

// logger is where the library's log of a command goes: warnings and errors, to standard error.
func (a *app) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
