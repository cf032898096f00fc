package tidy

import (
	"go/ast"
	"go/token"
	"strings"
)

func checkDocComment(f File) (hits []Hit) {
	if !f.public() {
		return nil
	}
	check := func(name *ast.Ident, doc *ast.CommentGroup) {
		if name.IsExported() && !opensWith(doc, name.Name) {
			hits = append(hits, Hit{f.at(name), "no comment that starts with " + name.Name})
		}
	}
	for _, fn := range f.functions() {
		if exported(fn) {
			check(fn.Name, fn.Doc)
		}
	}
	for _, iface := range f.interfaces() {
		for _, m := range methods(iface) {
			// An interface of one line is told by its own comment.
			if f.lines(iface) > 1 {
				check(m.Names[0], m.Doc)
			}
		}
	}
	f.declared(func(gen *ast.GenDecl, spec ast.Spec) {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			check(s.Name, docOf(gen, s.Doc))
		case *ast.ValueSpec:
			if inGroup(gen, s) {
				return
			}
			for _, name := range s.Names {
				check(name, docOf(gen, s.Doc))
			}
		}
	})
	return hits
}

// declared visits the types, constants and variables of the file with the declaration they stand in.
func (f File) declared(visit func(*ast.GenDecl, ast.Spec)) {
	for _, decl := range f.AST.Decls {
		if gen, ok := decl.(*ast.GenDecl); ok {
			for _, spec := range gen.Specs {
				visit(gen, spec)
			}
		}
	}
}

// docOf is the comment of a declared name: in a declaration without brackets it stands on the declaration.
func docOf(gen *ast.GenDecl, doc *ast.CommentGroup) *ast.CommentGroup {
	if gen.Lparen == token.NoPos {
		return gen.Doc
	}
	return doc
}

// inGroup tells whether a const or var is documented as one of a group: the group has a comment, or the line has one of its own.
func inGroup(gen *ast.GenDecl, s *ast.ValueSpec) bool {
	return gen.Lparen != token.NoPos && (gen.Doc != nil || s.Doc != nil || s.Comment != nil)
}

// opensWith tells whether the first word of a comment is the name, be it with an apostrophe or a comma after it.
func opensWith(doc *ast.CommentGroup, name string) bool {
	rest, ok := strings.CutPrefix(doc.Text(), name)
	return ok && (rest == "" || strings.ContainsRune(" ,:.'’()[\n", []rune(rest)[0]))
}

// interfaces are the exported interfaces of the file.
func (f File) interfaces() (ifaces []*ast.InterfaceType) {
	f.declared(func(_ *ast.GenDecl, spec ast.Spec) {
		typ, ok := spec.(*ast.TypeSpec)
		if !ok || !typ.Name.IsExported() {
			return
		}
		if iface, ok := typ.Type.(*ast.InterfaceType); ok {
			ifaces = append(ifaces, iface)
		}
	})
	return ifaces
}

// methods are the exported methods an interface spells out.
func methods(iface *ast.InterfaceType) (fields []*ast.Field) {
	for _, m := range iface.Methods.List {
		if _, ok := m.Type.(*ast.FuncType); ok && m.Names[0].IsExported() {
			fields = append(fields, m)
		}
	}
	return fields
}
