// Package tidy holds the house rules that a machine can check; its test runs them over the tree.
package tidy

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// Module is the path of the module the rules are for.
const Module = "github.com/foundling-go/foundling"

// File is one text file of the tree; AST is set for Go files that the go command would see.
type File struct {
	Path string // slashes, from the root
	Text []byte
	AST  *ast.File
	fset *token.FileSet
}

// Load reads the text files below root: Go files as the go command sees them (testdata and names that begin with "_" or "."
// are text only), and nothing of .git or of nested modules. A Go file that does not parse is an error.
func Load(root fs.FS) ([]File, error) {
	var files []File
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || nested(root, name)):
			return fs.SkipDir
		case !d.Type().IsRegular() || !readable.MatchString(name):
			return nil
		}
		f, err := read(root, name)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		files = append(files, f)
		return nil
	})
	return files, err
}

// readable names the text files people write: by extension, or scripts and licences without one.
var readable = regexp.MustCompile(`(^|/)([^./]+|[^/]+\.(go|md|sql|sh|mod|txt|txtar|golden|mmd|dot|json|ya?ml))$`)

func nested(root fs.FS, dir string) bool {
	if dir == "." {
		return false
	}
	_, err := fs.Stat(root, path.Join(dir, "go.mod"))
	return err == nil
}

func read(root fs.FS, name string) (File, error) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return File{}, err
	}
	f := File{Path: name, Text: text, fset: token.NewFileSet()}
	if bytes.IndexByte(text, 0) >= 0 {
		f.Text = nil // a binary without an extension
	}
	if path.Ext(name) == ".go" && !hidden(name) {
		f.AST, err = parser.ParseFile(f.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	}
	return f, err
}

// hidden tells whether the go command leaves the file out.
func hidden(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "testdata" || strings.HasPrefix(part, "_") || strings.HasPrefix(part, ".") {
			return true
		}
	}
	return false
}

// dir is the folder of the file's package, "." for the root package.
func (f File) dir() string { return path.Dir(f.Path) }

func (f File) test() bool { return strings.HasSuffix(f.Path, "_test.go") }

// public tells whether users can import the file's package.
func (f File) public() bool {
	return f.AST.Name.Name != "main" && !f.test() && !strings.Contains("/"+f.Path, "/internal/")
}

// at is the place of a node as file:line.
func (f File) at(n ast.Node) string { return f.line(f.fset.Position(n.Pos()).Line) }

func (f File) line(n int) string { return f.Path + ":" + strconv.Itoa(n) }

// lines is how many lines the node covers, first and last included.
func (f File) lines(n ast.Node) int {
	return f.fset.Position(n.End()).Line - f.fset.Position(n.Pos()).Line + 1
}

// imports maps each import to the path it names.
func (f File) imports() map[*ast.ImportSpec]string {
	paths := make(map[*ast.ImportSpec]string, len(f.AST.Imports))
	for _, spec := range f.AST.Imports {
		// The parser has checked the literal.
		paths[spec], _ = strconv.Unquote(spec.Path.Value)
	}
	return paths
}
