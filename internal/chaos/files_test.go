package main

import (
	"encoding/binary"
	"path/filepath"
	"testing"

	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/bolt"
)

func count(n int) string { return string(binary.BigEndian.AppendUint64(nil, uint64(n))) }

// windowRow is the key of a row in a changelog.
func windowRow(key string, start int64) string {
	return string(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64([]byte(key), uint64(start)), 0))
}

// A file must hold what its changelog holds up to its offset, and nothing else.
func TestCheckFile(t *testing.T) {
	t.Parallel()
	newest := joinRetention.Milliseconds() + 1000
	counts := changelogOf{{1, "a"}: {5, count(3)}, {1, "b"}: {20, count(7)}, {2, "c"}: {1, count(1)}}
	rows := changelogOf{{1, "a"}: {5, "new"}, {1, "b"}: {6, ""}, {1, "c"}: {20, "later"}}
	windows := changelogOf{
		{1, windowRow("k", newest)}: {5, "new"}, {1, windowRow("k", 1)}: {1, "expired"}, {1, windowRow("k", newest+1)}: {20, "later"},
	}
	for _, c := range []struct {
		name    string
		log     changelogOf
		content map[string]string
		right   bool
	}{
		{"counts", counts, map[string]string{"a": count(3), "b": count(6)}, true},
		{"counts without the later row", counts, map[string]string{"a": count(3)}, true},
		{"a count lost", counts, map[string]string{"b": count(6)}, false},
		{"a count wrong", counts, map[string]string{"a": count(2), "b": count(6)}, false},
		{"a count ahead", counts, map[string]string{"a": count(3), "b": count(7)}, false},
		{"a count of another partition", counts, map[string]string{"a": count(3), "c": count(1)}, false},
		{"rows", rows, map[string]string{"a": "new", "c": "before"}, true},
		{"a deleted row", rows, map[string]string{"a": "new", "b": "old"}, false},
		{"a row lost", rows, map[string]string{}, false},
		{"a row of another partition", rows, map[string]string{"a": "new", "d": "other"}, false},
		{"windows", windows, map[string]string{windowRow("k", newest): "new"}, true},
		{"windows with an expired row", windows, map[string]string{windowRow("k", newest): "new", windowRow("k", 1): "expired"}, true},
		{"a row lost", windows, map[string]string{}, false},
		{"a row wrong", windows, map[string]string{windowRow("k", newest): "old"}, false},
		{"a row ahead", windows, map[string]string{windowRow("k", newest): "new", windowRow("k", newest+1): "later"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, local, window := t.TempDir(), "counts", c.log[rowAt{1, "a"}] == lastRow{}
			if c.log[rowAt{1, "a"}].value == "new" {
				local = "rows"
			}
			set := store.NewWriteSet()
			for key, value := range c.content {
				if window {
					local, key = "joined~window", "\x00"+key
				}
				set.Put([]byte(key), []byte(value), 1, nil)
			}
			b, err := bolt.Opener{}.Open(dir, local)
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Apply(store.Batch{Entries: set.Sorted(), Offset: 10}); err != nil {
				t.Fatal(err)
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			wrong, held, err := checkFile(filepath.Join(dir, local+".db"), local, window, 1, c.log)
			if err != nil || !held || len(wrong) == 0 != c.right {
				t.Errorf("held %v, wrong %v, %v", held, wrong, err)
			}
		})
	}
}
