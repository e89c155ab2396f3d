package store_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/memory"
)

// local is what a process has of a store of several partitions. A key belongs to the partition that its first byte names.
type local struct {
	partitions []store.QueriedPartition
	byKey      bool
	err        error
}

func (l *local) Queried(store.Declaration) (store.Queried, error) {
	return store.Queried{
		Partitions: l.partitions, ByKey: l.byKey,
		Owner: func(key []byte) int32 { return int32(key[0] - '0') },
	}, l.err
}

// partition is one of them.
type partition struct {
	*store.Reader
	number int32
	state  error
	reads  int
}

func (p *partition) Number() int32         { return p.number }
func (p *partition) Ready() (int64, error) { return 0, p.state }

func (p *partition) Get(dst, key []byte) ([]byte, int64, bool, error) {
	p.reads++
	return p.Reader.Get(dst, key)
}

func (p *partition) Scan(dst []store.Pair, r store.Range, limit int) ([]store.Pair, error) {
	p.reads++
	for !p.Catalog(100) {
	}
	dst, _, _, err := p.Reader.Scan(dst, r, limit)
	return dst, err
}

var numbers = store.NewKeyValue("numbers", serde.String, serde.String)

// opened returns a partition that holds keys, each with the partition's number as its value.
func opened(t *testing.T, number int32, keys ...string) *partition {
	t.Helper()
	l := store.LayersOf(numbers, memory.New())
	for _, k := range keys {
		if _, err := l.Put([]byte(k), fmt.Append(nil, number), 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	l.Prepare()
	l.Committed(1)
	return &partition{Reader: l.Reader(), number: number}
}

func TestGetGoesToThePartitionOfTheKey(t *testing.T) {
	t.Parallel()
	zero, two := opened(t, 0, "0a", "2stray"), opened(t, 2, "2a", "1stray")
	src := &local{partitions: []store.QueriedPartition{zero, two}}
	q := numbers.Query(src)
	for _, c := range []struct {
		key   string
		byKey bool
		value string // none: not found
		err   error
	}{
		{"0a", true, "0", nil},
		{"2a", true, "2", nil},
		{"2stray", true, "", nil}, // cannot be
		{"2stray", false, "0", nil},
		{"1stray", false, "2", nil}, // its own partition is not here
		{"1stray", true, "", store.ErrNotLocal},
		{"1a", false, "", store.ErrNotLocal},
		{"0b", false, "", nil},
	} {
		src.byKey = c.byKey
		value, ok, err := q.Get(c.key)
		if value != c.value || ok != (c.value != "") || !errors.Is(err, c.err) {
			t.Errorf("%s, by key %v: %q, %v, %v; want %q, %v", c.key, c.byKey, value, ok, err, c.value, c.err)
		}
		var e *store.UnavailableError
		if c.err != nil && (!errors.As(err, &e) || *e != store.UnavailableError{Store: "numbers", Partition: 1}) {
			t.Errorf("%s: got %v", c.key, err)
		}
	}
	src.byKey = true
	zero.reads, two.reads = 0, 0
	if _, _, err := q.Get("2b"); err != nil || zero.reads != 0 || two.reads != 1 {
		t.Errorf("%v, %d and %d reads", err, zero.reads, two.reads)
	}
}

// A scan takes one partition after the other, each in the order of its keys, and ends where it is told to.
func TestScanGoesThroughAllPartitions(t *testing.T) {
	t.Parallel()
	one := opened(t, 1, "b", "e")
	zero, two := opened(t, 0, "a", "d"), opened(t, 2, "c", "f")
	q := numbers.Query(&local{partitions: []store.QueriedPartition{zero, one, two}})
	scan := func(stopAt string, scan func(fn func(string, string) bool) error) (keys []string) {
		t.Helper()
		if err := scan(func(k, _ string) bool { keys = append(keys, k); return k != stopAt }); err != nil {
			t.Error(err)
		}
		return keys
	}
	for what, c := range map[string]struct{ got, want []string }{
		"all":     {scan("", q.All), []string{"a", "d", "b", "e", "c", "f"}},
		"reverse": {scan("", q.ReverseAll), []string{"d", "a", "e", "b", "f", "c"}},
		"range":   {scan("", func(fn func(string, string) bool) error { return q.Range("b", "d", fn) }), []string{"d", "b", "c"}},
		"stopped": {scan("b", q.All), []string{"a", "d", "b"}},
		"prefix":  {scan("", func(fn func(string, string) bool) error { return q.PrefixScan([]byte("e"), fn) }), []string{"e"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %q, want %q", what, c.got, c.want)
		}
	}
	two.reads = 0
	if scan("b", q.All); two.reads != 0 {
		t.Error("a partition was read after the scan was stopped")
	}
}

// One partition that cannot be read is an error of a scan before the first row, and of a get that needs it.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	zero, one := opened(t, 0, "0a"), opened(t, 1, "1a")
	one.state = &store.UnavailableError{Store: "numbers", Partition: 1, State: store.Restoring}
	src := &local{partitions: []store.QueriedPartition{zero, one}, byKey: true}
	q := numbers.Query(src)
	if err := q.All(func(string, string) bool { t.Error("a row"); return true }); !errors.Is(err, store.ErrNotReady) || errors.Is(err, store.ErrNotLocal) {
		t.Errorf("all: %v", err)
	}
	if _, _, err := q.Get("1a"); !errors.Is(err, store.ErrNotReady) {
		t.Errorf("get: %v", err)
	}
	if _, ok, err := q.Get("0a"); !ok || err != nil {
		t.Errorf("get elsewhere: %v, %v", ok, err)
	}
	if _, ok, err := q.Get("0b"); ok || err != nil {
		t.Errorf("get of nothing: %v, %v", ok, err)
	}
	src.byKey = false
	if _, _, err := q.Get("0b"); !errors.Is(err, store.ErrNotReady) { // it may be there
		t.Errorf("get of what may be in another partition: %v", err)
	}
	src.err = errors.New("not running")
	if _, _, err := q.Get("0a"); !errors.Is(err, src.err) {
		t.Errorf("get: %v", err)
	}
	if err := q.All(nil); !errors.Is(err, src.err) {
		t.Errorf("all: %v", err)
	}
}

// A nil key is refused as by a view, and a queried store cannot be written.
func TestQueryRefuses(t *testing.T) {
	t.Parallel()
	bytes := store.NewKeyValue("bytes", serde.Bytes, serde.String)
	q := bytes.Query(&local{partitions: []store.QueriedPartition{opened(t, 0)}})
	if _, _, err := q.Get(nil); !errors.Is(err, store.ErrNilKey) {
		t.Errorf("got %v", err)
	}
}

// While a reader goes through them, the committed layers change in every way: each key that stays is seen once, as are those
// that are added ahead.
func TestReaderAcrossCommitsAndFlushes(t *testing.T) {
	t.Parallel()
	l := store.LayersOf(numbers, memory.New())
	put := func(keys ...string) {
		for _, k := range keys {
			if _, err := l.Put([]byte(k), []byte("v"), 1, nil); err != nil {
				t.Fatal(err)
			}
		}
		l.Prepare()
		l.Committed(1)
	}
	put("a", "c", "e", "g", "i")
	var batch store.Batch
	begin := func() { batch, _ = l.BeginFlush() }
	steps := []func(){
		begin,
		func() { put("h", "j") },
		func() { l.EndFlush(l.Backend().Apply(batch)) },
		begin,
		func() { l.EndFlush(errors.New("disk full")) },
		func() { put("b", "d") },
	}
	p := &partition{Reader: l.Reader()}
	r, more := store.Range{}, true
	var got []string
	for more {
		for !p.Catalog(2) {
		}
		var pairs []store.Pair
		var err error
		if pairs, r, more, err = p.Reader.Scan(nil, r, 1); err != nil {
			t.Fatal(err)
		}
		for _, pair := range pairs {
			got = append(got, string(pair.Key))
		}
		if len(steps) > 0 {
			steps[0]()
			steps = steps[1:]
		}
	}
	if want := []string{"a", "c", "e", "g", "h", "i", "j"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
