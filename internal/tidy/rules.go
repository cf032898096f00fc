package tidy

import (
	"bytes"
	"fmt"
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Hit is one place that breaks a rule.
type Hit struct {
	At  string // file:line
	Saw string
}

// Rule is one house rule. Exactly one of Go, Text and All is set: it sees one Go file, one text file, or every Go file at once.
type Rule struct {
	Name string
	Way  string // the way out, said to who broke it
	Go   func(File) []Hit
	Text func(File) []Hit
	All  func([]File) []Hit
}

// Rules are the house rules, from DESIGN's table of packages and from the conventions.
func Rules() []Rule {
	return []Rule{
		{Name: "own imports", Go: checkOwnImports,
			Way: "dependencies point one way: move the code, or change the table in internal/tidy/imports.go and say why in the commit"},
		{Name: "libraries", Go: checkLibraries,
			Way: "use it where internal/tidy/imports.go allows it; for a new library add a line there and its reason to docs/decisions.md"},
		{Name: "library name", Go: checkLibraryName, Way: `import lfsm "github.com/looplab/fsm": fsm is our own`},
		{Name: "core imports", Go: checkCoreImports, Way: "a rule of fsm depends on its arguments alone: let the caller pass the value"},
		{Name: "core clock", Go: checkCoreClock, Way: "a rule of fsm is given its now: take it as an argument"},
		{Name: "dot import", Go: checkDotImport, Way: "import it under its name"},
		{Name: "file length", Go: checkFileLength, Way: "split it by concept; aim below 300 lines"},
		{Name: "function length", Go: checkFunctionLength, Way: "branches in the caller, straight work in the callee"},
		{Name: "parameters", Go: checkParameters, Way: "at most 4 beside ctx or t: group neighbours in a struct"},
		{Name: "init", Go: checkInit, Way: "call it from a constructor, or make it a value"},
		{Name: "bool parameter", Go: checkBoolParameter, Way: "two functions, an options struct or a named type says what true means"},
		{Name: "package name", Go: checkPackageName, Way: "name it for what it provides"},
		{Name: "doc comment", Go: checkDocComment, Way: "start the comment with the name; give units and errors"},
		{Name: "package comment", All: checkPackageComment, Way: `one file opens with "// Package NAME …" (a command: what it does)`},
		{Name: "examples", All: checkExamples, Way: "write an Example that says what it prints"},
		{Name: "left open", Text: checkLeftOpen, Way: "do it, or file an issue and leave the comment out"},
		{Name: "machine path", Text: checkMachinePath, Way: "use a path below the repository, t.TempDir or a made-up one"},
	}
}

// Find gives the places of files that break the rule, in the order of their places.
func (r Rule) Find(files []File) (hits []Hit) {
	var parsed []File
	for _, f := range files {
		if r.Text != nil {
			hits = append(hits, r.Text(f)...)
		}
		if f.AST == nil {
			continue
		}
		parsed = append(parsed, f)
		if r.Go != nil {
			hits = append(hits, r.Go(f)...)
		}
	}
	if r.All != nil {
		hits = append(hits, r.All(parsed)...)
	}
	slices.SortFunc(hits, func(a, b Hit) int { return strings.Compare(a.At, b.At) })
	return hits
}

func checkDotImport(f File) (hits []Hit) {
	for spec, imported := range f.imports() {
		if spec.Name != nil && spec.Name.Name == "." {
			hits = append(hits, Hit{f.at(spec), "dot import of " + imported})
		}
	}
	return hits
}

func checkFileLength(f File) []Hit {
	limit := 500
	if f.test() {
		limit = 800
	}
	if n := bytes.Count(f.Text, []byte("\n")); n > limit {
		return []Hit{{f.line(limit + 1), fmt.Sprintf("%d lines, more than %d", n, limit)}}
	}
	return nil
}

func checkFunctionLength(f File) (hits []Hit) {
	const limit = 60
	for _, fn := range f.functions() {
		if n := f.lines(fn); n > limit && !f.test() {
			hits = append(hits, Hit{f.at(fn), fmt.Sprintf("%s has %d lines, more than %d", fn.Name.Name, n, limit)})
		}
	}
	return hits
}

// functions are the declared functions and methods of the file.
func (f File) functions() (fns []*ast.FuncDecl) {
	for _, decl := range f.AST.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok {
			fns = append(fns, fn)
		}
	}
	return fns
}

