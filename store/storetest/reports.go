package storetest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/millrace-streams/millrace/store"
)

// FieldReport44: scans over several layers must hide deleted keys, also those
// deleted while the scan runs, and give the same answer on every backend. The
// rules are those of Layered.Scan: live, and in the order of the keys' bytes.
func FieldReport44(t *testing.T, opener store.Opener) {
	for depth, settle := range []func(*store.Layered){
		func(l *store.Layered) { l.Prepare() },
		func(l *store.Layered) { commit(l, 3) },
		func(l *store.Layered) { commit(l, 3); l.BeginFlush() },
		func(l *store.Layered) { commit(l, 3); flush(t, l) },
	} {
		t.Run(fmt.Sprintf("depth %d", depth+1), func(t *testing.T) {
			l := store.NewLayered("s", open(t, opener, t.TempDir(), "s"))
			for _, k := range []string{"0", "1", "2"} {
				putString(t, l, k, "v")
			}
			settle(l)
			deleteString(t, l, "0")
			deleteString(t, l, "1")
			putString(t, l, "3", "v")
			wantKeys(t, l, store.Range{}, "2", "3")
			wantKeys(t, l, store.Range{Reverse: true}, "3", "2")
			scanAndDelete(t, l)
		})
	}
	signedIntegers(t, store.NewLayered("s", open(t, opener, t.TempDir(), "ints")))
}

// scanAndDelete deletes the next key before the scan reaches it.
func scanAndDelete(t *testing.T, l *store.Layered) {
	t.Helper()
	var got []string
	check(t, l.Scan(store.Range{}, func(p store.Pair) (bool, error) {
		if p.Value == nil {
			t.Errorf("nil value of %q", p.Key)
		}
		got = append(got, string(p.Key))
		deleteString(t, l, "3")
		putString(t, l, "4", "v")
		return true, nil
	}))
	if want := []string{"2", "4"}; !slices.Equal(got, want) {
		t.Errorf("scan that deletes ahead: %q, want %q", got, want)
	}
}

// signedIntegers: keys -5..5 in an encoding that keeps no order across zero.
// The range -2..2 is then empty: -2 lies above 2 in byte order.
func signedIntegers(t *testing.T, l *store.Layered) {
	t.Helper()
	key := func(i int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(i)) }
	for i := -5; i <= 5; i++ {
		_, err := l.Put(key(i), []byte{}, 1, nil)
		check(t, err)
	}
	count := func(from, to int) (n int) {
		r := store.Range{From: key(from), To: append(key(to), 0)}
		check(t, l.Scan(r, func(store.Pair) (bool, error) { n++; return true, nil }))
		return n
	}
	for range 2 {
		if n := count(-2, 2); n != 0 {
			t.Errorf("range -2..2: %d keys, want none", n)
		}
		if n := count(0, 2) + count(-2, -1); n != 5 {
			t.Errorf("ranges 0..2 and -2..-1: %d keys, want 5", n)
		}
		commit(l, 11)
		flush(t, l)
	}
}

func wantKeys(t *testing.T, l *store.Layered, r store.Range, want ...string) {
	t.Helper()
	var got []string
	check(t, l.Scan(r, func(p store.Pair) (bool, error) {
		got = append(got, string(p.Key))
		return true, nil
	}))
	if !slices.Equal(got, want) {
		t.Errorf("scan %+v: %q, want %q", r, got, want)
	}
}

// FieldReport46: values stay as they were when got, whatever happens to the
// backend; the empty key and the empty value are ordinary; nil is not.
func FieldReport46(t *testing.T, opener store.Opener) {
	dir := t.TempDir()
	l := store.NewLayered("s", open(t, opener, dir, "s"))
	keepValues(t, l)

	putString(t, l, "", "v")
	putString(t, l, "k", "")
	_, err := l.Put([]byte("gone"), []byte("v"), 1, nil)
	check(t, err)
	_, err = l.Put([]byte("gone"), nil, 2, nil) // nil deletes
	check(t, err)
	for _, settle := range []func(){
		func() {},
		func() { commit(l, 20) },
		func() { flush(t, l) },
	} {
		settle()
		wantLayered(t, l, "", "v", true)
		wantLayered(t, l, "k", "", true)
		wantLayered(t, l, "gone", "", false)
	}
	deleteString(t, l, "k")
	deleteString(t, l, "")
	commit(l, 21)
	flush(t, l)
	wantLayered(t, l, "k", "", false)
	wantLayered(t, l, "", "", false)

	_, err = l.Put(nil, []byte("v"), 1, nil)
	_, err2 := l.Delete(nil, 1, nil)
	_, _, _, err3 := l.Get(nil, nil)
	for _, err := range []error{err, err2, err3} {
		if !errors.Is(err, store.ErrNilKey) {
			t.Errorf("nil key: %v", err)
		}
	}
	_, err = l.Put(make([]byte, store.MaxKeySize+1), []byte("v"), 1, nil)
	if !errors.Is(err, store.ErrKeyTooLarge) {
		t.Errorf("long key: %v", err)
	}
	_, err = l.Put(make([]byte, store.MaxKeySize), []byte("v"), 1, nil)
	check(t, err)
	commit(l, 22)
	flush(t, l)
}

// keepValues gets a thousand values, then rewrites and grows the backend.
func keepValues(t *testing.T, l *store.Layered) {
	t.Helper()
	const n = 1000
	key := func(i int) string { return fmt.Sprintf("k%04d", i) }
	for i := range n {
		putString(t, l, key(i), "first value of "+key(i))
	}
	commit(l, 1)
	flush(t, l)
	var kept [][]byte
	for i := range n {
		v, _, _, err := l.Get(nil, []byte(key(i)))
		check(t, err)
		kept = append(kept, v)
	}
	large := string(make([]byte, 2000))
	for round := range int64(2) {
		for i := range n {
			putString(t, l, key(i), large)
			putString(t, l, key(i)+"-more", large)
		}
		commit(l, 2+round)
		flush(t, l)
	}
	for i, v := range kept {
		if string(v) != "first value of "+key(i) {
			t.Fatalf("value %d is now %q", i, v)
		}
	}
}

func wantLayered(t *testing.T, l *store.Layered, key, want string, wantOK bool) {
	t.Helper()
	got, _, ok, err := l.Get(nil, []byte(key))
	check(t, err)
	if ok != wantOK || string(got) != want {
		t.Errorf("get %q: %q, %v; want %q, %v", key, got, ok, want, wantOK)
	}
}
