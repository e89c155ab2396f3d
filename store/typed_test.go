package store_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
)

func TestWindowedKeys(t *testing.T) {
	t.Parallel()
	type windowed = store.Windowed[string]
	tests := []struct {
		s     serde.Serde[windowed]
		w     windowed
		bytes string
	}{
		{store.TimeWindowed(serde.String, 10*time.Millisecond), windowed{"key", 0x102, 0x10c}, "key\x00\x00\x00\x00\x00\x00\x01\x02"},
		{store.TimeWindowed(serde.String, 10*time.Millisecond), windowed{"", math.MaxInt64 - 1, math.MaxInt64}, "\x7f\xff\xff\xff\xff\xff\xff\xfe"},
		{store.SessionWindowed(serde.String), windowed{"key", 3, 4}, "key\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x03"},
	}
	for _, test := range tests {
		b, err := test.s.Append([]byte("x"), test.w)
		if string(b) != "x"+test.bytes || err != nil {
			t.Errorf("%v: %q, %v", test.w, b, err)
		}
		w, err := test.s.Decode([]byte(test.bytes))
		if w != test.w || err != nil {
			t.Errorf("%q: %v, %v", test.bytes, w, err)
		}
		if k := test.s.(serde.PartitionKeyer).PartitionKey([]byte(test.bytes)); string(k) != test.w.Key {
			t.Errorf("%q is partitioned by %q", test.bytes, k)
		}
		if _, err := test.s.Decode([]byte("short")); !errors.Is(err, serde.ErrLength) {
			t.Error(err)
		}
	}
}

func TestInvalidTimes(t *testing.T) {
	t.Parallel()
	window := store.NewWindow("s", serde.String, serde.String, store.WindowOptions{Size: ms})
	w, err := window.View(task(window))
	must(t, err)
	session := store.NewSession("s", serde.String, serde.String, store.SessionOptions{Retention: ms})
	s, err := session.View(task(session))
	must(t, err)
	versioned := store.NewVersioned("s", serde.String, serde.String, ms)
	v, err := versioned.View(task(versioned))
	must(t, err)
	_, err1 := w.Put("k", "v", -1)
	err2 := w.Delete("k", -1)
	_, err3 := s.Put(store.Windowed[string]{Key: "k", Start: -1, End: 1}, "v")
	_, err4 := s.Put(store.Windowed[string]{Key: "k", Start: 2, End: 1}, "v")
	_, _, err5 := v.Put("k", "v", -1)
	for _, err := range []error{err1, err2, err3, err4, err5} {
		if !errors.Is(err, store.ErrInvalidTime) {
			t.Error(err)
		}
	}
	if _, ok, err := w.Fetch("k", -1); ok || err != nil {
		t.Error(ok, err)
	}
	if _, ok, err := s.FetchSession("k", 2, 1); ok || err != nil {
		t.Error(ok, err)
	}
	if _, ok, err := v.GetAsOf("k", -1); ok || err != nil {
		t.Error(ok, err)
	}
}

// Keys as long as a store takes, and one byte longer.
func TestLongestKeys(t *testing.T) {
	t.Parallel()
	window := store.NewWindow("s", serde.Bytes, serde.String, store.WindowOptions{Size: ms})
	w, err := window.View(task(window))
	must(t, err)
	session := store.NewSession("s", serde.Bytes, serde.String, store.SessionOptions{Retention: ms})
	s, err := session.View(task(session))
	must(t, err)
	versioned := store.NewVersioned("s", serde.Bytes, serde.String, ms)
	v, err := versioned.View(task(versioned))
	must(t, err)
	ttl := store.NewKeyValue("s", serde.Bytes, serde.String, store.WithTTL(ms))
	k, err := ttl.View(task(ttl))
	must(t, err)
	for what, put := range map[int]func(key []byte) error{
		13: func(key []byte) error { _, err := w.Put(key, "v", 1); return err },
		17: func(key []byte) error {
			_, err := s.Put(store.Windowed[[]byte]{Key: key, Start: 1, End: 1}, "v")
			return err
		},
		9:  func(key []byte) error { _, _, err := v.Put(key, "v", 1); return err },
		-9: func(key []byte) error { return k.Put(key, "v") },
	} {
		longest := store.MaxKeySize - max(what, -what)
		must(t, put(make([]byte, longest)))
		if err := put(make([]byte, longest+1)); !errors.Is(err, store.ErrKeyTooLarge) {
			t.Errorf("%d: %v", what, err)
		}
		if err := put(nil); !errors.Is(err, store.ErrNilKey) {
			t.Errorf("%d: %v", what, err)
		}
	}
}

