package tidy

import (
	"go/ast"
	"path"
	"slices"
	"strings"
)

// ours says which of our packages each of our packages may import, outside its tests. "…" is all of them; "." is the root
// package; a key that ends in "/…" holds for the folders below it.
var ours = map[string][]string{
	"events":               {"internal/idtext"},
	"fsm":                  {"events"},
	"store":                {"events"},
	"store/faulty":         {"store", "events"},
	"store/memory":         {"store", "events"},
	"store/sqlite":         {"store", "events", "internal/migration"},
	"store/postgres":       {"store", "events", "internal/migration", "internal/shorthand", "."}, // EnqueueTx is for users, who know clients and drafts; root knows no engine all the same
	"store/storetest":      {"store", "events", "fsm", "internal/calls", "internal/corpus"},
	"projections":          {"events"},
	"projections/findings": {"events", "fsm", "projections"},
	"projections/metrics":  {"events", "store", "projections", "projections/findings"},
	"projections/replay":   {"events", "fsm", "store", "projections", "internal/calls"},
	"projections/runner":   {"events", "store", "projections"},
	"reaper":               {"fsm", "store", "events", "internal/calls"},
	".":                    {"events", "fsm", "store", "projections", "projections/runner", "reaper", "internal/calls", "internal/mint"},
	"foundlingtest":        {".", "store/memory"},
	"cmd/…":                {"…"},
	"examples/…":           {".", "foundlingtest", "events", "store/memory", "store/sqlite", "store/postgres"}, // what users may
	"internal/calls":       {"events", "fsm", "store"},
	"internal/child":       {},
	"internal/corpus":      {"events", "fsm"}, // a sample finds the state that the table lets it start from
	"internal/idtext":      {},
	"internal/joint":       {".", "events", "store", "store/sqlite"},
	"internal/lines":       {"events", "store"},
	"internal/migration":   {},
	"internal/mint":        {},
	"internal/model":       {"…"},
	"internal/pgtest/…":    {"internal/pgtest"},
	"internal/scenario":    {"…"},
	"internal/shorthand":   {"internal/idtext"},
	"internal/sim":         {"…"},
	"internal/testreport":  {},
	"internal/tidy":        {},

	// A busy store for the tests of the folds, which all fold the same one.
	"projections/internal/history": {"events", "fsm", "store", "store/memory", "internal/calls"},
}

// theirs says which of our packages may import a library, outside their tests and in them. A library stands for all packages
// below its path.
var theirs = map[string][]string{
	"github.com/looplab/fsm":              {"fsm"},
	"github.com/google/uuid":              {".", "events", "store/…", "projections/…", "reaper", "cmd/…", "foundlingtest", "internal/…"},
	"modernc.org/sqlite":                  {"store/sqlite", "internal/lines"},
	"github.com/jackc/pgx/v5":             {"store/postgres", "internal/pgtest"},
	"github.com/pressly/goose/v3":         {"store/sqlite", "store/postgres"},
	"github.com/gofrs/flock":              {"store/sqlite"},
	"github.com/tidwall/btree":            {"store/memory"},
	"github.com/cenkalti/backoff/v5":      {".", "store/sqlite", "store/postgres"},
	"github.com/spf13/cobra":              {"cmd/…"},
	"github.com/spf13/pflag":              {"cmd/…"},
	"github.com/schollz/progressbar/v3":   {"cmd/…"},
	"github.com/mattn/go-isatty":          {"cmd/…"},
	"golang.org/x/term":                   {"cmd/…"},
	"golang.org/x/sys":                    {"cmd/…", "internal/child", "internal/pgtest", "store/sqlite"},
	"github.com/prometheus/client_golang": {"projections/metrics", "cmd/…"},
	"pgregory.net/rapid":                  harness,
	"github.com/google/go-cmp":            harness,
	"github.com/cockroachdb/datadriven":   harness,
	"github.com/rogpeppe/go-internal":     harness,
	"github.com/anishathalye/porcupine":   harness,
	"go.uber.org/goleak":                  harness,
}

