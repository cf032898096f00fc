package tidy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// cases is each rule with sources that break it and the places it must name, and with its nearest neighbours that are right.
var cases = []struct {
	rule  string
	files map[string]string
	want  []string
}{
	{"own imports", map[string]string{
		"fsm/a.go":                `package fsm; import _ "github.com/foundling-go/foundling/store"`,
		"store/a.go":              `package store; import _ "github.com/foundling-go/foundling"`,
		"events/a.go":             "package events\n\nimport _ \"github.com/foundling-go/foundling/internal/calls\"",
		"store/sqlite/a.go":       `package sqlite; import _ "github.com/foundling-go/foundling/fsm"`,
		"a.go":                    `package foundling; import _ "github.com/foundling-go/foundling/store/memory"`,
		"queue/a.go":              `package queue`,
		"projections/a.go":        `package projections; import _ "github.com/foundling-go/foundling/projections/findings"`,
		"fsm/right.go":            `package fsm; import _ "github.com/foundling-go/foundling/events"`,
		"fsm/right_test.go":       `package fsm_test; import _ "github.com/foundling-go/foundling/store/memory"`,
		"cmd/foundling/right.go":  `package main; import _ "github.com/foundling-go/foundling/internal/lines"`,
		"reaper/right.go":         `package reaper; import _ "github.com/foundling-go/foundling/internal/calls"`,
		"tools/go.mod":            `module nested`,
		"tools/right.go":          `package nested; import _ "github.com/foundling-go/foundling/store"`,
		"store/testdata/right.go": `package anything`,
	}, []string{"a.go:1", "events/a.go:3", "fsm/a.go:1", "projections/a.go:1", "queue/a.go:1", "store/a.go:1", "store/sqlite/a.go:1"}},

	{"libraries", map[string]string{
		"events/a.go":              `package events; import _ "github.com/looplab/fsm"`,
		"fsm/a.go":                 `package fsm; import _ "github.com/google/uuid"`,
		"fsm/b_test.go":            `package fsm; import _ "modernc.org/sqlite"`,
		"store/memory/a.go":        `package memory; import _ "modernc.org/sqlite/lib"`,
		"store/storetest/a.go":     `package storetest; import _ "github.com/google/uuid"`,
		"foundlingtest/a.go":       `package foundlingtest; import _ "github.com/google/go-cmp/cmp"`,
		"store/a.go":               `package store; import _ "pgregory.net/rapid"`,
		"store/b_test.go":          `package store; import _ "github.com/stretchr/testify/assert"`,
		"a.go":                     `package foundling; import _ "github.com/spf13/cobra"`,
		"store/right_test.go":      `package store; import _ "pgregory.net/rapid"`,
		"store/sqlite/right.go":    `package sqlite; import (_ "modernc.org/sqlite"; _ "github.com/pressly/goose/v3/database"; _ "fmt")`,
		"internal/scenario/r.go":   `package scenario; import _ "github.com/cockroachdb/datadriven"`,
		"store/storetest/right.go": `package storetest; import _ "testing/synctest"`,
	}, []string{"a.go:1", "events/a.go:1", "foundlingtest/a.go:1", "fsm/a.go:1", "fsm/b_test.go:1", "store/a.go:1", "store/b_test.go:1",
		"store/memory/a.go:1", "store/storetest/a.go:1"}},

	{"library name", map[string]string{
		"fsm/a.go":     `package fsm; import "github.com/looplab/fsm"`,
		"fsm/b.go":     `package fsm; import looplab "github.com/looplab/fsm"`,
		"fsm/right.go": `package fsm; import lfsm "github.com/looplab/fsm"`,
	}, []string{"fsm/a.go:1", "fsm/b.go:1"}},

	{"core imports", map[string]string{
		"fsm/a.go": `package fsm; import (
			_ "context"
			_ "sync/atomic"
			_ "os"
			_ "net/http"
			_ "log/slog"
			_ "database/sql"
			_ "math/rand/v2"
			_ "crypto/rand"
			_ "sync"
			_ "math"; _ "crypto/sha256"; _ "time"; _ "strings"
		)`,
		"fsm/right_test.go": `package fsm; import _ "os"`,
		"store/right.go":    `package store; import _ "context"`,
	}, []string{"fsm/a.go:10", "fsm/a.go:2", "fsm/a.go:3", "fsm/a.go:4", "fsm/a.go:5", "fsm/a.go:6", "fsm/a.go:7", "fsm/a.go:8", "fsm/a.go:9"}},

	{"core clock", map[string]string{
		"fsm/a.go":          "package fsm\nimport \"time\"\nvar a = time.Now()\nvar b = time.Since\nvar c = time.Second\nvar d time.Time",
		"fsm/b.go":          "package fsm\nimport clock \"time\"\nvar e = clock.NewTimer(1)",
		"fsm/right.go":      "package fsm\nvar time clock\nvar f = time.Now()\nvar g = at.After(then)",
		"fsm/right_test.go": "package fsm\nimport \"time\"\nvar h = time.Now()",
	}, []string{"fsm/a.go:3", "fsm/a.go:4", "fsm/b.go:3"}},

	{"dot import", map[string]string{
		"a_test.go": `package foundling; import . "fmt"`,
		"right.go":  `package foundling; import f "fmt"`,
	}, []string{"a_test.go:1"}},

	{"file length", map[string]string{
		"a.go":          "package foundling\n" + strings.Repeat("\n", 500),
		"a_test.go":     "package foundling\n" + strings.Repeat("\n", 800),
		"right.go":      "package foundling\n" + strings.Repeat("\n", 499),
		"right_test.go": "package foundling\n" + strings.Repeat("\n", 799),
	}, []string{"a.go:501", "a_test.go:801"}},

	{"function length", map[string]string{
		"a.go":          "package foundling\nfunc (T) f() {\n" + strings.Repeat("\n", 59) + "}",
		"right.go":      "package foundling\nfunc f() {\n" + strings.Repeat("\n", 58) + "}",
		"right_test.go": "package foundling\nfunc f() {\n" + strings.Repeat("\n", 59) + "}",
	}, []string{"a.go:2"}},

	{"parameters", map[string]string{
		"a.go": "package foundling\nfunc f(a, b, c int, d, e string) {}\ntype I interface {\n m(int, int, int, int, int) }",
		"b.go": "package foundling\nvar f = func(a, b, c, d, e int) {}",
		"right.go": "package foundling\nfunc (r *T) f(ctx context.Context, a, b, c, d int) (e, f int) {}\nfunc g(t *testing.T, a, b, c, d int) {}\n" +
			"func h(t TB, a, b, c, d int) {}",
	}, []string{"a.go:2", "a.go:4", "b.go:2"}},

	{"init", map[string]string{
		"a.go":     "package foundling\n\nfunc init() {}",
		"right.go": "package foundling\nfunc (T) init() {}",
	}, []string{"a.go:3"}},

	{"bool parameter", map[string]string{
		"a.go": "package foundling\nfunc F(n int, b bool) {}\nfunc (t *T[K, V]) M(b ...bool) {}\n" +
			"type I interface {\n M(force bool) }",
		"internal/calls/a.go": "package calls\nfunc F(b bool) {}",
		"right.go": "package foundling\nfunc f(b bool) {}\nfunc (t *t) M(b bool) {}\nfunc F(f func(bool)) bool { return true }\n" +
			"type i interface {\n M(force bool) }",
		"right_test.go": "package foundling\nfunc F(b bool) {}",
	}, []string{"a.go:2", "a.go:3", "a.go:5", "internal/calls/a.go:2"}},

	{"package name", map[string]string{
		"internal/util/a.go":    "package util",
		"store/b/a.go":          "package helpers",
		"store/types/a.go":      "package kinds",
		"internal/model/a.go":   "package model",
		"store/right.go":        "package store",
		"store/common_right.go": "package store",
	}, []string{"internal/util/a.go:1", "store/b/a.go:1", "store/types/a.go:1"}},

	{"doc comment", map[string]string{
		"store/a.go": "package store\nfunc F() {}\n// does\nfunc (t T) M() {}\n// Gone is not G.\nfunc G() {}",
		"store/b.go": "package store\n// A T is\ntype T int\nconst C = 1\nvar (\n E = 1\n)\n// I is\ntype I interface {\n M() }",
		"store/right.go": "package store\n// F does.\nfunc F() {}\n// M's\nfunc (t T) M() {}\nfunc (t t) M() {}\nfunc f() {}\n" +
			"// What a state is.\nconst (\n A = 1\n B = 2\n)\nvar (\n // ErrX is.\n ErrX = 1\n ErrY = 2 // ErrY is.\n)\n" +
			"// I is.\ntype I interface {\n // M does.\n M()\n T }\n// J is\ntype J interface{ M() }\n// T is\ntype T struct { F int }",
		"store/right_test.go":      "package store\nfunc F() {}",
		"internal/calls/right.go":  "package calls\nfunc F() {}",
		"cmd/foundling/right.go":   "package main\nfunc F() {}",
		"store/testdata/absent.go": "package broken func",
	}, []string{"store/a.go:2", "store/a.go:4", "store/a.go:6", "store/b.go:10", "store/b.go:3", "store/b.go:4", "store/b.go:6"}},

	{"package comment", map[string]string{
		"store/a.go":             "package store",
		"store/b.go":             "// Storing things.\npackage store",
		"fsm/a.go":               "// Package fsm is right.\npackage fsm",
		"fsm/b.go":               "package fsm",
		"cmd/foundling/right.go": "// Command foundling is right.\npackage main",
		"cmd/other/a.go":         "package main",
	}, []string{"cmd/other/a.go:1", "store/a.go:1"}},

	{"examples", map[string]string{
		"a.go": "package foundling\nfunc F() {}\nfunc (t *T[K]) M() {}\ntype T[K any] int\nconst C = 1\nvar (\n ErrX, errY = 1, 2\n)\nfunc G() {}",
		"a_test.go": "package foundling_test\nfunc Example() { foundling.F(); other.C; T.M() // Output: x\n}\n" +
			"func ExampleG() {\n// it says nothing\n}\nfunc helper() { foundling.ErrX }",
		"foundlingtest/right.go": "package foundlingtest\nfunc F() {}\nfunc (t *T[K]) M() {}\ntype T[K any] int\nconst C = 1\nvar ErrX = 2\n" +
			"func (t) N() {}",
		"foundlingtest/right_test.go": "package foundlingtest_test\nfunc ExampleF() {\n foundlingtest.C\n// Output: 1\n}\n" +
			"func ExampleT_M() {\n foundlingtest.ErrX\n// Output:\n}\nfunc ExampleT_suffix() {\n// Unordered output: 1\n}",
		"store/right.go": "package store\nfunc F() {}",
	}, []string{"a.go:2", "a.go:3", "a.go:4", "a.go:5", "a.go:7", "a.go:9"}},

	{"left open", map[string]string{
		"a.go":     "package foundling\n// TO" + "DO: later\n// FIX" + "ME\n// X" + "XX",
		"a.sql":    "-- TO" + "DO\n",
		"right.go": "package foundling\n// mktemp X" + "XXXXX, todos\n",
	}, []string{"a.go:2", "a.go:3", "a.go:4", "a.sql:1"}},

	{"machine path", map[string]string{
		"a.go":           "package foundling\nvar p = \"/ho" + "me/ann/x\"",
		"docs/a.md":      "\nsee /wo" + "rk/main\n",
		"run":            "cd /ro" + "ot/go\n",
		"testdata/a.txt": "open /ho" + "me/ann/x: no such file\n",
		"right.go":       "package foundling\nvar p = \"internal/wo" + "rk/x\" + \"https://example.org/home/x\" + \"~/wo" + "rk/\"",
		"image":          "\x00 /ho" + "me/ann",
		".git/config":    "/ho" + "me/ann",
	}, []string{"a.go:2", "docs/a.md:2", "run:1", "testdata/a.txt:1"}},
}

