package store_test

import (
	"fmt"
	"testing"

	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/memory"
)

// Warm changes nothing that can be read, whichever layers there are, of keys that are there and of others.
func TestWarmChangesNothing(t *testing.T) {
	t.Parallel()
	const keys = 20_000 // as many as make it worth while
	backend, err := memory.Opener{}.Open("", "s")
	must(t, err)
	l := store.NewLayered("s", backend)
	key := func(i int) []byte { return fmt.Appendf(nil, "key-%d", i) }
	var all [][]byte
	want := map[string]string{}
	put := func(from, to int, value string) {
		for i := from; i < to; i++ {
			_, err := l.Put(key(i), []byte(value), 0, nil)
			must(t, err)
			want[string(key(i))] = value
		}
	}
	put(0, keys/2, "flushing")
	l.Prepare()
	l.Committed(1)
	batch, ok := l.BeginFlush()
	if !ok {
		t.Fatal("nothing to flush")
	}
	put(keys/4, keys*3/4, "committed")
	l.Prepare()
	l.Committed(2)
	put(keys/3, keys*5/6, "committing")
	l.Prepare()
	put(keys/2, keys, "uncommitted")
	for i := range keys + keys/2 {
		all = append(all, key(i))
	}
	for from := 0; from < len(all); from += 37 {
		l.Warm(all[from:min(from+37, len(all))])
	}
	l.Warm([][]byte{{}})
	l.Warm(nil)
	for _, k := range all {
		value, _, ok, err := l.Get(nil, k)
		must(t, err)
		if w, there := want[string(k)]; ok != there || string(value) != w {
			t.Fatalf("%s is %q, %t, want %q, %t", k, value, ok, w, there)
		}
	}
	l.Committed(3) // moves entries that are warmed by themselves
	must(t, backend.Apply(batch))
	l.EndFlush(nil)
	for _, k := range all {
		value, _, _, err := l.Get(nil, k)
		must(t, err)
		if string(value) != want[string(k)] {
			t.Fatalf("%s is %q after the commit, want %q", k, value, want[string(k)])
		}
	}
	must(t, l.Close())
	l.Warm(all[:1])
}
