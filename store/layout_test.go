package store_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/memory"
)

const ms = time.Millisecond

// task opens a declared store over a memory backend.
func task(d store.Declaration) *source {
	return &source{layers: store.LayersOf(d, memory.New()), now: 100}
}

// mirrored commits and returns the changelog's records as text.
func mirrored(l *store.Layered) (records []string) {
	l.Prepare().Mirror(func(m store.Mirrored) bool {
		value := fmt.Sprintf("%q", m.Value)
		if m.Value == nil {
			value = "null"
		}
		records = append(records, fmt.Sprintf("%q=%s@%d", m.Key, value, m.Timestamp))
		return true
	})
	l.Committed(-1)
	return records
}

func wantRecords(t *testing.T, l *store.Layered, want ...string) {
	t.Helper()
	if got := mirrored(l); !slices.Equal(got, want) {
		t.Errorf("records\n got %s\nwant %s", got, want)
	}
}

// The bytes of the changelogs are those of Kafka Streams.
func TestWindowChangelog(t *testing.T) {
	t.Parallel()
	d := store.NewWindow("s", serde.String, serde.String, store.WindowOptions{Size: 10 * ms, Retention: 100 * ms})
	src := task(d)
	v, err := d.View(src)
	must(t, err)
	_, err = v.Put("k", "v", 0x102)
	must(t, err)
	_, err = v.PutAt("", "", 0x100, 7)
	must(t, err)
	must(t, v.Delete("k", 0x101))
	wantRecords(t, src.layers,
		`"k\x00\x00\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00"="v"@100`,
		`"\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00"=""@7`,
		`"k\x00\x00\x00\x00\x00\x00\x01\x01\x00\x00\x00\x00"=null@100`)
	_, err = v.Put("k", "v", 0x1000) // all others expire
	must(t, err)
	n, err := src.layers.Expire(0)
	must(t, err)
	if n != 2 {
		t.Errorf("removed %d", n)
	}
	wantRecords(t, src.layers, `"k\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x00\x00"="v"@100`)
}

func TestDuplicatesChangelog(t *testing.T) {
	t.Parallel()
	d := store.NewWindow("s", serde.String, serde.Bytes, store.WindowOptions{Size: 10 * ms, Retention: 100 * ms, RetainDuplicates: true})
	src := task(d)
	v, err := d.View(src)
	must(t, err)
	for _, value := range []string{"a", "b"} {
		_, err = v.Put("k", []byte(value), 5)
		must(t, err)
	}
	if stored, err := v.Put("k", nil, 5); stored || err != nil {
		t.Error(stored, err)
	}
	wantRecords(t, src.layers,
		`"k\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x01"="a"@100`,
		`"k\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x02"="b"@100`)
	if got, ok, err := v.Fetch("k", 5); string(got) != "b" || !ok || err != nil {
		t.Error(got, ok, err)
	}
	must(t, v.Delete("k", 5))
	wantRecords(t, src.layers,
		`"k\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x01"=null@100`,
		`"k\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x02"=null@100`)
}

func TestSessionChangelog(t *testing.T) {
	t.Parallel()
	d := store.NewSession("s", serde.String, serde.String, store.SessionOptions{Retention: 100 * ms})
	src := task(d)
	v, err := d.View(src)
	must(t, err)
	_, err = v.Put(store.Windowed[string]{Key: "k", Start: 3, End: 0x102}, "v")
	must(t, err)
	must(t, v.Remove(store.Windowed[string]{Key: "k", Start: 4, End: 0x101}))
	wantRecords(t, src.layers,
		`"k\x00\x00\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x00\x00\x00\x03"="v"@100`,
		`"k\x00\x00\x00\x00\x00\x00\x01\x01\x00\x00\x00\x00\x00\x00\x00\x04"=null@100`)
}