// harness are the packages that are for tests without being test files; every test may import what they may.
var harness = []string{"internal/model", "internal/scenario"}

// clean are the packages that make users of them download nothing.
var clean = []string{"store/storetest", "foundlingtest"}

// outside are the standard packages that would let a rule of fsm depend on something other than its arguments.
var outside = []string{"context", "sync", "os", "net", "log", "database", "math/rand", "crypto/rand"}

// clock are the names of package time that read a clock or wait for one.
var clock = []string{"Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Sleep"}

// allows tells whether a list of the tables names dir.
func allows(list []string, dir string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		if above, deep := strings.CutSuffix(entry, "…"); deep {
			return strings.HasPrefix(dir+"/", above)
		}
		return entry == dir
	})
}

// row is the entry of ours for dir.
func row(dir string) ([]string, bool) {
	for key, list := range ours {
		if allows([]string{key}, dir) {
			return list, true
		}
	}
	return nil, false
}

// library is the entry of theirs that an import belongs to, the import itself where there is none.
func library(imported string) string {
	for lib := range theirs {
		if strings.HasPrefix(imported+"/", lib+"/") {
			return lib
		}
	}
	return imported
}

// own is the folder of an import of ours.
func own(imported string) (dir string, ok bool) {
	if imported == Module {
		return ".", true
	}
	return strings.CutPrefix(imported, Module+"/")
}

// standard tells the standard library by its first element, which has no dot.
func standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

func checkOwnImports(f File) (hits []Hit) {
	list, known := row(f.dir())
	if !known {
		return []Hit{{f.at(f.AST.Name), "package " + f.dir() + " has no row in the table of imports"}}
	}
	for spec, imported := range f.imports() {
		dir, ok := own(imported)
		if ok && !f.test() && !allows(list, dir) {
			hits = append(hits, Hit{f.at(spec), f.dir() + " imports " + dir})
		}
	}
	return hits
}

func checkLibraries(f File) (hits []Hit) {
	for spec, imported := range f.imports() {
		if _, ok := own(imported); ok || standard(imported) || imported == "C" {
			continue
		}
		list := theirs[library(imported)]
		forTests := f.test() && slices.Equal(list, harness)
		isClean := !f.test() && slices.Contains(clean, f.dir())
		if isClean || !forTests && !allows(list, f.dir()) {
			hits = append(hits, Hit{f.at(spec), f.dir() + " imports " + imported})
		}
	}
	return hits
}

func checkLibraryName(f File) (hits []Hit) {
	for spec, imported := range f.imports() {
		if imported == "github.com/looplab/fsm" && (spec.Name == nil || spec.Name.Name != "lfsm") {
			hits = append(hits, Hit{f.at(spec), "looplab/fsm is not imported as lfsm"})
		}
	}
	return hits
}

func checkCoreImports(f File) (hits []Hit) {
	if f.dir() != "fsm" || f.test() {
		return nil
	}
	for spec, imported := range f.imports() {
		for _, bad := range outside {
			if strings.HasPrefix(imported+"/", bad+"/") {
				hits = append(hits, Hit{f.at(spec), "fsm imports " + imported})
			}
		}
	}
	return hits
}

func checkCoreClock(f File) (hits []Hit) {
	if f.dir() != "fsm" || f.test() {
		return nil
	}
	for name := range f.named("time") {
		ast.Inspect(f.AST, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || !slices.Contains(clock, sel.Sel.Name) {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == name {
				hits = append(hits, Hit{f.at(sel), "fsm uses time." + sel.Sel.Name})
			}
			return true
		})
	}
	return hits
}

// named is the set of names under which the file knows an imported package.
func (f File) named(imported string) map[string]bool {
	names := map[string]bool{}
	for spec, p := range f.imports() {
		switch {
		case p != imported:
		case spec.Name != nil:
			names[spec.Name.Name] = true
		default:
			names[path.Base(p)] = true
		}
	}
	return names
}
