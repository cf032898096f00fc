package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// shape is a JSON Schema, as far as ours use it: any other word in one is a fault.
type shape struct {
	Schema      string            `json:"$schema"`
	ID          string            `json:"$id"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Type        kinds             `json:"type"`
	Properties  map[string]*shape `json:"properties"`
	Required    []string          `json:"required"`
	Additional  *bool             `json:"additionalProperties"`
	Items       *shape            `json:"items"`
	Enum        []any             `json:"enum"`
	Pattern     string            `json:"pattern"`
}

// kinds is one type or several.
type kinds []string

func (k *kinds) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*k = kinds{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(k))
}

func shapeOf(name string) (*shape, error) {
	text, err := schemaOf(name)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	s := &shape{}
	return s, d.Decode(s)
}

// faults is where a value is not of the shape.
func (s *shape) faults(v any, at string) (list []string) {
	fault := func(format string, args ...any) { list = append(list, at+": "+fmt.Sprintf(format, args...)) }
	if len(s.Type) > 0 && !slices.ContainsFunc(s.Type, func(kind string) bool { return isOf(kind, v) }) {
		fault("%v is none of %v", v, s.Type)
		return list
	}
	if s.Enum != nil && !slices.Contains(s.Enum, v) {
		fault("%v is none of %v", v, s.Enum)
	}
	switch v := v.(type) {
	case string:
		if !regexp.MustCompile(s.Pattern).MatchString(v) {
			fault("%q is not like %s", v, s.Pattern)
		}
	case []any:
		for i, item := range v {
			list = append(list, s.Items.faults(item, fmt.Sprintf("%s.%d", at, i))...)
		}
	case map[string]any:
		list = append(list, s.inside(v, at)...)
	}
	return list
}

func (s *shape) inside(v map[string]any, at string) (list []string) {
	for _, name := range s.Required {
		if _, ok := v[name]; !ok {
			list = append(list, at+": there is no "+name)
		}
	}
	for name, inner := range v {
		if p := s.Properties[name]; p != nil {
			list = append(list, p.faults(inner, at+"."+name)...)
		} else if s.Additional != nil && !*s.Additional {
			list = append(list, at+": "+name+" is in no schema")
		}
	}
	return list
}

func isOf(kind string, v any) bool {
	switch v := v.(type) {
	case nil:
		return kind == "null"
	case string:
		return kind == "string"
	case bool:
		return kind == "boolean"
	case float64:
		return kind == "number" || kind == "integer" && v == math.Trunc(v)
	case []any:
		return kind == "array"
	case map[string]any:
		return kind == "object"
	}
	return false
}

// validate holds an object that a command printed against its schema.
func validate(text []byte) error {
	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil {
		return fmt.Errorf("not one JSON object: %w", err)
	}
	name, ok := v["schema"].(string)
	if _, failed := v["error"]; failed && !ok {
		name = "foundling.error/v1"
	}
	s, err := shapeOf(name)
	if err != nil {
		return fmt.Errorf("schema %q: %w", name, err)
	}
	if list := s.faults(v, ""); len(list) > 0 {
		slices.Sort(list)
		return fmt.Errorf("not what schema %s says:\n%s", name, strings.Join(list, "\n"))
	}
	return nil
}

func TestTheValidatorFindsWhatIsWrong(t *testing.T) {
	s := &shape{}
	text := `{"type":"object","properties":{"a":{"type":["string","null"],"pattern":"^x","enum":["x","xy",null]},"n":{"type":"integer"},
		"l":{"type":"array","items":{"type":"boolean"}}},"required":["a"],"additionalProperties":false}`
	if err := json.Unmarshal([]byte(text), s); err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]int{
		`{"a":"x","n":1,"l":[true]}`: 0, `{"a":null}`: 0, `{}`: 1, `[]`: 1, `{"a":"y"}`: 2, `{"a":"xz"}`: 1, `{"a":1}`: 1, `{"a":"x","n":1.5}`: 1,
		`{"a":"x","l":[1,true,2]}`: 2, `{"a":"x","b":1}`: 1,
	} {
		var v any
		if err := json.Unmarshal([]byte(value), &v); err != nil {
			t.Fatal(err)
		}
		if got := s.faults(v, ""); len(got) != want {
			t.Errorf("%s: %q, want %d faults", value, got, want)
		}
	}
}

// printed is everything that is printed as JSON: its items, and what came of it as a whole.
func printed() map[string][2]reflect.Type {
	of := func(item, result any) [2]reflect.Type {
		return [2]reflect.Type{reflect.TypeOf(item), reflect.TypeOf(result)}
	}
	return map[string][2]reflect.Type{
		"foundling.topics/v1":           of(jsonTopic{}, nil),
		"foundling.workers/v1":          of(jsonWorker{}, nil),
		"foundling.locks/v1":            of(jsonLock{}, nil),
		"foundling.status/v1":           of(jsonFinding{}, jsonStatus{}),
		"foundling.messages/v1":         of(jsonMessage{}, nil),
		"foundling.trace/v1":            of(jsonStep{}, jsonLife{}),
		"foundling.events/v1":           of(jsonEvent{}, nil),
		"foundling.requeue/v1":          of(jsonProspect{}, jsonActed{}),
		"foundling.redrive/v1":          of(jsonProspect{}, jsonActed{}),
		"foundling.cancel/v1":           of(jsonProspect{}, jsonActed{}),
		"foundling.erase/v1":            of(jsonErasure{}, jsonActed{}),
		"foundling.pause/v1":            of(jsonTopicAct{}, jsonReasoned{}),
		"foundling.resume/v1":           of(jsonTopicAct{}, jsonReasoned{}),
		"foundling.topics_set/v1":       of(jsonTopicAct{}, jsonReasoned{}),
		"foundling.release_lock/v1":     of(jsonPermit{}, jsonReleased{}),
		"foundling.prune/v1":            of(jsonPruned{}, nil),
		"foundling.projections/v1":      of(jsonProjection{}, nil),
		"foundling.projections_drop/v1": of(jsonProjection{}, jsonDropped{}),
		"foundling.sweep/v1":            of(jsonDead{}, jsonSwept{}),
		"foundling.migrate/v1":          of(jsonMigrated{}, nil),
		"foundling.verify/v1":           of(jsonViolation{}, jsonVerified{}),
		"foundling.machines/v1":         of(jsonMachine{}, nil),
		"foundling.version/v1":          of(jsonVersion{}, nil),
		"foundling.enqueue/v1":          of(jsonEnqueued{}, nil),
		"foundling.run/v1":              of(jsonDeadLine{}, jsonBatch{}),
		"foundling.work/v1":             of(jsonWorkedTopic{}, jsonWorked{}),
	}
}

// Each schema has the fields that are printed, and no others, and says of each whether it can be null.
func TestSchemasAreOfWhatIsPrinted(t *testing.T) {
	all := printed()
	names := slices.Sorted(maps.Keys(all))
	if want := schemaNames(); !slices.Equal(slices.Sorted(slices.Values(append(names, "foundling.error/v1"))), slices.Sorted(slices.Values(want))) {
		t.Errorf("printed are %q, and schemas there are of %q", names, want)
	}
	for name, types := range all {
		s, err := shapeOf(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if s.ID != name || !slices.Equal(s.Properties["schema"].Enum, []any{name}) || s.Title == "" {
			t.Errorf("%s says that it is %s, of schema %v, %q", name, s.ID, s.Properties["schema"].Enum, s.Title)
		}
		alike(t, name+" items", s.Properties["items"].Items, types[0])
		if result := s.Properties["result"]; (result == nil) != (types[1] == nil) {
			t.Errorf("%s: what came of it as a whole is in one of schema and output alone", name)
		} else if result != nil {
			alike(t, name+" result", result, types[1])
		}
	}
	s, err := shapeOf("foundling.error/v1")
	if err != nil {
		t.Fatal(err)
	}
	alike(t, "error", s, reflect.TypeFor[jsonError]())
}

// alike holds a shape against the type that is printed.
func alike(t *testing.T, at string, s *shape, of reflect.Type) {
	t.Helper()
	nullable := of.Kind() == reflect.Pointer
	if nullable {
		of = of.Elem()
	}
	if of == reflect.TypeFor[json.RawMessage]() { // of any kind, or an object
		return
	}
	if slices.Contains(s.Type, "null") && !nullable { // what is never null although it could be is for the golden files to show
		t.Errorf("%s: null in the schema, and never in the output", at)
	}
	kind := map[reflect.Kind]string{
		reflect.String: "string", reflect.Bool: "boolean", reflect.Int: "integer", reflect.Float64: "number", reflect.Slice: "array", reflect.Struct: "object",
	}[of.Kind()]
	if of == reflect.TypeFor[time.Time]() {
		kind = "string"
	}
	if !slices.Contains(s.Type, kind) {
		t.Errorf("%s: %v in the schema, %s in the output", at, s.Type, kind)
		return
	}
	switch kind {
	case "array":
		alike(t, at, s.Items, of.Elem())
	case "object":
		alikeFields(t, at, s, of)
	}
}

func alikeFields(t *testing.T, at string, s *shape, of reflect.Type) {
	t.Helper()
	fields := map[string]bool{}
	for _, f := range reflect.VisibleFields(of) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			continue // its own fields follow
		}
		fields[name] = true
		inner := s.Properties[name]
		if inner == nil {
			t.Errorf("%s: %s is printed, and in no schema", at, name)
			continue
		}
		alike(t, at+"."+name, inner, f.Type)
		if required := slices.Contains(s.Required, name); required == strings.Contains(options, "omit") {
			t.Errorf("%s.%s: required is %t, and the output says %q", at, name, required, options)
		}
	}
	for name := range s.Properties {
		if !fields[name] {
			t.Errorf("%s: %s is in the schema, and never printed", at, name)
		}
	}
	if s.Additional == nil || *s.Additional {
		t.Errorf("%s: the schema allows what is not printed", at)
	}
}
