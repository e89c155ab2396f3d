package oracle_test

import (
	"bufio"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/millrace-streams/millrace/oracle"
	"github.com/millrace-streams/millrace/oracle/scenario"
)

// golden is a scenario with the answer of Kafka Streams: a line of a file in testdata.
type golden struct {
	Scenario scenario.Scenario `json:"scenario"`
	Answer   scenario.Answer   `json:"answer"`
}

// goldens reads testdata, by file.
func goldens(t *testing.T) map[string][]golden {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(paths) == 0 {
		t.Fatal("no testdata", err)
	}
	files := map[string][]golden{}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		in := bufio.NewScanner(f)
		in.Buffer(nil, 1<<20)
		for in.Scan() {
			var g golden
			if err := json.Unmarshal(in.Bytes(), &g); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			files[filepath.Base(path)] = append(files[filepath.Base(path)], g)
		}
		if in.Err() != nil {
			t.Fatal(in.Err())
		}
	}
	return files
}

func sorted(files map[string][]golden) []string { return slices.Sorted(maps.Keys(files)) }

// TestGolden compares with the committed answers of Kafka Streams.
func TestGolden(t *testing.T) {
	for file, list := range goldens(t) {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			for _, g := range list {
				got, err := oracle.Millrace(g.Scenario, nil)
				if err != nil {
					t.Errorf("%v\n%v", g.Scenario, err)
				} else if diff := oracle.Compare(g.Answer, got); diff != "" {
					t.Errorf("%v\n%s", g.Scenario, diff)
				}
			}
		})
	}
}
