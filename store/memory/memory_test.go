package memory_test

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/memory"
	"github.com/millrace-streams/millrace/store/storetest"
)

func TestBackend(t *testing.T) {
	t.Parallel()
	storetest.Run(t, memory.Opener{}, storetest.Features{})
}

func TestFieldReport44(t *testing.T) {
	t.Parallel()
	storetest.FieldReport44(t, memory.Opener{})
}

func TestFieldReport46(t *testing.T) {
	t.Parallel()
	storetest.FieldReport46(t, memory.Opener{})
}

func TestFieldReport24(t *testing.T) {
	t.Parallel()
	storetest.FieldReport24(t, memory.Opener{})
}

func TestFieldReport50(t *testing.T) {
	t.Parallel()
	storetest.FieldReport50(t, memory.Opener{})
}

// The keys are put in order at the first scan, while others write: it is complete, and so are those that follow.
func TestWritesWhileKeysArePutInOrder(t *testing.T) {
	t.Parallel()
	const n = 20_000
	b := memory.New()
	apply := func(from, to int, deleted bool) {
		w := store.NewWriteSet()
		for i := from; i < to; i++ {
			if key := fmt.Appendf(nil, "k%06d", i); deleted {
				w.Delete(key, 1, nil)
			} else {
				w.Put(key, []byte("v"), 1, nil)
			}
		}
		if err := b.Apply(store.Batch{Entries: w.Entries(), Offset: -1}); err != nil {
			t.Error(err)
		}
	}
	apply(0, n, false)
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; i < n; i += 1000 {
			apply(i, i+500, true)
			apply(i, i+250, false)
			apply(n+i, n+i+500, false)
		}
	})
	pairs, err := b.Scan(nil, store.Range{}, 3*n)
	if err != nil || !slices.IsSortedFunc(pairs, func(a, b store.Pair) int { return bytes.Compare(a.Key, b.Key) }) {
		t.Errorf("not in order (%v)", err)
	}
	always := 0 // seen of the keys that were never deleted
	for _, p := range pairs {
		if i, _ := strconv.Atoi(string(p.Key[1:])); i < n && i%1000 >= 500 {
			always++
		}
	}
	if always != n/2 {
		t.Errorf("%d keys, want %d", always, n/2)
	}
	writer.Wait()
	if pairs, err = b.Scan(nil, store.Range{}, 3*n); err != nil || len(pairs) != n*3/4+n/2 {
		t.Errorf("%d keys at the end (%v), want %d", len(pairs), err, n*3/4+n/2)
	}
}
