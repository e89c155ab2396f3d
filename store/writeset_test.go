package store_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-streams/millrace/internal/seed"
	"github.com/millrace-streams/millrace/store"
)

// write is an entry as the model knows it.
type write struct {
	value   string
	ts      int64
	headers int
	deleted bool
	aux     int32
}

// setModel is a write set as a map and an order.
type setModel struct {
	writes map[string]write
	order  []string
}

func (m setModel) clone() setModel {
	return setModel{maps.Clone(m.writes), slices.Clone(m.order)}
}

func (m *setModel) set(key string, w write) {
	old, ok := m.writes[key]
	if !ok {
		m.order = append(m.order, key)
	}
	if w.aux == 0 {
		w.aux = old.aux
	}
	m.writes[key] = w
}

func compareSet(t *testing.T, w *store.WriteSet, m setModel) {
	t.Helper()
	if w.Len() != len(m.order) {
		t.Fatalf("%d keys, want %d", w.Len(), len(m.order))
	}
	for i, e := range w.Entries() {
		want := m.writes[m.order[i]]
		got := write{string(e.Value), e.Timestamp, len(e.Headers), e.Deleted, e.Aux}
		if e.Deleted {
			got.value = ""
		}
		if e.Key != m.order[i] || got != want || w.Get([]byte(e.Key)) != e || string(e.KeyBytes()) != e.Key {
			t.Fatalf("entry %d is %q %v, want %q %v", i, e.Key, got, m.order[i], want)
		}
	}
	sorted := slices.Sorted(maps.Keys(m.writes))
	compareKeys(t, sorted, w.Sorted())
	for _, reverse := range []bool{false, true} {
		var scanned []*store.Entry
		w.Ascend(store.Range{Reverse: reverse}, func(e *store.Entry) bool {
			scanned = append(scanned, e)
			return true
		})
		compareKeys(t, sorted, scanned)
		slices.Reverse(sorted)
	}
}

func compareKeys(t *testing.T, want []string, got []*store.Entry) {
	t.Helper()
	if !slices.EqualFunc(want, got, func(k string, e *store.Entry) bool { return k == e.Key }) {
		t.Fatalf("keys in order: %v, want %q", got, want)
	}
}

// bytesOf is what Bytes would be if the set had been built afresh.
func bytesOf(w *store.WriteSet) int {
	fresh := store.NewWriteSet()
	for _, e := range w.Entries() {
		if e.Deleted {
			fresh.Delete(e.KeyBytes(), e.Timestamp, e.Headers)
		} else {
			fresh.Put(e.KeyBytes(), e.Value, e.Timestamp, e.Headers)
		}
	}
	return fresh.Bytes()
}

// randomKey is one of few: some are too long to lie in their entries, or to be remembered as absent.
func randomKey(rng *rand.Rand) string {
	return strings.Repeat("k", 17*rng.IntN(3)) + fmt.Sprint(rng.IntN(12))
}

func randomWrite(rng *rand.Rand, w *store.WriteSet, m *setModel) {
	key := randomKey(rng)
	for range rng.IntN(3) { // as most writes come after a read, of this key or of another one
		w.Get([]byte([]string{key, randomKey(rng)}[rng.IntN(2)]))
	}
	headers := make([]store.Header, rng.IntN(3))
	next := write{ts: rng.Int64N(1000), headers: len(headers), deleted: rng.IntN(4) == 0}
	var e *store.Entry
	if next.deleted {
		e = w.Delete([]byte(key), next.ts, headers)
	} else {
		next.value = strings.Repeat("v", rng.IntN(40))
		e = w.Put([]byte(key), []byte(next.value), next.ts, headers)
	}
	if rng.IntN(3) == 0 {
		next.aux = 1 + rng.Int32N(5)
		e.Aux = next.aux
	}
	m.set(key, next)
}

func TestWriteSetAgainstModel(t *testing.T) {
	t.Parallel()
	rng := seed.Rand(t)
	w, m := store.NewWriteSet(), setModel{writes: map[string]write{}}
	marked := m.clone()
	for range 4000 {
		switch n := rng.IntN(20); {
		case n < 14:
			randomWrite(rng, w, &m)
		case n < 16:
			w.Mark()
			marked = m.clone()
		case n < 18:
			w.Rollback()
			m = marked.clone()
		case n < 19 && rng.IntN(8) == 0:
			newer, nm := store.NewWriteSet(), setModel{writes: map[string]write{}}
			for range rng.IntN(20) {
				randomWrite(rng, newer, &nm)
			}
			w.Absorb(newer)
			for _, key := range nm.order {
				aux := nm.writes[key].aux
				m.set(key, nm.writes[key])
				absorbed := m.writes[key]
				absorbed.aux = aux
				m.writes[key] = absorbed
			}
			marked = m.clone()
		case rng.IntN(60) == 0: // begin with a new set, which has no index
			w, m = store.NewWriteSet(), setModel{writes: map[string]write{}}
			marked = m.clone()
		}
		if rng.IntN(4) == 0 {
			compareSet(t, w, m)
			if w.Bytes() != bytesOf(w) {
				t.Fatalf("%d bytes, want %d", w.Bytes(), bytesOf(w))
			}
		}
	}
}

func TestPutCopiesAndEmptyIsNotNil(t *testing.T) {
	t.Parallel()
	w := store.NewWriteSet()
	key, value := []byte("key"), []byte("value")
	w.Put(key, value, 1, nil)
	key[0], value[0] = 'x', 'x'
	if e := w.Get([]byte("key")); e == nil || string(e.Value) != "value" {
		t.Fatalf("got %v", e)
	}
	for range 2 {
		if e := w.Put([]byte("empty"), []byte{}, 1, nil); e.Value == nil || e.Deleted {
			t.Fatalf("got %v", e)
		}
		w.Delete([]byte("empty"), 2, nil)
	}
	if w.Get([]byte("absent")) != nil {
		t.Fatal("found what is not there")
	}
}

// A step in steady state costs no allocation, also if it is rolled back.
func TestStepsDoNotAllocate(t *testing.T) {
	w := store.NewWriteSet()
	var keys [][]byte
	for i := range 100 {
		keys = append(keys, fmt.Appendf(nil, "key-%d", i))
		w.Put(keys[i], make([]byte, 100), 0, nil)
	}
	value := make([]byte, 90)
	step := func() {
		w.Mark()
		for _, k := range keys {
			w.Put(k, value, 1, nil)
			w.Put(k, value, 2, nil)
		}
		w.Rollback()
	}
	step()
	if n := testing.AllocsPerRun(20, step); n > 0 {
		t.Fatalf("%v allocations", n)
	}
}

func TestAscendWhileWriting(t *testing.T) {
	t.Parallel()
	w := store.NewWriteSet()
	for _, k := range []string{"", "b", "d", "f"} {
		w.Put([]byte(k), nil, 1, nil)
	}
	var got []string
	w.Ascend(store.Range{To: []byte("e")}, func(e *store.Entry) bool {
		got = append(got, e.Key)
		w.Put([]byte(e.Key+"+"), nil, 1, nil)
		return len(got) < 5
	})
	if want := []string{"", "+", "++", "+++", "++++"}; !slices.Equal(got, want) {
		t.Fatalf("got %q", got)
	}
	got = nil
	w.Ascend(store.Range{From: []byte("b"), Reverse: true}, func(e *store.Entry) bool {
		got = append(got, e.Key)
		return true
	})
	if want := []string{"f", "d", "b"}; !slices.Equal(got, want) {
		t.Fatalf("got %q", got)
	}
}
