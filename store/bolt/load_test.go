package bolt_test

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/bolt"
)

var errCut = errors.New("cut short")

// rows are n rows in order, with a value; after some of them the reader's process dies, unless after is negative.
func rows(n, after int, value string) iter.Seq[store.Pair] {
	return func(yield func(store.Pair) bool) {
		for i := range n {
			if i == after {
				panic(errCut)
			}
			if !yield(store.Pair{Key: fmt.Appendf(nil, "key-%06d", i), Value: []byte(value), Timestamp: int64(i)}) {
				return
			}
		}
	}
}

// A first load that was cut short counts for nothing.
func TestFirstLoadCutShort(t *testing.T) {
	t.Parallel()
	const n = 20_000
	opener := bolt.Opener{Options: bolt.Options{NoSync: true, TxBytes: 1 << 18}} // a fifteenth of it
	dir := t.TempDir()
	b := open(t, opener, dir)
	if err := b.Load(rows(n, n/2, "old"), 1); err == nil {
		t.Fatal("no error")
	}
	must(t, b.Close())
	b = open(t, opener, dir)
	if all, err := b.Scan(nil, store.Range{}, 1); err != nil || len(all) != 0 {
		t.Fatalf("%d rows, %v", len(all), err)
	}
	if _, ok := b.Offset(); ok {
		t.Fatal("a file that was loaded in part has an offset")
	}
	for load, want := range []int{n / 4, n / 3} { // the first one, and one on top of it
		must(t, b.Load(rows(want, -1, fmt.Sprint(load)), int64(load)))
		must(t, b.Close())
		b = open(t, opener, dir) // checks every entry, and that there are no others
		all, err := b.Scan(nil, store.Range{}, n)
		must(t, err)
		if at, ok := b.Offset(); len(all) != want || string(all[0].Value) != fmt.Sprint(load) || at != int64(load) || !ok {
			t.Fatalf("load %d: %d rows at %d, %v", load, len(all), at, ok)
		}
	}
}

// A load onto what a file holds, in many transactions, takes a fraction of the memory of its rows; what was there and is not
// written stays, what is deleted goes.
func TestLoadOntoAFile(t *testing.T) {
	t.Parallel()
	opener := bolt.Opener{Options: bolt.Options{NoSync: true, TxBytes: 1 << 18}}
	dir := t.TempDir()
	b := open(t, opener, dir)
	must(t, b.Apply(store.Batch{Entries: []*store.Entry{{Key: "key-000003", Value: []byte("old")}, {Key: "stays", Value: []byte("old")}}, Offset: 1}))
	const n = 20_000
	must(t, b.Load(func(yield func(store.Pair) bool) {
		var key, value []byte // overwritten, as rows may be
		for i := range n {
			key, value = fmt.Appendf(key[:0], "key-%06d", i), fmt.Appendf(value[:0], "new-%d", i)
			p := store.Pair{Key: key, Value: value, Timestamp: int64(i)}
			if i == 3 || i == n-1 {
				p.Value = nil
			}
			if !yield(p) {
				return
			}
		}
	}, 2))
	must(t, b.Close())
	want := map[string]string{"stays": "old"}
	for i := range n - 1 {
		if i != 3 {
			want[fmt.Sprintf("key-%06d", i)] = fmt.Sprintf("new-%d", i)
		}
	}
	holds(t, open(t, opener, dir), 2, want)
	if _, err := os.Stat(filepath.Join(dir, "s.db.redo")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a redo file is left: %v", err)
	}
}