// A rule that cannot fail is worthless: each is shown breaking, and its neighbours that must not be.
func TestEachRule(t *testing.T) {
	untested := map[string]Rule{}
	for _, rule := range Rules() {
		untested[rule.Name] = rule
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			rule, ok := untested[c.rule]
			if !ok {
				t.Fatalf("no rule %q, or two cases for it", c.rule)
			}
			delete(untested, c.rule)
			root := fstest.MapFS{}
			for name, text := range c.files {
				root[name] = &fstest.MapFile{Data: []byte(text)}
			}
			files, err := Load(root)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, hit := range rule.Find(files) {
				got = append(got, hit.At)
				if hit.Saw == "" || rule.Way == "" {
					t.Errorf("%s: says neither what nor the way out", hit.At)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("found\n\t%v, want\n\t%v", got, c.want)
			}
		})
	}
	for name := range untested {
		t.Errorf("rule %q has no case that breaks it", name)
	}
}

func TestLoadNamesAFileThatDoesNotParse(t *testing.T) {
	_, err := Load(fstest.MapFS{"fsm/a.go": {Data: []byte("package fsm\nfunc {")}})
	if want := "read fsm/a.go: "; !strings.HasPrefix(fmt.Sprint(err), want) {
		t.Errorf("Load gives %v, want an error that starts with %q", err, want)
	}
}
