package bolt_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/bolt"
	"github.com/millrace-streams/millrace/store/storetest"
)

// inParts cuts every batch into transactions of 63 entries.
var inParts = bolt.Opener{Options: bolt.Options{NoSync: true, TxBytes: 1}}

func TestBackendInParts(t *testing.T) {
	t.Parallel()
	storetest.Run(t, inParts, storetest.Features{Durable: true, CrashCopy: true})
}

// halves returns a store with 500 entries at offset 10, a batch for it that changes,
// deletes and adds, and what it holds before and after that.
func halves(t *testing.T, dir string) (b store.Backend, change store.Batch, before, after map[string]string) {
	t.Helper()
	b = open(t, inParts, dir)
	before = map[string]string{}
	w := store.NewWriteSet()
	for i := range 500 {
		key := fmt.Sprintf("k%04d", 2*i)
		before[key] = "before"
		w.Put([]byte(key), []byte("before"), 7, nil)
	}
	must(t, b.Apply(store.Batch{Entries: w.Entries(), Offset: 10}))
	after = maps.Clone(before)
	w = store.NewWriteSet()
	for i := range 600 {
		key := fmt.Sprintf("k%04d", 900-i)
		if i%3 == 0 {
			w.Delete([]byte(key), 7, nil)
			delete(after, key)
			continue
		}
		after[key] = fmt.Sprint("after", i)
		w.Put([]byte(key), []byte(after[key]), 7, nil)
	}
	return b, store.Batch{Entries: w.Entries(), Offset: 20}, before, after
}

func holds(t *testing.T, b store.Backend, offset int64, want map[string]string) {
	t.Helper()
	if got, _ := b.Offset(); got != offset {
		t.Fatalf("offset %d, want %d", got, offset)
	}
	pairs, err := b.Scan(nil, store.Range{}, 1<<20)
	must(t, err)
	got := map[string]string{}
	for _, p := range pairs {
		got[string(p.Key)] = string(p.Value)
	}
	if !maps.Equal(got, want) {
		t.Fatalf("%d entries, want the %d of offset %d", len(got), len(want), offset)
	}
}

func copied(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	must(t, os.CopyFS(to, os.DirFS(dir)))
	return to
}

// A process that dies between two transactions of a batch leaves all of it: who
// opens the file next does the rest. One that dies before the first leaves nothing.
func TestBatchInPartsIsWhole(t *testing.T) {
	t.Parallel()
	for parts := 0; ; parts++ {
		dir := t.TempDir()
		b, change, before, after := halves(t, dir)
		done, err := bolt.ApplyParts(b, change, parts)
		must(t, err)
		left := copied(t, dir)
		again := open(t, fast, left)
		if parts == 0 {
			holds(t, again, 10, before)
		} else {
			holds(t, again, 20, after)
		}
		must(t, again.Close())
		if files, _ := os.ReadDir(left); len(files) != 1 {
			t.Fatalf("left behind: %v", files)
		}
		if done {
			if parts < 5 {
				t.Errorf("done in %d parts", parts)
			}
			break
		}
	}
}

// What a failed Apply has left is finished by the next one.
func TestNextBatchFinishesTheOneBefore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, change, _, after := halves(t, dir)
	if done, err := bolt.ApplyParts(b, change, 2); done || err != nil {
		t.Fatal(done, err)
	}
	must(t, b.Apply(store.Batch{Offset: 30}))
	holds(t, b, 30, after)
	must(t, b.Close())
	holds(t, open(t, fast, dir), 30, after)
}

// Half a batch without the rest is damage, whatever happened to the rest.
func TestDamagedRedoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, change, _, after := halves(t, dir)
	if done, err := bolt.ApplyParts(b, change, 2); done || err != nil {
		t.Fatal(done, err)
	}
	must(t, b.Close())
	redo := filepath.Join(dir, "s.db.redo")
	whole, err := os.ReadFile(redo)
	must(t, err)
	flipped := append([]byte(nil), whole...)
	flipped[len(flipped)/2] ^= 4
	for name, data := range map[string][]byte{"missing": nil, "empty": {}, "cut": whole[:len(whole)-1], "flipped": flipped, "twice": append(whole[:len(whole):len(whole)], whole...)} {
		must(t, os.Remove(redo))
		if data != nil {
			must(t, os.WriteFile(redo, data, 0o600))
		}
		at := copied(t, dir)
		if _, err := fast.Open(at, "s"); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("%s: got %v, want ErrCorrupt", name, err)
		}
		must(t, os.WriteFile(redo, whole, 0o600))
		if _, err := fast.SetAside(at, "s"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(at, "s.db.redo")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the redo file is still there: %v", name, err)
		}
	}
	again := open(t, fast, dir)
	holds(t, again, 20, after)
	must(t, again.Close())
	must(t, os.WriteFile(redo, whole, 0o600)) // of a batch that is done
	holds(t, open(t, fast, dir), 20, after)
	if _, err := os.Stat(redo); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the redo file is still there: %v", err)
	}
}