// escort matches the parameters every function may have beside its own: a context, or a test's handle.
var escort = regexp.MustCompile(`^(context\.Context|\*(testing|rapid)\.[A-Z]\w*|testing\.TB|rapid\.TB|TB)$`)

func checkParameters(f File) (hits []Hit) {
	const limit = 4
	ast.Inspect(f.AST, func(n ast.Node) bool {
		fn, ok := n.(*ast.FuncType)
		if !ok {
			return true
		}
		count := 0
		for _, field := range fn.Params.List {
			if !escort.Match(f.source(field.Type)) {
				count += max(1, len(field.Names))
			}
		}
		if count > limit {
			hits = append(hits, Hit{f.at(fn), fmt.Sprintf("%d parameters, more than %d", count, limit)})
		}
		return true
	})
	return hits
}

// source is the text of a node.
func (f File) source(n ast.Node) []byte {
	return f.Text[f.fset.Position(n.Pos()).Offset:f.fset.Position(n.End()).Offset]
}

func checkInit(f File) (hits []Hit) {
	for _, fn := range f.functions() {
		if fn.Recv == nil && fn.Name.Name == "init" {
			hits = append(hits, Hit{f.at(fn), "func init"})
		}
	}
	return hits
}

func checkBoolParameter(f File) (hits []Hit) {
	if f.test() {
		return nil
	}
	check := func(name string, fn *ast.FuncType) {
		for _, field := range fn.Params.List {
			if typ := string(f.source(field.Type)); typ == "bool" || typ == "...bool" {
				hits = append(hits, Hit{f.at(field), "exported " + name + " takes a bool"})
			}
		}
	}
	for _, fn := range f.functions() {
		if exported(fn) {
			check(fn.Name.Name, fn.Type)
		}
	}
	for _, iface := range f.interfaces() {
		for _, m := range methods(iface) {
			check(m.Names[0].Name, m.Type.(*ast.FuncType))
		}
	}
	return hits
}

// exported tells whether a function, and the type it is a method of, is visible outside its package.
func exported(fn *ast.FuncDecl) bool {
	return fn.Name.IsExported() && (fn.Recv == nil || ast.IsExported(receiver(fn.Recv.List[0].Type)))
}

// receiver is the name of a receiver's type without pointer and type parameters.
func receiver(typ ast.Expr) string {
	switch t := typ.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.ParenExpr:
		return receiver(t.X)
	}
	return ""
}

// badNames says nothing about what is inside.
var badNames = []string{"util", "utils", "common", "helper", "helpers", "type", "types", "model", "models", "misc"}

func checkPackageName(f File) []Hit {
	// internal/model is the reference model the random tests compare with, and says so by that name.
	if f.dir() == "internal/model" {
		return nil
	}
	for _, name := range []string{strings.TrimSuffix(f.AST.Name.Name, "_test"), path.Base(f.dir())} {
		if slices.Contains(badNames, name) {
			return []Hit{{f.at(f.AST.Name), "package " + name}}
		}
	}
	return nil
}

func checkPackageComment(files []File) (hits []Hit) {
	byDir := map[string][]File{}
	for _, f := range files {
		byDir[f.dir()] = append(byDir[f.dir()], f)
	}
	for _, dir := range slices.Sorted(maps.Keys(byDir)) {
		if in := byDir[dir]; !slices.ContainsFunc(in, opensPackage) {
			hits = append(hits, Hit{in[0].at(in[0].AST.Name), "package " + dir + " has no package comment"})
		}
	}
	return hits
}

func opensPackage(f File) bool {
	name := f.AST.Name.Name
	return f.AST.Doc != nil && (name == "main" || strings.HasPrefix(f.AST.Doc.Text(), "Package "+name+" "))
}

// The words are joined here so that a search of the tree for them finds only what is really left open.
var leftOpen = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|X` + `XX)\b`)

func checkLeftOpen(f File) []Hit { return f.match(leftOpen, "left open: ") }

// machinePath matches a path of the machine it was written on where it is not the end of a longer one.
var machinePath = regexp.MustCompile(`(?:^|[^\w/.~$})-])(/(?:home|root|work)/)`)

func checkMachinePath(f File) []Hit { return f.match(machinePath, "machine path: ") }

// match makes a hit of every line that matches.
func (f File) match(re *regexp.Regexp, what string) (hits []Hit) {
	number := 0
	for line := range bytes.Lines(f.Text) {
		number++
		if m := re.FindSubmatch(line); m != nil {
			hits = append(hits, Hit{f.line(number), what + string(m[1])})
		}
	}
	return hits
}
