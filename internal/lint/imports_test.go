package lint

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/millrace-streams/millrace"

// allowed says which folders of the module the code (not the tests) of a folder may import.
var allowed = map[string][]string{
	"serde":                {},
	"serde/avro":           {"serde"},
	"store":                {"serde", "internal/keyorder"},
	"store/memory":         {"store"},
	"store/bolt":           {"store"},
	"store/storetest":      {"store", "serde", "internal/seed"},
	"processor":            {"store", "serde"},
	"topology":             {"processor", "store", "serde"},
	"changelog":            {"processor", "store", "internal/keyorder"},
	"internal/keyorder":    {},
	"eos":                  {"processor", "store"},
	"internal/assign":      {"processor"},
	"internal/runtime":     {"processor", "store", "changelog", "eos"},
	"internal/sim":         {"processor", "store", "changelog", "eos", "internal/runtime", "internal/assign", "topology"},
	"bench/internal/model": {"processor", "internal/assign"},
	"internal/kafka":       {"processor", "store", "changelog", "eos", "internal/runtime", "internal/assign"},
}

// owners says which folders alone may import a library.
var owners = map[string][]string{
	"go.etcd.io/bbolt":      {"store/bolt"},
	"github.com/hamba/avro": {"serde/avro"},
	"github.com/IBM/sarama": {"", "internal/kafka", "internal/topicread", "internal/brokertest", "internal/chaos",
		"examples/internal/example", "bench/internal/wire", "bench/internal/contender"},
	"github.com/twmb/franz-go":                 {"internal/embedded"},
	"github.com/testcontainers/testcontainers": {"internal/brokertest"},
}

// pure folders use no socket, file, goroutine, sleep or wall clock.
var pure = []string{"serde", "serde/avro", "store", "store/memory", "processor", "topology", "changelog", "eos", "internal/assign", "internal/sim", "bench/internal/model"}

func TestImports(t *testing.T) {
	for _, f := range sources(t) {
		for _, spec := range f.syntax.Imports {
			name := strings.Trim(spec.Path.Value, `"`)
			if inner, ok := strings.CutPrefix(name, module+"/"); ok {
				if may, ruled := allowed[f.folder]; ruled && !slices.Contains(may, inner) {
					t.Errorf("%s imports %s: may import only %v", f.path, inner, may)
				}
			}
			for library, folders := range owners {
				if strings.HasPrefix(name, library) && !slices.Contains(folders, f.folder) {
					t.Errorf("%s imports %s: only %q may", f.path, name, folders)
				}
			}
			if slices.Contains(pure, f.folder) && slices.Contains([]string{"net", "os", "io/ioutil", "os/exec", "sync"}, name) && !(f.folder == "store/memory" && name == "sync") {
				t.Errorf("%s imports %s: the folder is pure", f.path, name)
			}
		}
	}
}

func TestPureFoldersHaveNoClockAndNoGoroutine(t *testing.T) {
	for _, f := range sources(t) {
		if !slices.Contains(pure, f.folder) {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: starts a goroutine: the folder is pure", f.position(n))
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "NewTimer", "NewTicker", "Tick", "AfterFunc"}, n.Sel.Name) {
					t.Errorf("%s: uses time.%s: the folder is pure", f.position(n), n.Sel.Name)
				}
			}
			return true
		})
	}
}

// TestRuledFoldersExist keeps the tables above from outliving a folder.
func TestRuledFoldersExist(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range sources(t) {
		seen[path.Clean(f.folder)] = true
	}
	for folder := range allowed {
		if !seen[folder] {
			t.Errorf("the rules name %s, which has no code", folder)
		}
	}
}