func TestVersionedChangelog(t *testing.T) {
	t.Parallel()
	d := store.NewVersioned("s", serde.String, serde.String, 50*ms)
	src := task(d)
	v, err := d.View(src)
	must(t, err)
	put := func(value string, from int64) {
		t.Helper()
		_, _, err := v.Put("k", value, from)
		must(t, err)
	}
	put("a", 10)
	put("b", 20)
	_, _, err = v.DeleteRecord("k", 30, nil)
	must(t, err)
	wantRecords(t, src.layers, `"k"="a"@10`, `"k"="b"@20`, `"k"=null@30`)
	put("c", 25) // out of order: compaction keeps the last, so that has to be the tombstone
	wantRecords(t, src.layers, `"k"="c"@25`, `"k"=null@30`)
	put("d", 40)
	put("e", 35)
	put("f", 45)
	put("g", 41)
	wantRecords(t, src.layers, `"k"="d"@40`, `"k"="e"@35`, `"k"="f"@45`, `"k"="g"@41`, `"k"="f"@45`)
}

// What is put at the very edge of the history ends the version before, which is removed though time does not move on.
func TestVersionEndsAtTheEdgeOfTheHistory(t *testing.T) {
	t.Parallel()
	d := store.NewVersioned("s", serde.String, serde.String, 10*ms)
	src := task(d)
	v, err := d.View(src)
	must(t, err)
	put := func(key string, from int64) {
		_, stored, err := v.Put(key, "v", from)
		if err != nil || !stored {
			t.Fatal(stored, err)
		}
	}
	rows := func() int {
		mirrored(src.layers)
		_, err := src.layers.Expire(100)
		must(t, err)
		mirrored(src.layers)
		n := 0
		must(t, src.layers.Scan(store.Range{To: []byte{1}}, func(store.Pair) (bool, error) { n++; return true, nil }))
		return n
	}
	put("k", 104)
	put("other", 115)
	if n := rows(); n != 2 {
		t.Fatalf("%d versions, want 2", n)
	}
	put("k", 105)
	if n := rows(); n != 2 {
		t.Errorf("%d versions, want 2: the one of 104 has ended by 105", n)
	}
}

func TestTTLChangelog(t *testing.T) {
	t.Parallel()
	d := store.NewKeyValue("s", serde.String, serde.String, store.WithTTL(160*ms))
	src := task(d)
	v, err := d.View(src)
	must(t, err)
	must(t, v.PutAt("a", "1", 0))
	must(t, v.PutAt("b", "2", 100))
	must(t, v.PutAt("gone", "", 1))
	must(t, v.Delete("gone"))
	wantRecords(t, src.layers, `"a"="1"@0`, `"b"="2"@100`, `"gone"=null@100`)
	src.layers.Advance(160)
	if _, ok, err := v.Get("a"); !ok || err != nil {
		t.Error("a lives as long as its TTL", ok, err)
	}
	src.layers.Advance(170)
	if _, ok, err := v.Get("a"); ok || err != nil {
		t.Error("a has expired", ok, err)
	}
	_, err = src.layers.Expire(0)
	must(t, err)
	wantRecords(t, src.layers, `"a"=null@170`)
	must(t, v.PutAt("late", "3", 2)) // below what the index was looked through for
	_, err = src.layers.Expire(0)
	must(t, err)
	wantRecords(t, src.layers, `"late"=null@170`)
}

// A row that is written all the time has one place in the index, and costs two
// entries of a write set.
func TestTTLIndexStaysSmall(t *testing.T) {
	t.Parallel()
	d := store.NewKeyValue("s", serde.String, serde.Int64, store.WithTTL(time.Hour))
	src := task(d)
	v, err := d.View(src)
	must(t, err)
	for i := range int64(10_000) {
		must(t, v.PutAt("k", i, i))
	}
	if w := src.layers.Prepare(); w.Len() != 2 {
		t.Errorf("%d entries", w.Len())
	}
}

func TestRestoreRefusesForeignRecords(t *testing.T) {
	t.Parallel()
	window := store.NewWindow("s", serde.String, serde.String, store.WindowOptions{Size: ms})
	session := store.NewSession("s", serde.String, serde.String, store.SessionOptions{Retention: ms})
	versioned := store.NewVersioned("s", serde.String, serde.String, 0)
	for _, test := range []struct {
		d   store.Declaration
		key string
		ts  int64
	}{{window, "plain", 1}, {window, "", 1}, {window, "k\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", 1},
		{session, "k\x00\x00\x00\x00\x00\x00\x00\x00", 1}, {versioned, "k", -1}} {
		l := task(test.d).layers
		if err := l.RestorePut([]byte(test.key), []byte("v"), test.ts); !errors.Is(err, store.ErrForeignRecord) {
			t.Errorf("%T %q: %v", test.d, test.key, err)
		}
	}
}

