package main

import (
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"
)

// globalFlags are the flags that every command has.
func globalFlags(a *app, root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&a.store, "store", "", "the `STORE`: FILE, sqlite:FILE or postgres://user@host:port/database (default $FOUNDLING_STORE)")
	flags.StringVar(&a.batch, "batch", "", "the store of the batch `NAME`, which foundling run made")
	flags.Var(&a.colors, "color", "colour text: auto, always or never; auto does on a terminal, unless NO_COLOR is set")
	flags.Var(&a.redact, "redact", "hide secrets: values under keys such as password or token, and under these `KEYS`; all hides payloads whole")
	flags.Lookup("redact").NoOptDefVal = noKeys
	flags.BoolVarP(&a.quiet, "quiet", "q", false, "say nothing on standard error but what is wrong")
	flags.BoolVarP(&a.noisy, "verbose", "v", false, "say more on standard error")
	root.MarkFlagsMutuallyExclusive("store", "batch")
	root.MarkFlagsMutuallyExclusive("quiet", "verbose")
	complete(root, "batch", a.batches)
	complete(root, "color", fixed("auto", "always", "never"))
	complete(root, "redact", fixed(redactAll))
}

// noKeys is the value of --redact where it stands alone: a key that is hidden already.
const noKeys = "secrets"

// keys are the values of --redact.
type keys struct {
	given bool
	words []string
}

// String implements pflag.Value.
func (k *keys) String() string { return strings.TrimSpace(strings.Join(k.words, ",")) }

// Set implements pflag.Value.
func (k *keys) Set(words string) error {
	k.given = true
	k.words = append(k.words, strings.Split(words, ",")...)
	return nil
}

// Type implements pflag.Value.
func (*keys) Type() string { return "KEYS" }

// shape makes the screens what the command line asks for. It comes before anything is printed.
func (a *app) shape() {
	if a.redact.given && a.redactor == nil {
		a.redactor = newRedactor(a.redact.words, a.env(redactEnv))
	}
	a.shapeOne(a.stdout, a.raw.stdout)
	a.shapeOne(a.stderr, a.raw.stderr)
}

func (a *app) shapeOne(w, raw io.Writer) {
	s, ok := w.(*screen)
	if !ok {
		return
	}
	s.hide = a.redactor.line
	if a.colored(raw) {
		s.paint = painted
	}
	if !a.forPeople() && a.form() != formatCSV {
		s.escape, s.broken = escapeJSON, brokenJSON
	}
}

// unheard reports whether nobody hears what a command prints any more, so that it need not go on for that alone.
func (a *app) unheard() bool {
	s, ok := a.stdout.(*screen)
	return ok && s.closed()
}

// note says something on standard error that is not about what is wrong. Objects say it themselves.
func (a *app) note(format string, args ...any) {
	if !a.quiet && a.forPeople() {
		fmt.Fprintf(a.stderr, format+"\n", args...)
	}
}

// logger is where the library's log of a command goes: to standard error.
func (a *app) logger() *slog.Logger { return a.loggerTo(a.stderr, slog.LevelWarn) }

// loggerTo is a log of the given level and worse, or of what the command line asks for.
func (a *app) loggerTo(w io.Writer, level slog.Level) *slog.Logger {
	switch {
	case a.noisy:
		level = slog.LevelDebug
	case a.quiet:
		level = slog.LevelError
	}
	o := &slog.HandlerOptions{Level: level}
	if a.objects() {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
