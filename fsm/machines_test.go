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
					nextVersion, to := a.steps[i].At()
					if !life.Leads(from, event.Type(), to) || nextVersion != version+1 {
						t.Errorf("%s of a %s %s gives %s: evolves from %s v%d to %s v%d, which the table does not have",
							a.label, state, life.Kind(), event.Type(), from, version, to, nextVersion)
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

// leafRules are the methods by which a command to one entity says what follows.
var leafRules = []string{"decideMessage", "decideTopic", "event", "decideLock", "decideLeader", "decideClock"}

// The cases above leave out no command of the package.
func TestEveryCommandIsTried(t *testing.T) {
	tried := map[string]bool{}
	for _, life := range fsm.Lifecycles() {
		if life.Kind() == events.KindSweep || life.Kind() == events.KindLog {
			continue // which have one command each, decided without a leaf rule
		}
		for _, a := range attempts(life.Kind(), events.Absent) {
			tried[a.command] = true
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{} // one command may be given to several kinds
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || !slices.Contains(leafRules, fn.Name.Name) {
				continue
			}
			command := fn.Recv.List[0].Type.(*ast.Ident).Name
			if found[command] = true; !tried[command] {
				t.Errorf("%s is a command and is not among the cases", command)
			}
		}
	}
	if len(found) != len(tried) {
		t.Errorf("%d commands in the source, %d among the cases", len(found), len(tried))
	}
}

// The dense arrays say what looplab's own machine does, for every state and every type, also of the branches.
func TestArrayAndLooplabAgree(t *testing.T) {
	branches := 0
	for _, life := range fsm.Lifecycles() {
		for from := range events.State(96) {
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
			var listed []string
			for _, typ := range events.Types() {
				plain, branch := edgesOf(life, from, typ)
				if plain != events.Absent {
					listed = append(listed, typ.String())
				}
				if branch != events.Absent {
					listed = append(listed, typ.String()+fsm.OthersHold)
					branches++
				}
				if to, ok := life.Next(from, typ); to != plain || ok != (plain != events.Absent) {
					t.Errorf("%s: %s from %s: Next says %s, %v, the edges %s", life.Kind(), typ, from, to, ok, plain)
				}
				looplabAgrees(t, life, from, typ.String(), plain)
				looplabAgrees(t, life, from, typ.String()+fsm.OthersHold, branch)
			}
			slices.Sort(listed)
			if !slices.Equal(available, listed) {
				t.Errorf("%s from %s: looplab has %v, the arrays %v", life.Kind(), from, available, listed)
			}
		}
	}
	if branches == 0 {
		t.Error("no table has a branch, so this says nothing of them")
	}
}

// edgesOf is where the arrays lead, by the plain edge and by the branch; absent is nowhere.
func edgesOf(life *fsm.Lifecycle, from events.State, typ events.Type) (plain, branch events.State) {
	for _, e := range life.Edges() {
		switch {
		case e.From != from || e.Event != typ:
		case plain == events.Absent:
			plain = e.To
		default:
			branch = e.To
		}
	}
	return plain, branch
}

func looplabAgrees(t *testing.T, life *fsm.Lifecycle, from events.State, event string, want events.State) {
	t.Helper()
	machine := life.Machine(from)
	err := machine.Event(context.Background(), event)
	if errors.As(err, new(lfsm.NoTransitionError)) {
		err = nil // it stays where it is, which looplab calls an error
	}
	if (want != events.Absent) != (err == nil) || err == nil && machine.Current() != want.String() {
		t.Errorf("%s: %s from %s: the array says %s; looplab %s, %v", life.Kind(), event, from, want, machine.Current(), err)
	}
}

// Of two edges only those that the table has are accepted when a record is applied.
func TestLeads(t *testing.T) {
	locks, err := fsm.LifecycleOf(events.KindLock)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		from  events.State
		event events.Type
		to    events.State
		want  bool
	}{
		{events.Held, events.TypeLockReleased, events.Free, true},
		{events.Held, events.TypeLockReleased, events.Held, true},
		{events.Held, events.TypeLockReleased, events.Absent, false},
		{events.Held, events.TypeLockReleased, events.Queued, false},
		{events.Free, events.TypeLockReleased, events.Free, false},
		{events.Free, events.TypeLockAcquired, events.Held, true},
		{events.Free, events.TypeLockAcquired, events.Free, false},
		{events.Held, events.TypeLockAcquired, events.Absent, false},
		{events.Held, events.TypeLockConfigured, events.Free, false},
		{events.Held, events.TypeMessageClaimed, events.Running, false},
		{200, events.TypeLockReleased, events.Free, false},
		{events.Held, 9999, events.Absent, false},
	}
	for _, tt := range tests {
		if got := locks.Leads(tt.from, tt.event, tt.to); got != tt.want {
			t.Errorf("%s from %s to %s: %v", tt.event, tt.from, tt.to, got)
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
				_, ok := life.Next(state, event.Type())
				switch {
				case !ok && !cmp.Equal(before, next):
					t.Errorf("%s %s: %s is not in the table and makes it %+v", state, life.Kind(), event.Type(), next)
				case ok && (!life.Leads(state, event.Type(), to) || nextVersion != version+1):
					t.Errorf("%s %s: %s makes it %s v%d, which the table does not have", state, life.Kind(), event.Type(), to, nextVersion)
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
