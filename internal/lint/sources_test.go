package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// source is a Go file of the module that is no test.
type source struct {
	path   string // from the module's root
	folder string // "" for the root
	fset   *token.FileSet
	syntax *ast.File
}

func (s source) position(n ast.Node) string {
	p := s.fset.Position(n.Pos())
	p.Filename = s.path
	return p.String()
}

func (s source) line(p token.Pos) int { return s.fset.Position(p).Line }

var parsed = sync.OnceValues(parse)

func sources(t *testing.T) []source {
	t.Helper()
	files, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("only %d files found: is this the module's root?", len(files))
	}
	return files
}

func parse() ([]source, error) {
	const root = "../.."
	var files []source
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		syntax, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		folder := filepath.ToSlash(filepath.Dir(rel))
		if folder == "." {
			folder = ""
		}
		files = append(files, source{path: filepath.ToSlash(rel), folder: folder, fset: fset, syntax: syntax})
		return nil
	})
	return files, err
}
