// Command foundling runs work that must not get lost, and answers from the log what became of it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/foundling-go/foundling/internal/child"
	"github.com/spf13/cobra"
)

func main() {
	child.MaybeWatcher() // this may be the process that ends children when their parent is killed
	hearPipes()
	os.Exit(execute(context.Background(), &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: os.Getenv}, os.Args[1:]))
}

// app is what every command works with.
type app struct {
	stdin  io.Reader
	stdout io.Writer // a screen, while a command runs
	stderr io.Writer // a screen, while a command runs
	env    func(string) string
	raw    streams
	args   []string

	store  string // --store
	batch  string // --batch
	format format // --output
	json   bool   // --json
	rows   int    // --rows; 0 is all
	colors colors // --color
	redact keys   // --redact
	quiet  bool   // --quiet
	noisy  bool   // --verbose

	redactor  *redactor // nil hides nothing but what is hidden always
	proofless bool      // stores are opened as where no proof of death is to be had, see there
}

// streams are where the output of children goes, which is not a command's own.
type streams struct{ stdout, stderr io.Writer }

// execute runs one command line and gives the exit code.
func execute(ctx context.Context, a *app, args []string) int {
	out, errout := newScreen(a.stdout), newScreen(a.stderr)
	a.raw, a.args = streams{a.stdout, a.stderr}, args
	a.stdout, a.stderr = out, errout
	root := newRoot(a)
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	if completing(args) {
		root.SetOut(a.raw.stdout) // the shell's, who reads each line to its tab; what is suggested is made harmless where it is found
		root.SetErr(io.Discard)
	}
	err := root.ExecuteContext(ctx)
	if failed := out.Flush(); err == nil && failed != nil {
		err = &exitError{exitStore, failed}
	}
	code := codeOf(err)
	a.tell(err, code)
	_ = errout.Flush() // where nobody can hear it, the code says it
	return code
}

// tell says why a command ended as it did, unless that has been said.
func (a *app) tell(err error, code int) {
	var silent *exitError
	switch {
	case err == nil || errors.As(err, &silent) && silent.err == nil:
	case a.objects() || wantsObjects(a.args):
		a.shape()
		_ = writeJSON(a.stderr, errorDocument(err, code))
	default:
		for line := range strings.SplitSeq(err.Error(), "\n") { // one for each of several errors
			fmt.Fprintf(a.stderr, "foundling: %s\n", oneLine(line))
		}
	}
}

// wantsObjects reports whether a command line that could not be understood asks for JSON all the same.
func wantsObjects(args []string) bool {
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i]
	}
	for i, arg := range args {
		value, given := strings.CutPrefix(arg, "--output=")
		if short, ok := strings.CutPrefix(arg, "-o"); ok && !given {
			value, given = strings.TrimPrefix(short, "="), short != ""
		}
		if !given && i > 0 && (args[i-1] == "-o" || args[i-1] == "--output") {
			value = arg
		}
		if arg == "--json" || value == string(formatJSON) || value == string(formatJSONL) {
			return true
		}
	}
	return false
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
			a.shape()
			return a.checkRows()
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	globalFlags(a, root)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage("%w", err) })
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(newHelp())
	root.AddCommand(
		newRun(a),
		newEnqueue(a), newWork(a),
		newStatus(a), newTopics(a), newMessages(a), newWorkers(a), newLocks(a), newTrace(a), newEvents(a),
		newSweep(a), newRequeue(a), newRedrive(a), newCancel(a), newReleaseLock(a),
		newPause(a), newResume(a), newErase(a), newPrune(a), newProjections(a),
		newVerify(a), newMigrate(a), newMachines(a), newSchema(a), newCompletion(a), newVersion(a),
		newDemo(a), newDemoWorker(a),
	)
	strict(root)
	return root
}

// newHelp is cobra's own command, but that it takes what is no command for a mistake.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Say how a command is used",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || found == cmd.Root() && len(rest) > 0 {
				return usage("no command %s: see %s --help", quoted([]byte(strings.Join(args, " "))), cmd.Root().Name())
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}

// strict makes wrong arguments of a command, and of those below it, a usage error.
func strict(cmd *cobra.Command) {
	for _, inner := range cmd.Commands() {
		inner.Args = usageArgs(inner.Args)
		strict(inner)
	}
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
