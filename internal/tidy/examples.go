package tidy

import (
	"go/ast"
	"go/doc"
	"slices"
	"strings"
)

// shown are the packages of which every exported name has an Example that runs.
var shown = []string{".", "foundlingtest"}

// examples are what the Examples of one package show.
type examples struct {
	of   map[string]bool // names with an Example of their own, as in "Client" and "Client.Get"
	uses map[string]bool // names of the package that an Example mentions
}

// checkExamples asks for an Example of each exported function, method and type, and for one that mentions each exported constant and variable:
// godoc shows no Examples of these.
func checkExamples(files []File) (hits []Hit) {
	for _, dir := range shown {
		in := slices.DeleteFunc(slices.Clone(files), func(f File) bool { return f.dir() != dir })
		e := examplesOf(in)
		for _, f := range in {
			if !f.test() {
				hits = append(hits, f.unshown(e)...)
			}
		}
	}
	return hits
}

// examplesOf gathers the Examples that run: those that say what they print.
func examplesOf(files []File) examples {
	e := examples{of: map[string]bool{}, uses: map[string]bool{}}
	for _, f := range files {
		if !f.test() {
			continue
		}
		name := strings.TrimSuffix(f.AST.Name.Name, "_test")
		for _, example := range doc.Examples(f.AST) {
			if example.Output == "" && !example.EmptyOutput {
				continue
			}
			e.of[subject(example.Name)] = true
			ast.Inspect(example.Code, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := sel.X.(*ast.Ident); ok && x.Name == name {
						e.uses[sel.Sel.Name] = true
					}
				}
				return true
			})
		}
	}
	return e
}

// subject is the name that an Example is of: without its suffix, which begins with a small letter.
func subject(example string) string {
	parts := strings.Split(example, "_")
	if n := len(parts); n > 1 && !ast.IsExported(parts[n-1]) {
		parts = parts[:n-1]
	}
	return strings.Join(parts, ".")
}

// unshown is the exported names of the file without an Example.
func (f File) unshown(e examples) (hits []Hit) {
	need := func(at ast.Node, name string) {
		if !e.of[name] {
			hits = append(hits, Hit{f.at(at), "no Example of " + name})
		}
	}
	for _, fn := range f.functions() {
		switch {
		case !exported(fn):
		case fn.Recv == nil:
			need(fn.Name, fn.Name.Name)
		default:
			need(fn.Name, receiver(fn.Recv.List[0].Type)+"."+fn.Name.Name)
		}
	}
	f.declared(func(_ *ast.GenDecl, spec ast.Spec) {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() {
				need(s.Name, s.Name.Name)
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if name.IsExported() && !e.uses[name.Name] {
					hits = append(hits, Hit{f.at(name), "no Example mentions " + name.Name})
				}
			}
		}
	})
	return hits
}
