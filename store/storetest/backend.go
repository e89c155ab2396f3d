package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/millrace-streams/millrace/store"
)

func wantOffset(t *testing.T, b store.Backend, want int64, wantOK bool) {
	t.Helper()
	if got, ok := b.Offset(); ok != wantOK || got != want {
		t.Fatalf("offset %d, %v; want %d, %v", got, ok, want, wantOK)
	}
}

func wantValue(t *testing.T, b store.Backend, key, want string) {
	t.Helper()
	got, ts, ok, err := b.Get(nil, []byte(key))
	check(t, err)
	if !ok || string(got) != want || ts != 7 {
		t.Fatalf("get %q: %q at %d, %v; want %q at 7", key, got, ts, ok, want)
	}
}

func wantAbsent(t *testing.T, b store.Backend, key string) {
	t.Helper()
	if got, _, ok, err := b.Get(nil, []byte(key)); ok || err != nil {
		t.Fatalf("get %q: %q, %v; want nothing", key, got, err)
	}
}

func testOffset(t *testing.T, opener store.Opener, _ Features) {
	b := open(t, opener, t.TempDir(), "s")
	wantOffset(t, b, 0, false)
	apply(t, b, -1, pair("a", "1"))
	wantOffset(t, b, 0, false)
	apply(t, b, 0)
	wantOffset(t, b, 0, true)
	apply(t, b, 12)
	apply(t, b, -1, pair("a", "2"))
	wantOffset(t, b, 12, true)
	wantValue(t, b, "a", "2")
}

func testGetAppends(t *testing.T, opener store.Opener, _ Features) {
	b := open(t, opener, t.TempDir(), "s")
	apply(t, b, 1, pair("k", "value"), pair("empty", ""), pair("", "empty key"))
	got, _, ok, err := b.Get([]byte("dst-"), []byte("k"))
	check(t, err)
	if !ok || string(got) != "dst-value" {
		t.Fatalf("%q, %v", got, ok)
	}
	got, _, ok, err = b.Get([]byte("dst-"), []byte("absent"))
	if ok || string(got) != "dst-" || err != nil {
		t.Fatalf("%q, %v, %v", got, ok, err)
	}
	wantValue(t, b, "empty", "")
	wantValue(t, b, "", "empty key")
	apply(t, b, 2, store.Pair{Key: []byte("")}, store.Pair{Key: []byte("absent")})
	wantAbsent(t, b, "")
	wantAbsent(t, b, "absent")
}

func scanKeys(t *testing.T, b store.Backend, r store.Range, limit int) []string {
	t.Helper()
	pairs, err := b.Scan(nil, r, limit)
	check(t, err)
	keys := []string{}
	for _, p := range pairs {
		if p.Key == nil || p.Value == nil {
			t.Fatalf("scan: nil in %v", p)
		}
		keys = append(keys, string(p.Key))
	}
	return keys
}

func testScanBounds(t *testing.T, opener store.Opener, _ Features) {
	b := open(t, opener, t.TempDir(), "s")
	if got := scanKeys(t, b, store.Range{}, 10); len(got) > 0 {
		t.Fatalf("empty backend: %q", got)
	}
	apply(t, b, 1, pair("", ""), pair("a", ""), pair("b", "x"), pair("bb", ""), pair("\xff\xff", ""))
	all := []string{"", "a", "b", "bb", "\xff\xff"}
	bound := func(s string) []byte { return []byte(s) }
	tests := []struct {
		from, to []byte
		limit    int
		want     []string
	}{
		{nil, nil, 10, all},
		{bound(""), nil, 10, all},
		{nil, bound(""), 10, nil},
		{bound("a"), bound("a"), 10, nil},
		{bound("b"), bound("a"), 10, nil},
		{bound("a"), bound("b"), 10, all[1:2]},
		{bound("a"), bound("b\x00"), 10, all[1:3]},
		{bound("aa"), bound("bc"), 10, all[2:4]},
		{bound("c"), nil, 10, all[4:]},
		{bound("\xff\xff\x00"), nil, 10, nil},
		{nil, bound("zz"), 10, all[:4]},
		{nil, nil, 0, nil},
		{nil, nil, 5, all},
	}
	for _, test := range tests {
		r := store.Range{From: test.from, To: test.to}
		if got := scanKeys(t, b, r, test.limit); !slices.Equal(got, test.want) {
			t.Errorf("[%q, %q) limit %d: %q, want %q", test.from, test.to, test.limit, got, test.want)
		}
		r.Reverse = true
		want := slices.Clone(test.want)
		slices.Reverse(want)
		if got := scanKeys(t, b, r, test.limit); !slices.Equal(got, want) {
			t.Errorf("[%q, %q) limit %d, reverse: %q, want %q", test.from, test.to, test.limit, got, want)
		}
	}
	if got := scanKeys(t, b, store.Range{Reverse: true}, 2); !slices.Equal(got, []string{"\xff\xff", "bb"}) {
		t.Errorf("last two: %q", got)
	}
}

