package bolt_test

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/bolt"
)

// A scan that is not finished must not block the writer when the file grows,
// nor reads that come meanwhile.
func TestFieldReport45(t *testing.T) {
	t.Parallel()
	b, err := fast.Open(t.TempDir(), "s")
	must(t, err)
	l := store.NewLayered("s", b)
	defer func() { must(t, l.Close()) }()
	must(t, b.Apply(batch(0, 1000, "v", 1)))
	keys := 0
	must(t, l.Scan(store.Range{}, func(store.Pair) (bool, error) {
		if keys++; keys != 20 {
			return true, nil
		}
		applied := make(chan error)
		go func() { applied <- b.Apply(batch(1000, 7000, strings.Repeat("v", 8000), 2)) }() // 48 MB
		for {
			select {
			case err := <-applied:
				return true, err
			default:
				if _, _, ok, err := l.Get(nil, []byte("k0000500")); !ok || err != nil {
					t.Errorf("get meanwhile: %v, %v", ok, err)
					return false, err
				}
			}
		}
	}))
	if keys != 7000 { // live: the scan goes on into what was added
		t.Fatalf("%d keys", keys)
	}
}

func fileSize(t *testing.T, dir string) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, "s.db"))
	must(t, err)
	return info.Size()
}

// pageList returns where a file's two meta pages say that its list of free pages is. A commit that writes one takes the longer,
// the more pages are free.
func pageList(t *testing.T, dir string) (lists [2]uint64) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "s.db"))
	must(t, err)
	for i := range lists {
		lists[i] = binary.NativeEndian.Uint64(data[i*os.Getpagesize()+48:])
	}
	return lists
}

// Pages of replaced and deleted entries are used again: a file has room for what it
// holds and what a transaction touches, as the package comment says, and no more.
// Open shrinks a file that is mostly free.
func TestFieldReport47(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := open(t, bolt.Opener{Options: bolt.Options{NoSync: true, TxBytes: 1 << 30}}, dir)
	const n, step = 4000, 1 << 20
	value := strings.Repeat("v", 2000)
	must(t, b.Apply(batch(0, n, value, 1)))
	held := fileSize(t, dir)
	for round := range 100 { // one hundredth at a time
		must(t, b.Apply(batch(round*n/100, (round+1)*n/100, value, 2)))
	}
	if size := fileSize(t, dir); size > held+held/50+2*step {
		t.Errorf("small batches let the file grow from %d to %d", held, size)
	}
	for round := range int64(4) {
		must(t, b.Apply(batch(0, n, value, 3)))
		must(t, b.Apply(batch(0, n, "", 3)))
		must(t, b.Apply(batch(0, n, value, 4+round)))
	}
	if size := fileSize(t, dir); size > 2*held+2*step {
		t.Errorf("whole batches let the file grow from %d to %d", held, size)
	}
	must(t, b.Apply(batch(10, n, "", 8)))
	for i := range int64(100) { // small commits while most of the file is free
		must(t, b.Apply(batch(0, 1, value, 8+i)))
	}
	must(t, b.Apply(batch(0, 1, value, 8)))
	if lists := pageList(t, dir); lists != [2]uint64{math.MaxUint64, math.MaxUint64} {
		t.Errorf("commits write the list of free pages, at pages %d", lists)
	}
	must(t, b.Close())

	before := fileSize(t, dir)
	never := bolt.Opener{Options: bolt.Options{NoSync: true, CompactFree: -1, CompactSize: 1}}
	must(t, open(t, never, dir).Close())
	if fileSize(t, dir) != before {
		t.Error("compacted though told not to")
	}
	small := bolt.Opener{Options: bolt.Options{NoSync: true, CompactSize: 1 << 20}}
	b = open(t, small, dir)
	if after := fileSize(t, dir); after > before/4 {
		t.Errorf("compacted from %d to %d", before, after)
	}
	if offset, ok := b.Offset(); offset != 8 || !ok {
		t.Errorf("offset %d, %v", offset, ok)
	}
	pairs, err := b.Scan(nil, store.Range{}, n)
	must(t, err)
	if len(pairs) != 10 || string(pairs[9].Value) != value {
		t.Errorf("%d keys left", len(pairs))
	}
	must(t, b.Apply(batch(0, 100, value, 9)))
	must(t, b.Close())
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

// A read between two Applies must see the later one: the shared transaction is
// not older than the last batch.
func TestReadsAreFresh(t *testing.T) {
	t.Parallel()
	b := open(t, fast, t.TempDir())
	for i := range 20 {
		want := strings.Repeat("x", i+1)
		must(t, b.Apply(batch(0, 50, want, int64(i))))
		for range 2 {
			got, _, ok, err := b.Get(nil, []byte("k0000049"))
			must(t, err)
			if !ok || string(got) != want {
				t.Fatalf("%q, want %q", got, want)
			}
		}
	}
}

func TestGetDoesNotAllocate(t *testing.T) {
	b := open(t, fast, t.TempDir())
	must(t, b.Apply(batch(0, 5000, "v", 1)))
	key := []byte("k0002500")
	buf := make([]byte, 0, 100)
	get := func() {
		if _, _, ok, err := b.Get(buf, key); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	get()
	if n := testing.AllocsPerRun(100, get); n > 0 {
		t.Fatalf("%v allocations", n)
	}
}
