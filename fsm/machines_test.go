package fsm_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/corpus"
	"github.com/google/go-cmp/cmp"
	lfsm "github.com/looplab/fsm"
)

var update = flag.Bool("update", false, "write the golden files of the machines")

// golden compares text with a golden file.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("..", "testdata", "machines", name)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s, -update writes it (-file +made):\n%s", name, diff)
	}
}

// The tables that readers see are made by running Decide, so they cannot lie.
func TestTables(t *testing.T) {
	for _, life := range fsm.Lifecycles() {
		var text strings.Builder
		fmt.Fprintf(&text, "# What Decide answers to every command in every state of a %s.\n", life.Kind())
		text.WriteString("# Made by running it: go test ./fsm -run TestTables -update\n\n")
		w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "STATE\tCOMMAND\tANSWER")
		for _, state := range life.States() {
			for _, a := range attempts(life.Kind(), state) {
				fmt.Fprintf(w, "%s\t%s\t%s\n", state, a.label, a.answer())
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		golden(t, life.Kind().String()+".txt", text.String())
	}
}

func (a attempt) answer() string {
	var r *fsm.Refusal
	switch {
	case errors.As(a.err, &r):
		return "refused: " + string(r.Reason)
	case a.err != nil:
		return a.err.Error()
	case len(a.events) == 0:
		return "changes nothing"
	}
	var parts []string
	for i, event := range a.events {
		_, state := a.steps[i].At()
		parts = append(parts, fmt.Sprintf("%s → %s", event.Type(), state))
	}
	return strings.Join(parts, ", ")
}

func TestDiagrams(t *testing.T) {
	for _, life := range fsm.Lifecycles() {
		mermaid, err := life.Mermaid()
		if err != nil {
			t.Fatal(err)
		}
		golden(t, life.Kind().String()+".mmd", mermaid)
		golden(t, life.Kind().String()+".dot", life.DOT())
	}
}

// Whatever Decide gives is in the table, Evolve goes where the table says, and every row of the table is reached by some command.
func TestTableDecideAndEvolveAgree(t *testing.T) {
	for _, life := range fsm.Lifecycles() {
		reached := map[fsm.Edge]bool{}
		for _, state := range life.States() {
			for _, a := range attempts(life.Kind(), state) {
				version, from := a.before.At()
				if from != state {
					t.Fatalf("the %s to try is %s, want %s", life.Kind(), from, state)
				}
				for i, event := range a.events {
					want, ok := life.Next(from, event.Type())
					nextVersion, to := a.steps[i].At()
					if !ok || to != want || nextVersion != version+1 {
						t.Errorf("%s of a %s %s gives %s: evolves from %s v%d to %s v%d, the table says %s, %v",
							a.label, state, life.Kind(), event.Type(), from, version, to, nextVersion, want, ok)
					}
					reached[fsm.Edge{From: from, Event: event.Type(), To: to}] = true
					version, from = nextVersion, to
				}
				if from == events.Orphaned && state != events.Orphaned {
					t.Errorf("%s of a %s %s lets it rest orphaned", a.label, state, life.Kind())
				}
			}
		}
		for _, edge := range life.Edges() {
			if !reached[edge] {
				t.Errorf("no command leads a %s by %s from %s to %s", life.Kind(), edge.Event, edge.From, edge.To)
			}
		}
	}
}

// The cases above leave out no command of the package.
func TestEveryCommandIsTried(t *testing.T) {
	tried := map[string]bool{}
	for _, life := range fsm.Lifecycles() {
		for _, a := range attempts(life.Kind(), events.Absent) {
			tried[a.command] = true
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || !slices.Contains([]string{"decideMessage", "decideTopic", "event"}, fn.Name.Name) {
				continue
			}
			found++
			if command := fn.Recv.List[0].Type.(*ast.Ident).Name; !tried[command] {
				t.Errorf("%s is a command and is not among the cases", command)
			}
		}
	}
	if found != len(tried) {
		t.Errorf("%d commands in the source, %d among the cases", found, len(tried))
	}
}

// The dense array says what looplab's own machine does, for every state and every type.
func TestArrayAndLooplabAgree(t *testing.T) {
	for _, life := range fsm.Lifecycles() {
		for from := range events.State(70) {
			if !from.Known() {
				for _, typ := range events.Types() {
					if to, ok := life.Next(from, typ); ok {
						t.Errorf("%s: %s leads from unknown %s to %s", life.Kind(), typ, from, to)
					}
				}
				continue
			}
			available := life.Machine(from).AvailableTransitions()
			slices.Sort(available)
			var next []string
			for _, typ := range events.Types() {
				to, ok := life.Next(from, typ)
				if ok {
					next = append(next, typ.String())
				}
				machine := life.Machine(from)
				err := machine.Event(context.Background(), typ.String())
				if errors.As(err, new(lfsm.NoTransitionError)) {
					err = nil // it stays where it is, which looplab calls an error
				}
				if ok != (err == nil) || ok && machine.Current() != to.String() {
					t.Errorf("%s: %s from %s: the array says %s, %v; looplab %s, %v", life.Kind(), typ, from, to, ok, machine.Current(), err)
				}
			}
			slices.Sort(next)
			if !slices.Equal(available, next) {
				t.Errorf("%s from %s: looplab has %v, the array %v", life.Kind(), from, available, next)
			}
		}
	}
}

// A fold meets whatever a log holds: no event makes Evolve panic, and one that the table lacks leaves the value alone.
func TestEvolveIsTotal(t *testing.T) {
	all := []events.Event{&events.Unknown{}, &events.Unknown{Code: 200, Body: []byte("{}")}, &events.Unknown{Code: 9999}}
	for _, s := range corpus.Samples() {
		all = append(all, s.Event)
	}
	for _, life := range fsm.Lifecycles() {
		for _, state := range life.States() {
			for _, event := range all {
				before := attempts(life.Kind(), state)[0].before
				version, _ := before.At()
				next := evolve(before, event)
				nextVersion, to := next.At()
				want, ok := life.Next(state, event.Type())
				switch {
				case !ok && !cmp.Equal(before, next):
					t.Errorf("%s %s: %s is not in the table and makes it %+v", state, life.Kind(), event.Type(), next)
				case ok && (to != want || nextVersion != version+1):
					t.Errorf("%s %s: %s makes it %s v%d, want %s v%d", state, life.Kind(), event.Type(), to, nextVersion, want, version+1)
				}
			}
		}
	}
}

func TestLifecycleOf(t *testing.T) {
	for _, kind := range events.Kinds() {
		life, err := fsm.LifecycleOf(kind)
		if err != nil || life.Kind() != kind {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if _, err := fsm.LifecycleOf(events.KindNone); err == nil {
		t.Error("no kind has a lifecycle")
	}
	life := fsm.Lifecycles()[0]
	if to, ok := life.Next(200, events.TypeMessageClaimed); ok || to != events.Absent {
		t.Errorf("from beyond the array: %s, %v", to, ok)
	}
	if to, ok := life.Next(events.Queued, 9999); ok || to != events.Absent {
		t.Errorf("by a type beyond the array: %s, %v", to, ok)
	}
}
