package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/memory"
)

// source is a task with one store.
type source struct {
	layers *store.Layered
	now    int64
}

func (s *source) Layered(name string) (*store.Layered, error) {
	if name != s.layers.Name() {
		return nil, errors.New("no such store")
	}
	return s.layers, nil
}

func (s *source) RecordTime() int64 { return s.now }

func view[K, V any](t testing.TB, keys serde.Serde[K], values serde.Serde[V]) (*store.KeyValueView[K, V], *source) {
	t.Helper()
	decl := store.NewKeyValue("s", keys, values)
	src := &source{layers: store.NewLayered(decl.Name(), memory.New()), now: 100}
	v, err := decl.View(src)
	if err != nil {
		t.Fatal(err)
	}
	return v, src
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestDeclaration(t *testing.T) {
	t.Parallel()
	var d store.Declaration = store.NewKeyValue("counts", serde.String, serde.Int64)
	if d.Name() != "counts" || d.KeyType() != "string" || d.ValueType() != "int64" {
		t.Fatal(d.Name(), d.KeyType(), d.ValueType())
	}
	_, src := view(t, serde.String, serde.Int64)
	_, err := store.NewKeyValue("other", serde.String, serde.Int64).View(src)
	if err == nil || !strings.Contains(err.Error(), "other") {
		t.Fatal(err)
	}
}

func TestViewGetPutDelete(t *testing.T) {
	t.Parallel()
	v, src := view(t, serde.String, serde.Int64)
	must(t, v.Put("a", 1))
	src.now = 200
	must(t, v.Put("", 2))
	must(t, v.PutAt("b", 3, 50))
	if old, found, err := v.PutIfAbsent("a", 9); old != 1 || !found || err != nil {
		t.Fatal(old, found, err)
	}
	if _, found, err := v.PutIfAbsent("c", 9); found || err != nil {
		t.Fatal(found, err)
	}
	for _, want := range []struct {
		key   string
		value int64
		ts    int64
	}{{"a", 1, 100}, {"", 2, 200}, {"b", 3, 50}, {"c", 9, 200}} {
		if got, ts, ok, err := v.GetWithTime(want.key); got != want.value || ts != want.ts || !ok || err != nil {
			t.Errorf("%q: %d at %d, %v, %v; want %d at %d", want.key, got, ts, ok, err, want.value, want.ts)
		}
	}
	must(t, v.Delete("a"))
	if _, ok, err := v.Get("a"); ok || err != nil {
		t.Fatal(ok, err)
	}
}

func collect[K, V any](t testing.TB, scan func(fn func(K, V) bool) error) (keys []K) {
	t.Helper()
	must(t, scan(func(k K, _ V) bool { keys = append(keys, k); return true }))
	return keys
}

func TestViewRanges(t *testing.T) {
	t.Parallel()
	v, src := view(t, serde.String, serde.Int64)
	for i, k := range []string{"", "a", "aa", "ab", "b", "\xff", "\xff\xff"} {
		must(t, v.Put(k, int64(i)))
		if i == 3 {
			src.layers.Prepare()
			src.layers.Committed(1)
			flush(t, src.layers)
		}
	}
	want := func(got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	type fn = func(string, int64) bool
	between := func(from, to string) func(fn) error {
		return func(f fn) error { return v.Range(from, to, f) }
	}
	prefix := func(p string) func(fn) error {
		return func(f fn) error { return v.PrefixScan([]byte(p), f) }
	}
	want(collect(t, between("a", "ab")), "a", "aa", "ab")
	want(collect(t, between("", "")), "")
	want(collect(t, between("b", "a")))
	want(collect(t, func(f fn) error { return v.ReverseRange("a", "ab", f) }), "ab", "aa", "a")
	want(collect(t, v.All), "", "a", "aa", "ab", "b", "\xff", "\xff\xff")
	want(collect(t, v.ReverseAll), "\xff\xff", "\xff", "b", "ab", "aa", "a", "")
	want(collect(t, prefix("a")), "a", "aa", "ab")
	want(collect(t, prefix("\xff")), "\xff", "\xff\xff")
	want(collect(t, prefix("")), "", "a", "aa", "ab", "b", "\xff", "\xff\xff")

	// The view can be used while it scans.
	var sum int64
	must(t, v.Range("a", "b", func(k string, n int64) bool {
		must(t, v.Put(k+"-copy", n))
		must(t, v.Delete("ab"))
		got, _, err := v.Get(k)
		must(t, err)
		sum += got
		return !strings.HasSuffix(k, "-copy")
	}))
	if sum != 2 { // a, then a-copy: byte order puts it before aa
		t.Errorf("sum %d", sum)
	}
}

// Signed keys across zero: the documented answer, see storetest for backends.
func TestViewRangeOfSignedKeys(t *testing.T) {
	t.Parallel()
	v, _ := view(t, serde.Int64, serde.String)
	for i := int64(-5); i <= 5; i++ {
		must(t, v.Put(i, ""))
	}
	type fn = func(int64, string) bool
	if got := collect(t, func(f fn) error { return v.Range(-2, 2, f) }); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	if got := collect(t, func(f fn) error { return v.Range(-2, -1, f) }); !slices.Equal(got, []int64{-2, -1}) {
		t.Errorf("got %v", got)
	}
}

func TestViewNils(t *testing.T) {
	t.Parallel()
	v, src := view(t, serde.Bytes, serde.Bytes)
	must(t, v.Put([]byte{}, []byte{}))
	if got, ok, err := v.Get([]byte{}); got == nil || len(got) > 0 || !ok || err != nil {
		t.Fatal(got, ok, err)
	}
	must(t, v.Put([]byte{}, nil))
	if _, ok, err := v.Get([]byte{}); ok || err != nil {
		t.Fatal(ok, err)
	}
	if e := src.layers.Prepare().Entries()[0]; !e.Deleted {
		t.Fatal("nil is a tombstone")
	}
	for _, err := range []error{v.Put(nil, []byte("v")), v.Delete(nil)} {
		if !errors.Is(err, store.ErrNilKey) {
			t.Errorf("got %v", err)
		}
	}
	type point struct{ X int }
	p, _ := view(t, serde.String, serde.JSON[*point]())
	must(t, p.Put("k", &point{1}))
	must(t, p.Put("k", nil))
	if got, ok, err := p.Get("k"); ok || err != nil {
		t.Fatal(got, ok, err)
	}
}

func TestViewErrorsNameTheStore(t *testing.T) {
	t.Parallel()
	v, src := view(t, serde.String, serde.Int64)
	put(t, src.layers, "bad", "not eight bytes long")
	_, _, err := v.Get("bad")
	errScan := v.All(func(string, int64) bool { return true })
	for _, err := range []error{err, errScan} {
		if err == nil || !strings.HasPrefix(err.Error(), "store: s: decode value: ") {
			t.Errorf("got %v", err)
		}
	}
}

func TestViewOfIntegersDoesNotAllocate(t *testing.T) {
	v, _ := view(t, serde.String, serde.Int64)
	must(t, v.Put("key", 1))
	count := func() {
		n, _, err := v.Get("key")
		must(t, err)
		must(t, v.Put("key", n+1))
	}
	if n := testing.AllocsPerRun(100, count); n > 0 {
		t.Fatalf("%v allocations", n)
	}
}
