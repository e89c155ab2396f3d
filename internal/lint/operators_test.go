package lint

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestOperatorsPage keeps docs/operators.md whole: it names each function of package topology, and no example that there is not.
func TestOperatorsPage(t *testing.T) {
	data, err := os.ReadFile("../../docs/operators.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, word := range regexp.MustCompile(`\w+`).FindAllString(string(data), -1) {
		named[word] = true
	}
	for _, f := range sources(t) {
		if f.folder != "topology" {
			continue
		}
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.IsExported() && !named[fn.Name.Name] {
				t.Errorf("docs/operators.md says nothing of topology.%s", fn.Name.Name)
			}
		}
	}
	examples := examplesOf(t, "../../topology")
	for word := range named {
		if strings.HasPrefix(word, "Example") && word != "Examples" && !examples[word] {
			t.Errorf("docs/operators.md names %s, which does not exist", word)
		}
	}
}

// examplesOf returns the names of the examples in the tests of a folder.
func examplesOf(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(folder + "/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Example\w*)\(\)`).FindAllSubmatch(data, -1) {
			found[string(m[1])] = true
		}
	}
	return found
}
