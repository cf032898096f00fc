package events_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/foundling-go/foundling/events"
)

// constants are the values of the constants of a type, as they stand in a source file, by name.
func constants(t *testing.T, file, typ string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if id, ok := spec.Type.(*ast.Ident); !ok || id.Name != typ {
			return true
		}
		for i, name := range spec.Names {
			found[name.Name] = types.ExprString(spec.Values[i])
		}
		return true
	})
	if len(found) < 2 {
		t.Fatalf("%s: found constants %v of type %s only", file, found, typ)
	}
	return found
}

// numbers is constants for whole numbers, each of which must be there once.
func numbers(t *testing.T, file, typ string) map[string]int {
	t.Helper()
	found, taken := map[string]int{}, map[int]string{}
	for name, value := range constants(t, file, typ) {
		n, err := strconv.Atoi(value)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if other, ok := taken[n]; ok {
			t.Errorf("%s and %s are both %d", name, other, n)
		}
		found[name], taken[n] = n, name
	}
	return found
}

func TestEveryReasonIsKnown(t *testing.T) {
	taken := map[string]string{}
	for name, value := range constants(t, "state.go", "Reason") {
		word, err := strconv.Unquote(value)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if other, ok := taken[word]; ok {
			t.Errorf("%s and %s are both %q", name, other, word)
		}
		taken[word] = name
		if !events.Reason(word).Known() {
			t.Errorf("%s: %q is not in the table of reasons", name, word)
		}
	}
	if events.Reason("because").Known() || !events.Reason("").Known() {
		t.Error("want a word outside the set unknown, and none at all known")
	}
}

func TestEveryStateIsKnown(t *testing.T) {
	words := map[string]string{}
	for name, n := range numbers(t, "state.go", "State") {
		state := events.State(n)
		if !state.Known() {
			t.Errorf("%s: %d is not in the table of states", name, n)
		}
		if other, ok := words[state.String()]; ok {
			t.Errorf("%s and %s are both called %s", name, other, state)
		}
		words[state.String()] = name
	}
	if s := events.State(99); s.Known() || s.String() != "state(99)" {
		t.Errorf("state 99: known %v, called %s", s.Known(), s)
	}
}

func TestEveryKindIsKnown(t *testing.T) {
	found := numbers(t, "entity.go", "Kind")
	for name, n := range found {
		if kind := events.Kind(n); kind != events.KindNone && !slices.Contains(events.Kinds(), kind) {
			t.Errorf("%s: %d is not in the list of kinds", name, n)
		}
	}
	words := map[string]bool{}
	for _, kind := range events.Kinds() {
		words[kind.String()] = true
	}
	if len(words) != len(found)-1 {
		t.Errorf("kinds are called %v, there are %v", words, found)
	}
	if word := events.Kind(99).String(); word != "kind(99)" {
		t.Errorf("kind 99 is called %s", word)
	}
}

func TestEveryTypeIsKnown(t *testing.T) {
	found := numbers(t, "type.go", "Type")
	all := events.Types()
	if len(found) != len(all) || !slices.IsSorted(all) {
		t.Errorf("%d constants, %d types, want as many, in the order of their numbers: %v", len(found), len(all), all)
	}
	for name, n := range found {
		typ := events.Type(n)
		if !typ.Known() || !slices.Contains(all, typ) {
			t.Errorf("%s: %d is not in the table of types", name, n)
			continue
		}
		parsed, err := events.ParseType(typ.String())
		if err != nil || parsed != typ {
			t.Errorf("%s: %q is parsed as %v, %v", name, typ, parsed, err)
		}
		if typ.Kind() == events.KindNone || typ.Schema() < 1 {
			t.Errorf("%s: kind %s, schema %d", name, typ.Kind(), typ.Schema())
		}
		still := []events.Type{events.TypeMessageRefused, events.TypeMessageErased, events.TypeLockRefused}
		if typ.Moves() == slices.Contains(still, typ) {
			t.Errorf("%s: moves %v", name, typ.Moves())
		}
		// What says all of its entity's state is a snapshot and moves, as a fold must know which version it has.
		if told := typ == events.TypeLogPruned || strings.HasSuffix(typ.String(), ".snapshotted"); typ.Snapshots() != told || told && !typ.Moves() {
			t.Errorf("%s: snapshots %v, moves %v", name, typ.Snapshots(), typ.Moves())
		}
	}
}

func TestUnknownType(t *testing.T) {
	for _, typ := range []events.Type{0, 200, 9999} {
		if typ.Known() || typ.Moves() || typ.Kind() != events.KindNone || typ.Schema() != 0 {
			t.Errorf("%s: known %v, moves %v, kind %s, schema %d", typ, typ.Known(), typ.Moves(), typ.Kind(), typ.Schema())
		}
		if _, err := events.ParseType(typ.String()); err == nil {
			t.Errorf("%s: parsed", typ)
		}
	}
}

func TestLockPolicies(t *testing.T) {
	for _, p := range []events.LockPolicy{events.WaitForLock, events.SkipIfLocked} {
		if got, err := events.ParseLockPolicy(p.String()); err != nil || got != p {
			t.Errorf("%s: parsed as %v, %v", p, got, err)
		}
	}
	if n := len(constants(t, "state.go", "LockPolicy")); n != 2 {
		t.Errorf("%d policies, this test knows 2", n)
	}
	if p, err := events.ParseLockPolicy(""); err != nil || p != events.WaitForLock {
		t.Errorf("no policy is %v, %v", p, err)
	}
	if _, err := events.ParseLockPolicy("steal"); err == nil {
		t.Error("steal is parsed")
	}
	if word := events.LockPolicy(9).String(); word != "policy(9)" {
		t.Errorf("policy 9 is called %s", word)
	}
}

// The refusals of a sweep are the reasons that a sweep.refused can have, each with a place of its own among the labels.
func TestSweepRefusals(t *testing.T) {
	seen := map[events.Reason]bool{}
	for _, reason := range events.SweepRefusals() {
		if seen[reason] || !reason.Known() || reason == "" {
			t.Errorf("refusal %q: known %t, twice %t", reason, reason.Known(), seen[reason])
		}
		seen[reason] = true
	}
	if len(seen) != 5 {
		t.Errorf("%d refusals, want the five guards: %v", len(seen), events.SweepRefusals())
	}
}

func TestPriorities(t *testing.T) {
	for _, p := range events.Priorities() {
		if got, err := events.ParsePriority(p.String()); err != nil || got != p {
			t.Errorf("%s: parsed as %v, %v", p, got, err)
		}
	}
	if !slices.IsSorted(events.Priorities()) || len(events.Priorities()) != len(constants(t, "state.go", "Priority")) {
		t.Errorf("priorities are %v", events.Priorities())
	}
	if p, err := events.ParsePriority(""); err != nil || p != events.Normal {
		t.Errorf("no priority is %v, %v", p, err)
	}
	if _, err := events.ParsePriority("urgent"); err == nil {
		t.Error("urgent is parsed")
	}
	if word := events.Priority(9).String(); word != "priority(9)" {
		t.Errorf("priority 9 is called %s", word)
	}
}