// A scan in pieces sees each key once, and its pairs stay as they are.
func testScanGoesOn(t *testing.T, opener store.Opener, _ Features) {
	b := open(t, opener, t.TempDir(), "s")
	const n = 1000
	var pairs []store.Pair
	for i := range n {
		pairs = append(pairs, pair(fmt.Sprintf("k%04d", i), fmt.Sprint(i)))
	}
	apply(t, b, 1, pairs...)
	var got []store.Pair
	for r := (store.Range{}); ; {
		before := len(got)
		var err error
		got, err = b.Scan(got, r, 64)
		check(t, err)
		if len(got)-before < 64 {
			break
		}
		r.From = append(slices.Clone(got[len(got)-1].Key), 0)
	}
	for i := range pairs {
		pairs[i].Value = []byte("overwritten by a later batch")
	}
	apply(t, b, 2, pairs...)
	if len(got) != n {
		t.Fatalf("%d pairs", len(got))
	}
	for i, p := range got {
		if string(p.Key) != fmt.Sprintf("k%04d", i) || string(p.Value) != fmt.Sprint(i) || p.Timestamp != 7 {
			t.Fatalf("pair %d: %q=%q at %d", i, p.Key, p.Value, p.Timestamp)
		}
	}
}

// The order of a batch is the backend's business.
func testApplyUnsorted(t *testing.T, opener store.Opener, _ Features) {
	b := open(t, opener, t.TempDir(), "s")
	es := entries(pair("a", "1"), pair("b", "2"), pair("c", "3"))
	slices.Reverse(es)
	check(t, b.Apply(store.Batch{Entries: es, Offset: 1}))
	if got := scanKeys(t, b, store.Range{}, 10); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Fatalf("%q", got)
	}
}

func testClosed(t *testing.T, opener store.Opener, _ Features) {
	b := open(t, opener, t.TempDir(), "s")
	check(t, b.Close())
	check(t, b.Close())
	_, _, _, getErr := b.Get(nil, []byte("k"))
	_, scanErr := b.Scan(nil, store.Range{}, 1)
	applyErr := b.Apply(store.Batch{})
	for _, err := range []error{getErr, scanErr, applyErr} {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	}
}

// While batches are applied, readers see each key as before or as after.
func testConcurrentReaders(t *testing.T, opener store.Opener, _ Features) {
	b := open(t, opener, t.TempDir(), "s")
	const keys, batches = 300, 20
	write := func(batch int) error {
		var pairs []store.Pair
		for i := range keys {
			pairs = append(pairs, pair(fmt.Sprintf("k%03d", i), fmt.Sprint(batch)))
		}
		return b.Apply(store.Batch{Entries: entries(pairs...), Offset: int64(batch)})
	}
	check(t, write(0))
	done := make(chan error)
	go func() {
		defer close(done)
		for i := 1; i <= batches; i++ {
			if err := write(i); err != nil {
				done <- err
				return
			}
		}
	}()
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() { readUntil(t, b, keys, batches) })
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	readers.Wait()
	wantOffset(t, b, batches, true)
}

// readUntil reads until the last batch is there.
func readUntil(t *testing.T, b store.Backend, keys, batches int) {
	var pairs []store.Pair
	for {
		value, _, ok, err := b.Get(nil, []byte("k000"))
		if err != nil || !ok {
			t.Errorf("get: %v, %v", ok, err)
			return
		}
		if pairs, err = b.Scan(pairs[:0], store.Range{}, keys+1); err != nil || len(pairs) != keys {
			t.Errorf("scan: %d pairs, %v", len(pairs), err)
			return
		}
		if string(value) == fmt.Sprint(batches) {
			return
		}
	}
}

func testReopen(t *testing.T, opener store.Opener, f Features) {
	dir := t.TempDir()
	b := open(t, opener, dir, "s")
	apply(t, b, 0)
	check(t, b.Close())
	if !f.Durable {
		b = open(t, opener, dir, "s")
		wantOffset(t, b, 0, false)
		return
	}
	b = open(t, opener, dir, "s")
	wantOffset(t, b, 0, true)
	apply(t, b, 5, pair("a", "1"), pair("b", "1"), pair("", ""))
	apply(t, b, 9, pair("a", "2"), store.Pair{Key: []byte("b")})
	other := open(t, opener, dir, "other")
	wantOffset(t, other, 0, false)
	if f.CrashCopy {
		wantReopened(t, open(t, opener, copyDir(t, dir), "s"))
	}
	check(t, b.Close())
	wantReopened(t, open(t, opener, dir, "s"))
}

func wantReopened(t *testing.T, b store.Backend) {
	t.Helper()
	wantOffset(t, b, 9, true)
	wantValue(t, b, "a", "2")
	wantValue(t, b, "", "")
	wantAbsent(t, b, "b")
}

func testRemove(t *testing.T, opener store.Opener, f Features) {
	dir := t.TempDir()
	check(t, opener.Remove(dir, "s"))
	if path, err := opener.SetAside(dir, "s"); path != "" || err != nil {
		t.Fatalf("nothing to set aside: %q, %v", path, err)
	}
	for range 2 { // what was set aside before is replaced
		b := open(t, opener, dir, "s")
		wantOffset(t, b, 0, false)
		apply(t, b, 3, pair("a", "1"))
		check(t, b.Close())
		path, err := opener.SetAside(dir, "s")
		check(t, err)
		if (path != "") != f.Durable {
			t.Fatalf("set aside to %q", path)
		}
	}
	b := open(t, opener, dir, "s")
	wantAbsent(t, b, "a")
	check(t, b.Close())
	check(t, opener.Remove(dir, "s"))
	wantOffset(t, open(t, opener, dir, "s"), 0, false)
}
