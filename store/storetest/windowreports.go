package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/millrace-streams/millrace/store"
)

// windows is a window store of a task.
type windows struct {
	t    *testing.T
	l    *store.Layered
	view *store.WindowView[string, string]
	now  int64
}

func (w *windows) Layered(string) (*store.Layered, error) { return w.l, nil }
func (w *windows) RecordTime() int64                      { return w.now }

func openWindows(t *testing.T, opener store.Opener, o store.WindowOptions) *windows {
	t.Helper()
	d := store.NewWindow("s", stringSerde, stringSerde, o)
	w := &windows{t: t, l: store.LayersOf(d, open(t, opener, t.TempDir(), store.LocalName(d)))}
	var err error
	w.view, err = d.View(w)
	check(t, err)
	return w
}

func (w *windows) put(key string, start int64) {
	w.t.Helper()
	w.now = max(w.now, start)
	stored, err := w.view.Put(key, fmt.Sprint(key, start), start)
	check(w.t, err)
	if !stored {
		w.t.Errorf("%q at %d is too late", key, start)
	}
}

type rowScan = func(func(store.Row[string, string]) bool) error

// starts checks a scan by the starts of the windows.
func (w *windows) starts(what string, scan rowScan, want ...int64) {
	w.t.Helper()
	var got []int64
	check(w.t, scan(func(r store.Row[string, string]) bool {
		if r.Value != fmt.Sprint(r.Key, r.Start) {
			w.t.Errorf("%s: %+v", what, r)
		}
		got = append(got, r.Start)
		return true
	}))
	if !slices.Equal(got, want) {
		w.t.Errorf("%s: starts %v, want %v", what, got, want)
	}
}

func (w *windows) all(fn func(store.Row[string, string]) bool) error {
	return w.view.FetchAll(0, store.NoEnd, fn)
}

func (w *windows) mirror() (log []store.Mirrored) {
	w.l.Prepare().Mirror(func(m store.Mirrored) bool {
		log = append(log, store.Mirrored{Key: slices.Clone(m.Key), Value: slices.Clone(m.Value), Timestamp: m.Timestamp})
		return true
	})
	w.l.Committed(int64(len(log)))
	return log
}

// FieldReport24: windows that a restore brings back are in the time index: those
// that were open when the process ended are found when they close, each once, and
// none outlives the retention.
func FieldReport24(t *testing.T, opener store.Opener) {
	o := store.WindowOptions{Size: 10 * ms, Retention: 30 * ms}
	live := openWindows(t, opener, o)
	for _, key := range []string{"a", "b", "c"} {
		live.put(key, 0)
	}
	live.put("a", 10)
	log := live.mirror()

	w := openWindows(t, opener, o)
	for _, m := range log {
		check(t, w.l.RestorePut(m.Key, m.Value, m.Timestamp))
	}
	check(t, w.l.ExpireRestored())
	w.l.Restored(int64(len(log)))
	flush(t, w.l)
	w.starts("restored", w.all, 0, 0, 0, 10)

	w.put("z", 1000)
	w.starts("seen after the jump", w.all, 1000)
	closing := func(fn func(store.Row[string, string]) bool) error { return w.view.ScanTime(0, 990, fn) }
	w.starts("closing", closing, 0, 0, 0, 10)
	n, err := w.l.Expire(0)
	check(t, err)
	if n != 4 {
		t.Errorf("removed %d", n)
	}
	w.starts("closing again", closing)
	if log := w.mirror(); len(log) != 1 {
		t.Errorf("%d records: what the topic's retention removes is not mirrored", len(log))
	}
	flush(t, w.l)
	pairs, err := w.l.Backend().Scan(nil, store.Range{}, 100)
	check(t, err)
	if len(pairs) != 3 { // the row, its place in the index, the clock
		t.Errorf("%d rows are left: %v", len(pairs), pairs)
	}
}

// FieldReport50: a window is seen if and only if its start is at least the store's
// time - retention + 1, whatever was removed meanwhile, on every backend.
func FieldReport50(t *testing.T, opener store.Opener) {
	for depth, settle := range []func(*windows){
		func(*windows) {},
		func(w *windows) { w.mirror() },
		func(w *windows) { w.mirror(); flush(t, w.l) },
		func(w *windows) {
			_, err := w.l.Expire(0)
			check(t, err)
			w.mirror()
			flush(t, w.l)
		},
	} {
		t.Run(fmt.Sprintf("depth %d", depth+1), func(t *testing.T) {
			w := openWindows(t, opener, store.WindowOptions{Size: ms, Retention: 100 * ms})
			scans := map[string]rowScan{
				"all": w.all, "bytes": w.view.All,
				"range": func(fn func(store.Row[string, string]) bool) error { return w.view.FetchRange("k", 0, 200, fn) },
			}
			for _, step := range []struct {
				put  int64
				want []int64
			}{{0, []int64{0}}, {50, []int64{0, 50}}, {99, []int64{0, 50, 99}}, {100, []int64{50, 99, 100}}, {101, []int64{50, 99, 100, 101}}} {
				w.put("k", step.put)
				settle(w)
				for what, scan := range scans {
					w.starts(what, scan, step.want...)
				}
				_, ok, err := w.view.Fetch("k", 0)
				check(t, err)
				if ok != (step.want[0] == 0) {
					t.Errorf("the first window at %d: %v", step.put, ok)
				}
			}
			if stored, err := w.view.Put("k", "late", 1); stored || err != nil {
				t.Errorf("a put at 1: %v, %v", stored, err)
			}
			if stored, err := w.view.Put("k", "k2", 2); !stored || err != nil {
				t.Errorf("a put at 2: %v, %v", stored, err)
			}
		})
	}
}

// FieldReport44Windows: what FieldReport44 says of keys holds for windows.
func FieldReport44Windows(t *testing.T, opener store.Opener) {
	for depth, settle := range []func(*windows){
		func(*windows) {},
		func(w *windows) { w.l.Prepare() },
		func(w *windows) { w.mirror() },
		func(w *windows) { w.mirror(); flush(t, w.l) },
	} {
		t.Run(fmt.Sprintf("depth %d", depth+1), func(t *testing.T) {
			w := openWindows(t, opener, store.WindowOptions{Size: ms, Retention: 1000 * ms})
			for i := range int64(5) {
				w.put("k", i)
			}
			settle(w)
			check(t, w.view.Delete("k", 0))
			check(t, w.view.Delete("k", 1))
			w.put("k", 5)
			w.starts("all", w.all, 2, 3, 4, 5)
			w.starts("by key", w.view.All, 2, 3, 4, 5)
			for _, scan := range []rowScan{w.all, w.view.All} {
				var got []int64
				check(t, scan(func(r store.Row[string, string]) bool {
					got = append(got, r.Start)
					check(t, w.view.Delete("k", r.Start+1))
					return true
				}))
				if !slices.Equal(got, []int64{2, 4}) {
					t.Errorf("a scan that deletes ahead: %v", got)
				}
				w.put("k", 3)
				w.put("k", 5)
			}
		})
	}
}
