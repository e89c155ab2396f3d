package statedir

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace-streams/millrace/processor"
)

func TestOffsetsOutliveTheProcess(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	task, other := processor.TaskID{Subtopology: 1, Partition: 12}, processor.TaskID{}
	for _, name := range []string{"1_12", "0_0", "1_12x", "no task"} {
		if err := os.MkdirAll(filepath.Join(root, "app", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := Open(root, "app")
	if err != nil {
		t.Fatal(err)
	}
	o := dir.Offsets()
	o.Keep(task, "a store", 40)
	o.Keep(task, "b", 2)
	o.Keep(task, "a store", 50)
	o.Keep(other, "c", 0)
	o.Keep(processor.TaskID{Partition: 99}, "d", 1) // its folder is gone
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	if dir, err = Open(root, "app"); err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	o = dir.Offsets()
	wants(t, o, task, map[string]int64{"a store": 50, "b": 2})
	wants(t, o, other, map[string]int64{"c": 0})
	o.Keep(task, "a store", -1)
	if err := os.WriteFile(filepath.Join(root, "app", "0_0", "offsets"), []byte("12\nx c\n-4 d\n7 e\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	o = dir.Offsets()
	wants(t, o, task, map[string]int64{"b": 2})
	wants(t, o, other, map[string]int64{"e": 7})
}

// wants that of the stores a store, b, c, d and e these are known.
func wants(t *testing.T, o *Offsets, id processor.TaskID, want map[string]int64) {
	t.Helper()
	got := map[string]int64{}
	for _, store := range []string{"a store", "b", "c", "d", "e"} {
		if at, ok := o.Of(id, store); ok {
			got[store] = at
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("task %s: %v, want %v", id, got, want)
	}
}
