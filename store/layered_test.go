package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/memory"
)

func newLayered() *store.Layered { return store.NewLayered("counts", memory.New()) }

func put(t testing.TB, l *store.Layered, key, value string) *store.Entry {
	t.Helper()
	e, err := l.Put([]byte(key), []byte(value), 5, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func wantValue(t testing.TB, l *store.Layered, key, want string) {
	t.Helper()
	got, _, ok, err := l.Get(nil, []byte(key))
	if err != nil || !ok || string(got) != want {
		t.Fatalf("get %q: %q, %v, %v; want %q", key, got, ok, err, want)
	}
}

func wantAbsent(t testing.TB, l *store.Layered, key string) {
	t.Helper()
	if got, _, ok, err := l.Get(nil, []byte(key)); ok || err != nil {
		t.Fatalf("get %q: %q, %v; want nothing", key, got, err)
	}
}

func flush(t testing.TB, l *store.Layered) {
	t.Helper()
	batch, ok := l.BeginFlush()
	if !ok {
		t.Fatal("nothing to flush")
	}
	err := l.Backend().Apply(batch)
	l.EndFlush(err)
	if err != nil {
		t.Fatal(err)
	}
}

func TestCommitCycle(t *testing.T) {
	t.Parallel()
	l := newLayered()
	put(t, l, "a", "1")
	if !l.Dirty() || l.StagedBytes() == 0 {
		t.Fatal("not dirty")
	}
	set := l.Prepare()
	if set.Len() != 1 || l.Dirty() || l.StagedBytes() != 0 {
		t.Fatal("prepare must leave an empty layer")
	}
	put(t, l, "a", "2") // the next interval fills meanwhile
	wantValue(t, l, "a", "2")
	if _, _, ok, _ := l.GetCommitted(nil, []byte("a")); ok {
		t.Fatal("committed before the commit")
	}
	l.Committed(3)
	if got, _, _, _ := l.GetCommitted(nil, []byte("a")); string(got) != "1" {
		t.Fatalf("committed %q", got)
	}
	l.Prepare()
	put(t, l, "b", "3")
	l.Abort()
	wantValue(t, l, "a", "1")
	wantAbsent(t, l, "b")
	if offset, ok := l.Offset(); offset != 3 || !ok {
		t.Fatal(offset, ok)
	}
	if l.Dirty() {
		t.Fatal("dirty after abort")
	}
}

func TestPrepareTwicePanics(t *testing.T) {
	t.Parallel()
	l := newLayered()
	l.Prepare()
	defer func() {
		if recover() == nil {
			t.Fatal("no panic")
		}
	}()
	l.Prepare()
}

func TestRollbackOfAStep(t *testing.T) {
	t.Parallel()
	l := newLayered()
	put(t, l, "a", "1").Aux = 7
	l.Mark()
	put(t, l, "a", "2").Aux = 8
	put(t, l, "b", "2")
	l.Rollback()
	wantValue(t, l, "a", "1")
	wantAbsent(t, l, "b")
	if set := l.Prepare(); set.Len() != 1 || set.Entries()[0].Aux != 7 {
		t.Fatal("the step left traces")
	}
	put(t, l, "c", "3")
	l.Rollback() // Prepare marks
	wantAbsent(t, l, "c")
}

// Hard crash: what was not committed, or not in the changelog, is nowhere in
// the backend.
func TestFieldReport2(t *testing.T) {
	t.Parallel()
	backend := memory.New()
	l := store.NewLayered("counts", backend)
	put(t, l, "a", "1")
	l.Prepare()
	l.Committed(2)
	put(t, l, "ghost", "1")
	flush(t, l)
	put(t, l, "ghost", "2")
	l.Prepare()
	if _, ok := l.BeginFlush(); ok {
		t.Fatal("a layer in commit must not be flushed")
	}
	// The process dies; another one finds the backend.
	l = store.NewLayered("counts", backend)
	wantAbsent(t, l, "ghost")
	wantValue(t, l, "a", "1")
	if offset, ok := l.Offset(); offset != 2 || !ok {
		t.Fatal(offset, ok)
	}
}

func TestFlushOfAnOffsetOnly(t *testing.T) {
	t.Parallel()
	l := newLayered()
	if _, ok := l.BeginFlush(); ok {
		t.Fatal("nothing to flush")
	}
	l.Committed(0)
	batch, ok := l.BeginFlush()
	if !ok || len(batch.Entries) != 0 || batch.Offset != 0 {
		t.Fatal(batch, ok)
	}
	l.EndFlush(l.Backend().Apply(batch))
	if _, ok := l.BeginFlush(); ok {
		t.Fatal("nothing to flush again")
	}
	l.Committed(-1)
	if _, ok := l.BeginFlush(); ok {
		t.Fatal("no offset is no progress")
	}
	// A store without changelog has entries and no offset.
	l = newLayered()
	put(t, l, "a", "1")
	l.Prepare()
	l.Committed(-1)
	flush(t, l)
	if _, ok := l.Backend().Offset(); ok {
		t.Fatal("offset from nowhere")
	}
}

func TestFailedFlushComesBack(t *testing.T) {
	t.Parallel()
	l := newLayered()
	commit := func(key, value string, offset int64) {
		put(t, l, key, value)
		l.Prepare()
		l.Committed(offset)
	}
	commit("a", "1", 1)
	commit("b", "1", 2)
	if _, ok := l.BeginFlush(); !ok {
		t.Fatal("no batch")
	}
	commit("b", "2", 3)
	before := l.UnflushedBytes()
	l.EndFlush(errors.New("disk full"))
	if l.UnflushedBytes() >= before {
		t.Fatal("b counted twice")
	}
	wantValue(t, l, "a", "1")
	wantValue(t, l, "b", "2")
	batch, _ := l.BeginFlush()
	if len(batch.Entries) != 2 || batch.Offset != 3 {
		t.Fatal(batch)
	}
	l.EndFlush(l.Backend().Apply(batch))
	if l.UnflushedBytes() != 0 {
		t.Fatal(l.UnflushedBytes())
	}
	wantValue(t, l, "b", "2")
}

func TestClosed(t *testing.T) {
	t.Parallel()
	l := newLayered()
	put(t, l, "a", "1")
	err := l.Scan(store.Range{}, func(store.Pair) (bool, error) { return true, l.Close() })
	_, errPut := l.Put([]byte("a"), []byte("1"), 1, nil)
	_, errDelete := l.Delete([]byte("a"), 1, nil)
	_, _, _, errGet := l.Get(nil, []byte("a"))
	errScan := l.Scan(store.Range{}, func(store.Pair) (bool, error) { return true, nil })
	for _, err := range []error{err, errPut, errDelete, errGet, errScan} {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("got %v", err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// Sets are used again from commit to commit; nothing may leak from one into
// the next.
func TestSetsAreUsedAgain(t *testing.T) {
	t.Parallel()
	l := newLayered()
	for i := range 50 {
		for k := range 20 {
			put(t, l, fmt.Sprint("k", (k+i)%30), fmt.Sprint("some longer value ", i))
		}
		if set := l.Prepare(); set.Len() != 20 || set.Entries()[0].Key != fmt.Sprint("k", i%30) {
			t.Fatalf("interval %d: %d keys, first %q", i, set.Len(), set.Entries()[0].Key)
		}
		if _, err := l.Delete([]byte("next"), 1, nil); err != nil {
			t.Fatal(err)
		}
		l.UncommittedAbort()
		l.Committed(int64(i))
		if i%7 == 6 {
			flush(t, l)
		}
		wantValue(t, l, fmt.Sprint("k", i%30), fmt.Sprint("some longer value ", i))
	}
}
