package corpus_test

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/corpus"
)

// header opens the golden file.
const header = `# One stored form of every event type and schema version, with its text line and what Evolve makes of it.
#
# The file is written by one generator, package internal/corpus:
#
#	go test ./internal/corpus -update
#
# adds what is missing and writes "unreleased" entries anew. A release freezes every entry: it replaces "unreleased" by the version, as
# in "released 0.1". From then on the test refuses to change or to drop the entry, -update or not: what that release wrote must decode
# to the same event, print the same line and lead to the same state for ever. A new form of the type gets a new schema version, and
# entries of its own.
`

// entry is one stanza of the golden file: a first line of name, schema version and mark, then "key value" lines.
type entry struct {
	name  string // with the schema version
	mark  string
	lines []string
}

const unreleased = "unreleased"

func (e entry) String() string {
	return fmt.Sprintf("%s: %s\n  %s\n", e.name, e.mark, strings.Join(e.lines, "\n  "))
}

// parse reads the golden file.
func parse(text string) (list []entry) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "" || line[0] == '#':
		case line[0] != ' ':
			name, mark, _ := strings.Cut(line, ": ")
			list = append(list, entry{name: name, mark: mark})
		case len(list) > 0:
			last := &list[len(list)-1]
			last.lines = append(last.lines, line[2:])
		}
	}
	return list
}

// merge is the golden file after the generator has run: unreleased entries as they are made now, released ones as they were. A
// released entry that is made otherwise now is named.
func merge(old, made []entry) (list []entry, changed []string) {
	for _, was := range old {
		i := slices.IndexFunc(made, func(e entry) bool { return e.name == was.name })
		switch {
		case was.mark == unreleased && i >= 0:
			list = append(list, made[i])
		case was.mark != unreleased:
			list = append(list, was)
			if i >= 0 && !slices.Equal(made[i].lines, was.lines) {
				changed = append(changed, was.name)
			}
		}
	}
	for _, e := range made {
		if !slices.ContainsFunc(old, func(was entry) bool { return was.name == e.name }) {
			list = append(list, e)
		}
	}
	return list, changed
}

// made is the entry of a sample.
func made(s corpus.Sample) (entry, error) {
	before, after, err := s.Values()
	if err != nil {
		return entry{}, err
	}
	history := s.Recorded()
	last := history[len(history)-1]
	stored := events.Encode(s.Entity, last.Transition)
	version := func(v fsm.Value) int { n, _ := v.At(); return n }
	return entry{
		name: fmt.Sprintf("%s, schema %d", s.Name, stored.Schema),
		mark: unreleased,
		lines: []string{
			"entity   " + s.Entity.String(),
			fmt.Sprintf("version  %d", stored.Version),
			fmt.Sprintf("type     %d", stored.Type),
			fmt.Sprintf("schema   %d", stored.Schema),
			fmt.Sprintf("from     %d", stored.From),
			fmt.Sprintf("to       %d", stored.To),
			"body     " + string(stored.Body),
			fmt.Sprintf("checksum %08x", stored.Checksum),
			fmt.Sprintf("position %d", last.Position),
			"line     " + corpus.Names().Line(last),
			fmt.Sprintf("before   %d %s", version(before), events.AppendFields(nil, before)),
			fmt.Sprintf("after    %d %s", version(after), events.AppendFields(nil, after)),
		},
	}, nil
}

// value is what stands behind a key.
func (e entry) value(t *testing.T, key string) string {
	t.Helper()
	for _, line := range e.lines {
		if name, value, _ := strings.Cut(line, " "); name == key {
			return strings.TrimLeft(value, " ")
		}
	}
	t.Fatalf("%s: no line %q", e.name, key)
	return ""
}

func (e entry) number(t *testing.T, key string) int {
	t.Helper()
	n, err := strconv.Atoi(e.value(t, key))
	if err != nil {
		t.Fatalf("%s: %s: %v", e.name, key, err)
	}
	return n
}

// stored is the stored form that the entry tells of, read from the entry alone.
func (e entry) stored(t *testing.T) events.Stored {
	t.Helper()
	entity, err := events.ParseEntity(e.value(t, "entity"))
	if err != nil {
		t.Fatalf("%s: %v", e.name, err)
	}
	sum, err := hex.DecodeString(e.value(t, "checksum"))
	if err != nil || len(sum) != 4 {
		t.Fatalf("%s: checksum %x: %v", e.name, sum, err)
	}
	return events.Stored{
		Position: int64(e.number(t, "position")), Entity: entity, Version: e.number(t, "version"),
		Type: events.Type(e.number(t, "type")), Schema: e.number(t, "schema"),
		From: events.State(e.number(t, "from")), To: events.State(e.number(t, "to")),
		Body:     []byte(e.value(t, "body")),
		Checksum: uint32(sum[0])<<24 | uint32(sum[1])<<16 | uint32(sum[2])<<8 | uint32(sum[3]),
	}
}

// held is the state behind "before" or "after".
func (e entry) held(t *testing.T, key string) fsm.Value {
	t.Helper()
	number, fields, _ := strings.Cut(e.value(t, key), " ")
	version, err := strconv.Atoi(number)
	if err != nil {
		t.Fatalf("%s: %s: %v", e.name, key, err)
	}
	v, err := fsm.ReadValue(e.stored(t).Entity, version, []byte(fields))
	if err != nil {
		t.Fatalf("%s: %s: %v", e.name, key, err)
	}
	return v
}