func TestLocalNames(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, d := range []store.Declaration{
		store.NewKeyValue("s", serde.String, serde.String), store.NewKeyValue("s", serde.String, serde.String, store.WithTTL(ms)),
		store.NewWindow("s", serde.String, serde.String, store.WindowOptions{}), store.NewVersioned("s", serde.String, serde.String, ms),
		store.NewSession("s", serde.String, serde.String, store.SessionOptions{}),
	} {
		seen[store.LocalName(d)] = true
	}
	if want := []string{"s", "s~session", "s~ttl", "s~versioned", "s~window"}; !slices.Equal(slices.Sorted(maps.Keys(seen)), want) {
		t.Error(seen)
	}
	_, plain := view(t, serde.String, serde.String)
	_, err := store.NewWindow("s", serde.String, serde.String, store.WindowOptions{}).View(plain)
	_, err2 := store.NewSession("s", serde.String, serde.String, store.SessionOptions{}).View(plain)
	_, err3 := store.NewVersioned("s", serde.String, serde.String, ms).View(plain)
	for _, err := range []error{err, err2, err3} {
		if err == nil || !strings.Contains(err.Error(), "another kind") {
			t.Error(err)
		}
	}
}

func TestDeclarationsAreValidated(t *testing.T) {
	t.Parallel()
	window := func(o store.WindowOptions) store.Declaration {
		return store.NewWindow("s", serde.String, serde.String, o)
	}
	for want, d := range map[string]store.Declaration{
		"window size is 0s":         window(store.WindowOptions{}),
		"window size is -1ms":       window(store.WindowOptions{Size: -ms}),
		"1.5ms, not whole":          window(store.WindowOptions{Size: 3 * ms / 2}),
		"retention, 5ms, is less":   window(store.WindowOptions{Size: 6 * ms, Retention: 5 * ms}),
		"retention is 7.5ms, not":   window(store.WindowOptions{Size: 6 * ms, Retention: 15 * ms / 2}),
		"retention is 0s":           store.NewSession("s", serde.String, serde.String, store.SessionOptions{}),
		"history is -1ms":           store.NewVersioned("s", serde.String, serde.String, -ms),
		"not a TTL":                 store.NewVersioned("s", serde.String, serde.String, ms, store.WithTTL(ms)),
		"TTL is 0s":                 store.NewKeyValue("s", serde.String, serde.String, store.WithTTL(0)),
		"TTL is 1ns, not whole":     store.NewValueState("s", serde.String, serde.String, store.WithTTL(1)),
		"TTL is -1ms, less than 1 ": store.NewListState("s", serde.String, serde.String, store.WithTTL(-ms)),
		"s: the TTL is 0s":          store.NewMapState("s", serde.String, serde.String, serde.String, store.WithTTL(0)),
		"":                          store.NewMapState("s", serde.String, serde.String, serde.String),
	} {
		err := d.Validate()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%T: %v, want %q", d, err, want)
		}
	}
}

func TestTopicConfigs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		d                    store.Declaration
		policy, setting, val string
	}{
		{store.NewKeyValue("s", serde.String, serde.String), "compact", "retention.ms", ""},
		{store.NewKeyValue("s", serde.String, serde.String, store.WithTTL(ms)), "compact", "retention.ms", ""},
		{store.NewListState("s", serde.String, serde.String), "compact", "min.compaction.lag.ms", ""},
		{store.NewWindow("s", serde.String, serde.String, store.WindowOptions{Size: ms, Retention: time.Hour}), "compact,delete", "retention.ms", "90000000"},
		{store.NewSession("s", serde.String, serde.String, store.SessionOptions{Retention: time.Second}), "compact,delete", "retention.ms", "86401000"},
		{store.NewVersioned("s", serde.String, serde.String, 0), "compact", "min.compaction.lag.ms", "86400000"},
	} {
		c := test.d.TopicConfig()
		if c["cleanup.policy"] != test.policy || c[test.setting] != test.val || c["message.timestamp.type"] != "CreateTime" {
			t.Errorf("%T: %v", test.d, c)
		}
	}
}