// Nil values delete, empty ones are values, in stores of every kind.
func TestNilAndEmptyValues(t *testing.T) {
	t.Parallel()
	window := store.NewWindow("s", serde.Bytes, serde.Bytes, store.WindowOptions{Size: ms})
	w, err := window.View(task(window))
	must(t, err)
	session := store.NewSession("s", serde.Bytes, serde.Bytes, store.SessionOptions{Retention: ms})
	s, err := session.View(task(session))
	must(t, err)
	versioned := store.NewVersioned("s", serde.Bytes, serde.Bytes, 0)
	v, err := versioned.View(task(versioned))
	must(t, err)
	empty, now := []byte{}, store.Windowed[[]byte]{Key: []byte{}, Start: 1, End: 1}
	for _, value := range [][]byte{empty, nil} {
		_, err := w.Put(empty, value, 1)
		must(t, err)
		_, err = s.Put(now, value)
		must(t, err)
		_, _, err = v.Put(empty, value, 1)
		must(t, err)
		got1, ok1, err1 := w.Fetch(empty, 1)
		got2, ok2, err2 := s.FetchSession(empty, 1, 1)
		got3, ok3, err3 := v.Get(empty)
		must(t, errors.Join(err1, err2, err3))
		if want := value != nil; ok1 != want || ok2 != want || ok3 != want {
			t.Errorf("%v: %v %v %v", value, ok1, ok2, ok3)
		}
		if value != nil && (got1 == nil || got2 == nil || got3.Value == nil) {
			t.Errorf("%v: %v %v %v", value, got1, got2, got3)
		}
	}
}

func TestStates(t *testing.T) {
	t.Parallel()
	value := store.NewValueState("s", serde.String, serde.Bytes)
	src := task(value)
	v, err := value.View(src)
	must(t, err)
	mapping := store.NewMapState("s", serde.String, serde.Bytes, serde.Bytes)
	m, err := mapping.View(task(mapping))
	must(t, err)
	list := store.NewListState("s", serde.String, serde.Bytes, store.WithTTL(10*ms))
	listSrc := task(list)
	l, err := list.View(listSrc)
	must(t, err)

	_, _, err1 := v.Value()
	_, _, err2 := m.Get([]byte("k"))
	_, err3 := l.Values()
	for _, err := range []error{err1, err2, err3, v.Update([]byte{}), v.Clear(), m.Put([]byte{}, []byte{}), m.Clear(), l.Append()} {
		if !errors.Is(err, store.ErrNoKey) {
			t.Error(err)
		}
	}
	must(t, errors.Join(v.SetKey("a"), v.Update([]byte("1")), v.SetKey("b"), v.Update([]byte("2")), v.Update(nil), v.SetKey("a")))
	if got, ok, err := v.Value(); string(got) != "1" || !ok || err != nil {
		t.Error(got, ok, err)
	}
	wantRecords(t, src.layers, `"a"="1"@100`, `"b"=null@100`)

	must(t, errors.Join(m.SetKey("a"), m.Put([]byte{}, []byte{}), m.Put([]byte("x"), []byte("1")), m.Put([]byte("x"), nil)))
	if err := m.Put(nil, []byte{}); !errors.Is(err, store.ErrNilKey) {
		t.Error(err)
	}
	if got, ok, err := m.Get([]byte{}); len(got) > 0 || !ok || err != nil {
		t.Error(got, ok, err)
	}

	must(t, errors.Join(l.SetKey("a"), l.Append([]byte("1"), []byte("2"))))
	if err := l.Append(nil); err == nil {
		t.Error("nil is no element")
	}
	wantRecords(t, listSrc.layers,
		`"\x00\x00\x00\x01a\x00\x00\x00\x00\x00\x00\x00\x00"="1"@100`,
		`"\x00\x00\x00\x01a\x00\x00\x00\x00\x00\x00\x00\x01"="2"@100`)
	listSrc.layers.Advance(111)
	if empty, err := l.Empty(); !empty || err != nil {
		t.Error("elements expire", empty, err)
	}
	if value.ValueType() != "[]uint8" || mapping.ValueType() != "map[[]uint8][]uint8" || list.ValueType() != "[][]uint8" {
		t.Error(value.ValueType(), mapping.ValueType(), list.ValueType())
	}
}

// Signed keys across zero, in an encoding that keeps their order.
func TestViewRangeOfOrderedKeys(t *testing.T) {
	t.Parallel()
	v, _ := view(t, serde.OrderedInt64, serde.String)
	for i := int64(-5); i <= 5; i++ {
		must(t, v.Put(i, ""))
	}
	type fn = func(int64, string) bool
	if got := collect(t, func(f fn) error { return v.Range(-2, 2, f) }); !slices.Equal(got, []int64{-2, -1, 0, 1, 2}) {
		t.Errorf("got %v", got)
	}
}

func TestWindowsDoNotAllocate(t *testing.T) {
	d := store.NewWindow("s", serde.String, serde.Int64, store.WindowOptions{Size: ms, Retention: time.Hour})
	v, err := d.View(task(d))
	must(t, err)
	count := func() {
		n, _, err := v.Fetch("key", 5)
		must(t, err)
		_, err = v.Put("key", n+1, 5)
		must(t, err)
	}
	count()
	if n := testing.AllocsPerRun(100, count); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestTTLDoesNotAllocate(t *testing.T) {
	d := store.NewKeyValue("s", serde.String, serde.Int64, store.WithTTL(time.Hour))
	v, err := d.View(task(d))
	must(t, err)
	count := func() {
		n, _, err := v.Get("key")
		must(t, err)
		must(t, v.Put("key", n+1))
	}
	count()
	if n := testing.AllocsPerRun(100, count); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
