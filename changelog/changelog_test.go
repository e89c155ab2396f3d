package changelog_test

import (
	"encoding/binary"
	"errors"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/changelog"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/memory"
)

func newStore() *store.Layered { return store.NewLayered("counts", memory.New()) }

func put(key, value string, offset int64) changelog.Record {
	return changelog.Record{Key: []byte(key), Value: []byte(value), Timestamp: offset * 10, Offset: offset}
}

func tombstone(key string, offset int64) changelog.Record {
	return changelog.Record{Key: []byte(key), Timestamp: offset * 10, Offset: offset}
}

// contents is the store as "key=value" in key order.
func contents(t *testing.T, l *store.Layered) []string {
	t.Helper()
	var got []string
	err := l.Scan(store.Range{}, func(p store.Pair) (bool, error) {
		got = append(got, string(p.Key)+"="+string(p.Value))
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func add(t *testing.T, r *changelog.Restorer, next int64, records ...changelog.Record) {
	t.Helper()
	if err := r.Add(records, next); err != nil {
		t.Fatal(err)
	}
}

func settle(t *testing.T, r *changelog.Restorer) {
	t.Helper()
	if err := r.Settle(); err != nil {
		t.Fatal(err)
	}
}

func wantOffset(t *testing.T, l *store.Layered, want int64) {
	t.Helper()
	if got, ok := l.Offset(); !ok || got != want {
		t.Fatalf("offset of the store: got %d, %v; want %d", got, ok, want)
	}
}

func wantContents(t *testing.T, l *store.Layered, want ...string) {
	t.Helper()
	if got := contents(t, l); !slices.Equal(got, want) {
		t.Fatalf("store holds %q, want %q", got, want)
	}
}

func TestTopic(t *testing.T) {
	t.Parallel()
	if got := changelog.Topic("app", "counts"); got != "app-counts-changelog" {
		t.Fatal(got)
	}
}

func TestRecordsAreThoseOfTheWriteSet(t *testing.T) {
	t.Parallel()
	w := store.NewWriteSet()
	headers := []store.Header{{Key: "h", Value: []byte("1")}}
	w.Put([]byte("b"), []byte("1"), 5, headers)
	w.Put([]byte("a"), []byte{}, 6, nil)
	w.Delete([]byte("c"), 7, nil)
	w.Put([]byte("b"), []byte("2"), 8, headers)
	w.Put([]byte{}, []byte("v"), 9, nil)

	got := changelog.AppendRecords(nil, w)
	want := []changelog.Record{
		{Key: []byte("b"), Value: []byte("2"), Timestamp: 8, Headers: headers},
		{Key: []byte("a"), Value: []byte{}, Timestamp: 6},
		{Key: []byte("c"), Value: nil, Timestamp: 7},
		{Key: []byte{}, Value: []byte("v"), Timestamp: 9},
	}
	if !slices.EqualFunc(got, want, func(a, b changelog.Record) bool {
		return string(a.Key) == string(b.Key) && a.Key != nil && string(a.Value) == string(b.Value) &&
			(a.Value == nil) == (b.Value == nil) && a.Timestamp == b.Timestamp && len(a.Headers) == len(b.Headers)
	}) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func TestRestoreKeepsTheLastValue(t *testing.T) {
	t.Parallel()
	l := newStore()
	r := changelog.NewRestorer(l, 7, 0, true)
	add(t, r, 4, put("a", "1", 0), put("b", "1", 1), put("a", "2", 2), tombstone("b", 3))
	if r.Done() || remaining(r) != 3 {
		t.Fatalf("done %v, remaining %d", r.Done(), remaining(r))
	}
	add(t, r, 7, put("", "empty key", 4), put("c", "", 5), tombstone("never there", 6))
	if !r.Done() || r.Restored() != 7 || remaining(r) != 0 {
		t.Fatalf("done %v, restored %d, remaining %d", r.Done(), r.Restored(), remaining(r))
	}
	settle(t, r)
	wantContents(t, l, "=empty key", "a=2", "c=")
	wantOffset(t, l, 7)
	if _, ts, ok, err := l.Get(nil, []byte("a")); ts != 20 || !ok || err != nil {
		t.Fatal(ts, ok, err)
	}
}

func TestRestoreSkipsWhatItHas(t *testing.T) {
	t.Parallel()
	l := newStore()
	r := changelog.NewRestorer(l, 100, 10, true)
	// A fetch answers with whole batches, which may begin before the position.
	add(t, r, 12, put("old", "1", 8), put("old", "2", 9), put("new", "1", 10), put("new", "2", 11))
	settle(t, r)
	wantContents(t, l, "new=2")
	// A repeated fetch changes nothing.
	add(t, r, 12, put("new", "1", 10), put("new", "2", 11))
	if r.Restored() != 2 || r.Position() != 12 {
		t.Fatal(r.Restored(), r.Position())
	}
}

func TestRestoreFlushesWhileItGoesOn(t *testing.T) {
	t.Parallel()
	backend := &failing{Backend: memory.New()}
	l := store.NewLayered("counts", backend)
	r := changelog.NewRestorer(l, 6, 0, true)
	add(t, r, 2, put("b", "1", 0), put("a", "1", 1))
	if r.StagedBytes() == 0 {
		t.Fatal("nothing is staged")
	}
	backend.fails = true
	if err := r.Flush(); !errors.Is(err, errDiskFull) {
		t.Fatal(err)
	}
	// What could not be written goes with the next flush.
	backend.fails = false
	add(t, r, 4, put("a", "2", 2), tombstone("b", 3))
	must(t, r.Flush())
	if offset, ok := backend.Offset(); offset != 4 || !ok {
		t.Fatal(offset, ok)
	}
	if n := r.StagedBytes(); n != 0 {
		t.Fatalf("%d bytes are staged", n)
	}
	must(t, r.Flush())
	settle(t, r)
	wantContents(t, l, "a=2")
}

var errDiskFull = errors.New("disk full")

// failing is a backend that may refuse to be written.
type failing struct {
	store.Backend
	fails bool
}

func (f *failing) Apply(b store.Batch) error {
	if f.fails {
		return errDiskFull
	}
	return f.Backend.Apply(b)
}

func (f *failing) Load(rows iter.Seq[store.Pair], offset int64) error {
	if f.fails {
		return errDiskFull
	}
	return f.Backend.Load(rows, offset)
}

func TestNullKeyNamesTheOffset(t *testing.T) {
	t.Parallel()
	l := newStore()
	r := changelog.NewRestorer(l, 100, 0, true)
	err := r.Add([]changelog.Record{put("a", "1", 41), {Value: []byte("v"), Offset: 42}}, 43)
	var nullKey *changelog.NullKeyError
	if !errors.As(err, &nullKey) || nullKey.Offset != 42 || nullKey.Store != "counts" {
		t.Fatalf("got %v", err)
	}
	if r.Position() != 0 {
		t.Fatalf("position moved to %d", r.Position())
	}
}

// A changelog emptied by retention, and one with holes that begins above 0.
func TestFieldReport14(t *testing.T) {
	t.Parallel()
	t.Run("all records deleted, no checkpoint", func(t *testing.T) {
		l := newStore()
		r := changelog.NewRestorer(l, 50, 50, true)
		if !r.Done() || remaining(r) != 0 {
			t.Fatal("an empty log is restored at once")
		}
		settle(t, r)
		wantContents(t, l)
		wantOffset(t, l, 50)
	})
	t.Run("all records deleted, checkpoint 20", func(t *testing.T) {
		l := newStore()
		r := changelog.NewRestorer(l, 50, 20, true)
		add(t, r, 50)
		if !r.Done() || remaining(r) != 0 || r.Restored() != 0 {
			t.Fatal("not done")
		}
		settle(t, r)
		wantOffset(t, l, 50)
	})
	t.Run("holes", func(t *testing.T) {
		l := newStore()
		r := changelog.NewRestorer(l, 91, 17, true)
		add(t, r, 42, put("a", "17", 17), put("b", "40", 40), put("c", "41", 41))
		if r.Done() {
			t.Fatal("done early")
		}
		add(t, r, 91, put("d", "90", 90))
		if !r.Done() || r.Restored() != 4 {
			t.Fatal(r.Done(), r.Restored())
		}
		settle(t, r)
		wantContents(t, l, "a=17", "b=40", "c=41", "d=90")
	})
}

// A fetch with records past the end captured at the start of the restore.
func TestFieldReport15(t *testing.T) {
	t.Parallel()
	l := newStore()
	r := changelog.NewRestorer(l, 100, 95, true)
	var batch []changelog.Record
	for offset := int64(95); offset < 110; offset++ {
		batch = append(batch, put("k", string('a'+rune(offset-95)), offset))
	}
	add(t, r, 110, batch...)
	if !r.Done() || r.Restored() != 5 || r.Position() != 100 {
		t.Fatal(r.Done(), r.Restored(), r.Position())
	}
	settle(t, r)
	wantContents(t, l, "k=e")
	wantOffset(t, l, 100)
}

// The end of a restore is an offset, so a single record counts, control records
// at the tail count, and offset 0 is a checkpoint like any other.
func TestFieldReport16(t *testing.T) {
	t.Parallel()
	t.Run("one record", func(t *testing.T) {
		l := newStore()
		if _, ok := l.Offset(); ok {
			t.Fatal("a new store has no offset")
		}
		r := changelog.NewRestorer(l, 1, 0, true)
		if r.Done() {
			t.Fatal("done before the record")
		}
		settle(t, r)
		wantOffset(t, l, 0)
		add(t, r, 1, put("a", "1", 0))
		if !r.Done() {
			t.Fatal("not done")
		}
		settle(t, r)
		wantContents(t, l, "a=1")
	})
	t.Run("marker at the tail", func(t *testing.T) {
		l := newStore()
		r := changelog.NewRestorer(l, 1001, 0, true)
		var batch []changelog.Record
		for offset := range int64(1000) {
			batch = append(batch, put("k", "v", offset))
		}
		add(t, r, 1000, batch...)
		if r.Done() {
			t.Fatal("done before the marker")
		}
		add(t, r, 1001)
		if !r.Done() || r.Restored() != 1000 {
			t.Fatal(r.Done(), r.Restored())
		}
		settle(t, r)
		wantOffset(t, l, 1001)
	})
}

func TestStandbyBecomesActive(t *testing.T) {
	t.Parallel()
	l := newStore()
	r := changelog.NewRestorer(l, changelog.Forever, 0, true)
	add(t, r, 10, put("a", "1", 9))
	if r.Done() {
		t.Fatal("a standby is never done")
	}
	r.Until(12)
	if r.Done() || remaining(r) != 2 || r.Restored() != 0 || r.Settled() {
		t.Fatal(r.Done(), remaining(r), r.Restored(), r.Settled())
	}
	add(t, r, 12, put("a", "2", 10))
	if !r.Done() {
		t.Fatal("not done")
	}
	settle(t, r)
	wantOffset(t, l, 12)
}

// remaining is the number of offsets to come.
func remaining(r *changelog.Restorer) int64 { return r.End() - r.Position() }

// Field report 24: a restore brings back the time index with the windows, and
// keeps no more of them than the store would.
func TestFieldReport24RestoreOfWindows(t *testing.T) {
	t.Parallel()
	d := store.NewWindow("s", serde.String, serde.String, store.WindowOptions{Size: 10 * time.Millisecond, Retention: 30 * time.Millisecond})
	key := func(start int64) []byte {
		return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64([]byte("k"), uint64(start)), 0)
	}
	var records []changelog.Record
	for i := range int64(1000) {
		records = append(records, changelog.Record{Key: key(i * 10), Value: []byte("v"), Timestamp: i, Offset: i})
	}
	l := store.LayersOf(d, memory.New())
	r := changelog.NewRestorer(l, 1000, 0, true)
	for !r.Done() {
		next := min(r.Position()+300, 1000)
		if err := r.Add(records[r.Position():next], next); err != nil {
			t.Fatal(err)
		}
		flushAll(t, l)
	}
	pairs, err := l.Backend().Scan(nil, store.Range{}, 100)
	if err != nil || len(pairs) != 7 { // three windows, their places in the index, the clock
		t.Fatalf("%d rows are left, %v", len(pairs), err)
	}
	err = changelog.NewRestorer(store.LayersOf(d, memory.New()), 1, 0, true).Add([]changelog.Record{put("plain", "v", 0)}, 1)
	if !errors.Is(err, store.ErrForeignRecord) {
		t.Fatal(err)
	}
}

func TestRecordsLeaveOutLocalEntries(t *testing.T) {
	t.Parallel()
	d := store.NewWindow("s", serde.String, serde.String, store.WindowOptions{Size: time.Millisecond})
	src := windowSource{store.LayersOf(d, memory.New())}
	v, err := d.View(src)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := v.Put("k", "v", 5); err != nil {
			t.Fatal(err)
		}
	}
	w := src.l.Prepare()
	got := changelog.AppendRecords(nil, w)
	if len(got) != 1 || string(got[0].Key) != "k\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00" || changelog.Count(w) < 1 {
		t.Fatalf("%v", got)
	}
	for range changelog.Records(w) {
		break // a consumer may stop
	}
}

type windowSource struct{ l *store.Layered }

func (s windowSource) Layered(string) (*store.Layered, error) { return s.l, nil }
func (s windowSource) RecordTime() int64                      { return 0 }

func flushAll(t *testing.T, l *store.Layered) {
	t.Helper()
	batch, ok := l.BeginFlush()
	if !ok {
		return
	}
	err := l.Backend().Apply(batch)
	l.EndFlush(err)
	if err != nil {
		t.Fatal(err)
	}
}
