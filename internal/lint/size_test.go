package lint

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// Budgets. What is longer says more than one thing.
const (
	fileLines        = 500
	functionLines    = 60
	interfaceMethods = 6
)

func TestSizes(t *testing.T) {
	for _, f := range sources(t) {
		if n := f.fset.File(f.syntax.Pos()).LineCount(); n > fileLines {
			t.Errorf("%s has %d lines, more than %d", f.path, n, fileLines)
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if lines := f.line(n.End()) - f.line(n.Pos()) + 1; lines > functionLines {
					t.Errorf("%s: %s has %d lines, more than %d", f.position(n), n.Name.Name, lines, functionLines)
				}
			case *ast.InterfaceType:
				if n.Methods.NumFields() > interfaceMethods {
					t.Errorf("%s: an interface of %d methods, more than %d", f.position(n), n.Methods.NumFields(), interfaceMethods)
				}
			}
			return true
		})
	}
}

func TestExportedNamesAreDocumented(t *testing.T) {
	documented := map[string]bool{}
	for _, f := range sources(t) {
		documented[f.folder] = documented[f.folder] || f.syntax.Doc != nil
		if f.syntax.Name.Name == "main" {
			continue
		}
		for _, d := range f.syntax.Decls {
			for _, name := range undocumented(d) {
				t.Errorf("%s: %s has no doc comment", f.position(d), name)
			}
		}
	}
	for folder, ok := range documented {
		if !ok {
			t.Errorf("package %q has no doc comment", folder)
		}
	}
}

// undocumented returns the exported names of a declaration that have no comment, neither their own nor their group's.
func undocumented(d ast.Decl) []string {
	var names []string
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && (d.Recv == nil || exportedReceiver(d.Recv)) {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		if d.Doc != nil || d.Tok == token.IMPORT {
			return nil
		}
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Doc == nil && s.Name.IsExported() {
					names = append(names, s.Name.Name)
				}
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if s.Doc == nil && s.Comment == nil && n.IsExported() {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	return names
}

func exportedReceiver(r *ast.FieldList) bool {
	x := r.List[0].Type
	for {
		switch y := x.(type) {
		case *ast.StarExpr:
			x = y.X
		case *ast.IndexExpr:
			x = y.X
		case *ast.IndexListExpr:
			x = y.X
		case *ast.Ident:
			return y.IsExported()
		default:
			return false
		}
	}
}

// foreignNames are names that an interface of somebody else's asks for.
var foreignNames = map[string]string{"GetAll": "go-metrics' Registry"}

// Names that say nothing.
func TestNames(t *testing.T) {
	for _, f := range sources(t) {
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			fn, ok := n.(*ast.FuncDecl)
			if ok && fn.Recv != nil && fn.Name.IsExported() && strings.HasPrefix(fn.Name.Name, "Get") && fn.Type.Params.NumFields() == 0 && foreignNames[fn.Name.Name] == "" {
				t.Errorf("%s: %s: a getter is named without Get", f.position(fn), fn.Name.Name)
			}
			return true
		})
		for _, bad := range []string{"util", "manager", "impl", "helper", "common"} {
			if strings.Contains(strings.ToLower(f.path), bad) {
				t.Errorf("%s: %q names nothing", f.path, bad)
			}
		}
	}
}
