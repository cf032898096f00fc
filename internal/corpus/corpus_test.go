package corpus_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/corpus"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what the generator makes into the golden file")

var golden = filepath.Join("..", "..", "testdata", "events", "corpus.txt")

func read(t *testing.T) []entry {
	t.Helper()
	text, err := os.ReadFile(golden)
	if err != nil && !*update {
		t.Fatal(err)
	}
	return parse(string(text))
}

// The file is exactly what the generator makes, beside released entries of schema versions that are no longer written.
func TestGoldenFile(t *testing.T) {
	var list []entry
	for _, s := range corpus.Samples() {
		e, err := made(s)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	merged, changed := merge(read(t), list)
	for _, name := range changed {
		t.Errorf("%s is released and would be stored otherwise now: give the type a new schema version", name)
	}
	text := header
	for _, e := range merged {
		text += "\n" + e.String()
	}
	if *update && len(changed) == 0 {
		if err := os.WriteFile(golden, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	was, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(was), text); diff != "" {
		t.Errorf("the generator makes another file, -update writes it (-file +made):\n%s", diff)
	}
}

// Whatever was stored once decodes, prints and evolves as it did then, read from the file alone.
func TestStoredFormsHold(t *testing.T) {
	for _, e := range read(t) {
		stored := e.stored(t)
		commit := corpus.Commit()
		r, err := stored.Decode(&commit)
		if err != nil {
			t.Errorf("%s: %v", e.name, err)
			continue
		}
		if _, unknown := r.Event.(*events.Unknown); unknown {
			t.Errorf("%s: decodes to an unknown event", e.name)
			continue
		}
		if stored.Schema == stored.Type.Schema() {
			again := events.Encode(r.Entity, r.Transition)
			again.Position = stored.Position
			if diff := cmp.Diff(stored, again); diff != "" {
				t.Errorf("%s: encoded again (-file +again):\n%s", e.name, diff)
			}
		}
		if got, want := corpus.Names().Line(r), e.value(t, "line"); got != want {
			t.Errorf("%s: line\n%s\nwant\n%s", e.name, got, want)
		}
		after, err := fsm.Apply(e.held(t, "before"), r)
		if err != nil {
			t.Errorf("%s: %v", e.name, err)
			continue
		}
		if diff := cmp.Diff(e.held(t, "after"), after); diff != "" {
			t.Errorf("%s: evolves (-file +now):\n%s", e.name, diff)
		}
	}
}

// Every type has its samples, and in the file a stored form of every schema version that was ever written.
func TestEveryTypeHasSamples(t *testing.T) {
	full, minimal, stored := map[events.Type]corpus.Sample{}, map[events.Type]bool{}, map[events.Type]map[int]bool{}
	for _, s := range corpus.Samples() {
		if strings.Contains(s.Name, " full ") {
			full[s.Event.Type()] = s
		} else {
			minimal[s.Event.Type()] = true
		}
	}
	for _, e := range read(t) {
		s := e.stored(t)
		if stored[s.Type] == nil {
			stored[s.Type] = map[int]bool{}
		}
		stored[s.Type][s.Schema] = true
	}
	for _, typ := range events.Types() {
		s, ok := full[typ]
		if !ok || !minimal[typ] {
			t.Errorf("%s: package corpus has no full and minimal sample", typ)
			continue
		}
		if path := zero(reflect.ValueOf(s.Event).Elem(), typ.String()); path != "" {
			t.Errorf("the full sample leaves %s zero", path)
		}
		for schema := 1; schema <= typ.Schema(); schema++ {
			if !stored[typ][schema] {
				t.Errorf("%s: no stored form of schema version %d", typ, schema)
			}
		}
	}
}

// zero names the first zero field in a value.
func zero(v reflect.Value, path string) string {
	if v.Kind() == reflect.Struct && v.Type().PkgPath() != "time" {
		for i := range v.NumField() {
			if found := zero(v.Field(i), path+"."+v.Type().Field(i).Name); found != "" {
				return found
			}
		}
		return ""
	}
	if v.IsZero() {
		return path
	}
	return ""
}

// Every row of every table has an Evolve case.
func TestEveryEdgeHasASample(t *testing.T) {
	seen := map[fsm.Edge]bool{}
	for _, s := range corpus.Samples() {
		before, after, err := s.Values()
		if err != nil {
			t.Fatal(err)
		}
		_, from := before.At()
		_, to := after.At()
		seen[fsm.Edge{From: from, Event: s.Event.Type(), To: to}] = true
		if s.Event.Type().Moves() == cmp.Equal(before, after) {
			t.Errorf("%s: moves %v, and leaves the entity as\n%s", s.Name, s.Event.Type().Moves(), events.AppendFields(nil, after))
		}
	}
	for _, life := range fsm.Lifecycles() {
		for _, edge := range life.Edges() {
			if !seen[edge] {
				t.Errorf("%s from %s to %s: no sample", edge.Event, edge.From, edge.To)
			}
		}
	}
}

func TestSamplesAreApart(t *testing.T) {
	names, entities := map[string]bool{}, map[events.Entity]string{}
	for _, s := range corpus.Samples() {
		if names[s.Name] {
			t.Errorf("two samples are named %s", s.Name)
		}
		names[s.Name] = true
		if other, ok := entities[s.Entity]; ok && s.Entity != events.ClockEntity() && s.Entity != events.LogEntity() {
			t.Errorf("%s and %s are of %s", s.Name, other, s.Entity)
		}
		entities[s.Entity] = s.Name
	}
}

func TestMerge(t *testing.T) {
	one := func(mark, body string) entry {
		return entry{name: "a, schema 1", mark: mark, lines: []string{"body " + body}}
	}
	two := entry{name: "b, schema 1", mark: unreleased, lines: []string{"body x"}}
	tests := []struct {
		name      string
		old, made []entry
		want      []entry
		changed   []string
	}{
		{"new ones are added", []entry{one("released 0.1", "x")}, []entry{one(unreleased, "x"), two}, []entry{one("released 0.1", "x"), two}, nil},
		{"an unreleased one is written anew", []entry{one(unreleased, "x")}, []entry{one(unreleased, "y")}, []entry{one(unreleased, "y")}, nil},
		{"an unreleased one may go", []entry{one(unreleased, "x"), two}, []entry{two}, []entry{two}, nil},
		{"a released one never changes", []entry{one("released 0.1", "x")}, []entry{one(unreleased, "y")},
			[]entry{one("released 0.1", "x")}, []string{"a, schema 1"}},
		{"a released one never goes", []entry{one("released 0.1", "x")}, []entry{two}, []entry{one("released 0.1", "x"), two}, nil},
	}
	for _, tt := range tests {
		got, changed := merge(tt.old, tt.made)
		opts := cmp.AllowUnexported(entry{})
		if diff := cmp.Diff(tt.want, got, opts); diff != "" || !cmp.Equal(changed, tt.changed) {
			t.Errorf("%s: changed %v, want %v; entries (-want +got):\n%s", tt.name, changed, tt.changed, diff)
		}
		var text bytes.Buffer
		for _, e := range got {
			text.WriteString("\n" + e.String())
		}
		if diff := cmp.Diff(got, parse(text.String()), opts); diff != "" {
			t.Errorf("%s: parsed (-written +read):\n%s", tt.name, diff)
		}
	}
}
