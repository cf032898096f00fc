package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/store/sqlite"
	"github.com/spf13/cobra"
)

// hostile is a text that would clear a terminal, colour it, turn its direction, ring its bell and forge a line, if it were printed as it is.
const hostile = "\x1b[2J\x1b[31m\u202eevil\u2066\u200b\r\nINJECTED \u009b2J\u0085\x07\x00\xff"

// odd is what a name may be at its worst: all of it can be printed.
const odd = `-x "$(touch here)" 'q' \x1b; ✔`

// newHostileOffice is a store in which every text that others write is hostile.
func newHostileOffice(t *testing.T) *office {
	t.Helper()
	o := &office{t: t, path: t.TempDir() + "/store.db", ids: map[string]foundling.ID{}}
	s, err := sqlite.Open(t.Context(), o.path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	client, err := foundling.NewClient(s, foundling.ClientOptions{Actor: hostile, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	mail := foundling.NewTopic[[]byte](odd, foundling.TopicOptions{Limit: 1, MaxAttempts: 1})
	o.enqueue(client, "bad", mail.Draft([]byte(hostile), foundling.EnqueueOptions{Key: odd}))
	o.enqueue(client, "good", mail.Draft([]byte(hostile), foundling.EnqueueOptions{}))
	worker, err := foundling.NewWorker(client, foundling.WorkerOptions{Concurrency: 1, Sweeps: foundling.SweepsOff, Program: hostile})
	if err != nil {
		t.Fatal(err)
	}
	good, bad := o.ids["good"], o.ids["bad"]
	held, over := make(chan struct{}), make(chan struct{})
	mail.Handle(worker, func(_ context.Context, m foundling.Message[[]byte]) error {
		switch m.ID {
		case bad:
			return errors.New(hostile)
		case good:
			return m.SetResult(hostile)
		}
		close(held)
		<-over
		return nil
	})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()
	t.Cleanup(func() { stop(); close(over); <-done })
	for _, name := range []string{"bad", "good"} {
		if _, err := client.Wait(t.Context(), o.ids[name]); err != nil {
			t.Fatal(err)
		}
	}
	o.enqueue(client, "held", mail.Draft([]byte(hostile), foundling.EnqueueOptions{Lock: odd}))
	<-held
	o.enqueue(client, "gone", mail.Draft([]byte(hostile), foundling.EnqueueOptions{Lock: odd}))
	o.enqueue(client, "open", mail.Draft([]byte(hostile), foundling.EnqueueOptions{Lock: odd}))
	err = errors.Join(client.Cancel(t.Context(), hostile, o.ids["gone"]), client.PauseTopic(t.Context(), odd, hostile),
		client.ConfigureLock(t.Context(), odd, foundling.LockSettings{Permits: 2, Reason: hostile}))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// everyCommand is a command line or more for every command that prints what others wrote, without the form.
func everyCommand() map[string][][]string {
	why := []string{"--reason", hostile, "--yes"}
	return map[string][][]string{
		"status":           {{"status"}},
		"topics":           {{"topics"}, {"topics", "--", odd}, {"topics", hostile}},
		"topics set":       {append([]string{"topics", "set", "--limit", "7"}, append(slices.Clone(why), "--", odd)...)},
		"messages":         {{"messages", "--state", "all"}, {"messages", "@bad"}, {"messages", "@good"}, {"messages", "--topic", hostile}, {"messages", hostile}},
		"workers":          {{"workers"}, {"workers", hostile}},
		"locks":            {{"locks"}, {"locks", "--", odd}, {"locks", hostile}},
		"trace":            {{"trace", "@bad"}, {"trace", "@good"}, {"trace", "@bad", "--events"}, {"trace", "@gone"}, {"trace", hostile}},
		"events":           {{"events"}, {"events", "--type", hostile}, {"events", "--after", hostile}, {"events", "--topic", odd}},
		"sweep":            {{"sweep", "--dry-run"}, {"sweep", "--orphan-count", hostile}},
		"requeue":          {append([]string{"requeue", "@held", "@bad"}, why...)},
		"redrive":          {append([]string{"redrive", "@bad", "@held"}, why...), append([]string{"redrive", "--topic", hostile}, why...)},
		"cancel":           {append([]string{"cancel", "@open", "@good"}, why...)},
		"release-lock":     {append([]string{"release-lock"}, append(slices.Clone(why), "--", odd)...), append([]string{"release-lock", hostile}, why...)},
		"resume":           {append([]string{"resume"}, append(slices.Clone(why), "--", odd)...), append([]string{"resume", hostile}, why...)},
		"pause":            {append([]string{"pause"}, append(slices.Clone(why), "--", odd)...), append([]string{"pause", hostile}, why...)},
		"erase":            {append([]string{"erase", "@good", "@held"}, why...), append([]string{"erase", hostile}, why...)},
		"prune":            {append([]string{"prune", "--older-than", "1h"}, why...), {"prune", "--older-than", hostile}},
		"projections":      {{"projections"}},
		"projections drop": {{"projections", "drop", hostile}, {"projections", "drop", "totals", "--yes"}},
		"verify":           {{"verify"}, {"verify", "--store", "/nowhere/" + hostile}},
		"migrate":          {{"migrate"}, {"migrate", hostile}},
		"machines":         {{"machines"}, {"machines", hostile}},
		"version":          {{"version"}, {"version", hostile}},
		"enqueue":          {{"enqueue", hostile}, {"enqueue", "mail", "--key", odd}, {"enqueue", "mail", "/nowhere/" + hostile}},
		"schema":           {{"schema", hostile}},
		"completion":       {{"completion", hostile}},
	}
}

// elsewhere are commands whose output is tried by tests of their own: they start other processes.
func elsewhere() []string { return []string{"run", "work", "demo", "demo-worker", "help"} }

// Whatever others wrote, no command prints anything that a terminal obeys, or a line that it did not mean to print, in whichever form.
func TestWhatOthersWroteIsHarmlessInEveryOutput(t *testing.T) {
	o := newHostileOffice(t)
	lines := everyCommand()
	var check func(*cobra.Command, string)
	check = func(cmd *cobra.Command, above string) {
		for _, c := range cmd.Commands() {
			path := strings.TrimSpace(above + " " + c.Name())
			if lines[path] == nil && !slices.Contains(elsewhere(), path) {
				t.Errorf("no command line for %s", path)
			}
			check(c, path)
		}
	}
	check(newRoot(&app{env: func(string) string { return "" }}), "")
	for _, form := range []string{"table", "wide", "json", "jsonl", "csv"} {
		for _, name := range slices.Sorted(maps.Keys(lines)) {
			for _, args := range lines[name] {
				if form != "table" && (args[0] == "schema" || args[0] == "completion") {
					continue
				}
				o.tryHostile(args, form)
			}
		}
	}
}

func (o *office) tryHostile(args []string, form string) {
	o.t.Helper()
	command := slices.Clone(args)
	if form != "table" {
		command = slices.Insert(command, 1, "-o", form)
		if len(args) > 1 && args[0] == "topics" && args[1] == "set" {
			command = slices.Insert(slices.Clone(args), 2, "-o", form)
		}
	}
	for i, arg := range command {
		if name, ok := strings.CutPrefix(arg, "@"); ok {
			command[i] = o.ids[name].String()
		}
	}
	var out, errout bytes.Buffer
	a := &app{stdin: strings.NewReader(hostile + "\n"), stdout: &out, stderr: &errout, env: func(name string) string {
		return map[string]string{"FOUNDLING_STORE": "sqlite:" + o.path, "USER": hostile}[name]
	}}
	execute(o.t.Context(), a, command)
	for stream, text := range map[string]string{"output": out.String(), "error": errout.String()} {
		if what := harm(text); what != "" {
			o.t.Errorf("%q: standard %s: %s in\n%q", command, stream, what, text)
		}
	}
	if form == "json" && out.Len() > 0 {
		if err := validate(out.Bytes()); err != nil {
			o.t.Errorf("%q: %v\n%s", command, err, out.String())
		}
	}
	if (form == "json" || form == "jsonl") && errout.Len() > 0 {
		for line := range strings.Lines(errout.String()) {
			if strings.HasPrefix(line, `{"note":`) || strings.HasPrefix(line, `{"time":`) { // the library's log
				continue
			}
			if err := validate([]byte(line)); err != nil {
				o.t.Errorf("%q: standard error: %v\n%s", command, err, errout.String())
			}
		}
	}
}

// harm is what is wrong with a text on its way to a terminal; empty where nothing is.
func harm(text string) string {
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			return fmt.Sprintf("the byte %#x", text[i])
		case r != '\n' && r != '\t' && !strconv.IsPrint(r):
			return fmt.Sprintf("the character %U", r)
		}
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimLeft(line, " ,"), "INJECTED") {
			return "a forged line"
		}
	}
	return ""
}

// Colour is put on where everything else has been taken out.
func TestColorIsOnlyOurs(t *testing.T) {
	o := newHostileOffice(t)
	for _, args := range [][]string{{"status", "--color=always"}, {"trace", o.ids["bad"].String(), "--color=always"}} {
		o.run(strings.Join(args, " "))
		text := o.out.String() + o.err.String()
		if args[0] == "status" && !strings.Contains(text, yellow+"▲ warning") {
			t.Errorf("no colour in %q", text)
		}
		for _, ours := range []string{green, red, yellow, blue, faint, plain} {
			text = strings.ReplaceAll(text, ours, "")
		}
		if what := harm(text); what != "" {
			t.Errorf("%q: %s in\n%q", args, what, text)
		}
	}
}

// brokenWriter takes nothing.
type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestAScreenKeepsCharactersWholeOverWrites(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out)
	for _, b := range []byte("grün \x1b✔ \u009b€\nrest ü") { // byte for byte, as a buffer may cut it
		if _, err := s.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	if want := "grün \\x1b✔ \\u009b€\n"; out.String() != want {
		t.Errorf("before the flush: %q, want %q", out.String(), want)
	}
	if err := s.Flush(); err != nil || !strings.HasSuffix(out.String(), "\nrest ü") {
		t.Errorf("%v, %q", err, out.String())
	}
	if _, err := newScreen(brokenWriter{}).Write([]byte("a\n")); err == nil {
		t.Error("an output that could not be written is no error")
	}
}
