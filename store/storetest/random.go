package storetest

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-streams/millrace/internal/seed"
	"github.com/millrace-streams/millrace/store"
)

// value is what the model knows of a key.
type value struct {
	bytes string
	ts    int64
}

type state map[string]value

// model is a store as plain maps, each the whole content as of one layer.
type model struct {
	current   state // what a read sees
	marked    state // as of the last mark
	inFlight  state // with the commit in flight; nil if there is none
	committed state
	flushing  state // nil: no flush in flight
	flushed   state // what the backend holds

	offset, flushingOffset, flushedOffset int64 // -1: none
}

// random runs a store and its model side by side.
type random struct {
	t      *testing.T
	rng    *rand.Rand
	opener store.Opener
	f      Features
	dir    string
	l      *store.Layered
	reader *store.Reader // of l, as queries have one
	batch  store.Batch
	m      model
	clock  int64
	log    []string // the last operations, for the failure's report
}

func testRandom(t *testing.T, opener store.Opener, f Features) {
	r := &random{t: t, rng: seed.Rand(t), opener: opener, f: f, dir: t.TempDir()}
	r.m = model{
		current: state{}, marked: state{}, committed: state{}, flushed: state{},
		offset: -1, flushingOffset: -1, flushedOffset: -1,
	}
	r.l = store.NewLayered("s", open(t, opener, r.dir, "s"))
	r.reader = r.l.Reader()
	const ops = 6000
	for range ops {
		r.step()
		if t.Failed() {
			t.Fatalf("last operations:\n%s", strings.Join(r.log, "\n"))
		}
	}
}

// step does one operation, common ones more often.
func (r *random) step() {
	ops := []struct {
		weight int
		name   string
		run    func()
	}{
		{40, "put", r.put},
		{15, "delete", r.delete},
		{12, "get", r.get},
		{8, "scan", r.scan},
		{4, "scan and write", r.scanAndWrite},
		{6, "mark", r.mark},
		{4, "rollback", r.rollback},
		{4, "prepare", r.prepare},
		{4, "committed", r.commit},
		{1, "abort", r.abort},
		{1, "uncommitted abort", r.uncommittedAbort},
		{3, "begin flush", r.beginFlush},
		{3, "end flush", r.endFlush},
		{1, "restore", r.restore},
		{1, "reopen", r.reopen},
	}
	total := 0
	for _, op := range ops {
		total += op.weight
	}
	n := r.rng.IntN(total)
	for _, op := range ops {
		if n -= op.weight; n < 0 {
			r.note("%s", op.name)
			op.run()
			return
		}
	}
}

func (r *random) note(format string, args ...any) {
	if len(r.log) == 60 {
		r.log = r.log[1:]
	}
	r.log = append(r.log, fmt.Sprintf(format, args...))
}

// key is one of few, so that layers overlap; some are prefixes of others.
func (r *random) key() string {
	n := r.rng.IntN(80)
	k := strings.Repeat("k", n%3) + strings.Repeat("\x00", n%2)
	if n%5 > 0 {
		k += fmt.Sprint(n / 4)
	}
	return k
}

// value has any length around what fits into an entry.
func (r *random) value() string {
	if r.rng.IntN(20) == 0 {
		return strings.Repeat("large", r.rng.IntN(1000))
	}
	return strings.Repeat("v", r.rng.IntN(40)) + fmt.Sprint(r.clock)
}

func (r *random) put() {
	r.clock++
	k, v := r.key(), r.value()
	if r.rng.IntN(10) == 0 {
		v = ""
	}
	r.note("  %q = %.20q", k, v)
	_, err := r.l.Put([]byte(k), []byte(v), r.clock, nil)
	check(r.t, err)
	r.m.current[k] = value{v, r.clock}
}

func (r *random) delete() {
	r.clock++
	k := r.key()
	r.note("  %q", k)
	_, err := r.l.Put([]byte(k), nil, r.clock, nil)
	check(r.t, err)
	delete(r.m.current, k)
}

func (r *random) get() {
	k := r.key()
	got, ts, ok, err := r.l.Get([]byte("x"), []byte(k))
	check(r.t, err)
	want, wantOK := r.m.current[k]
	if ok != wantOK || string(got) != "x"+want.bytes || ts != want.ts {
		r.t.Errorf("get %q: %q at %d, %v; want %q at %d, %v", k, got, ts, ok, want.bytes, want.ts, wantOK)
	}
	want, wantOK = r.m.committed[k]
	for what, get := range map[string]getFunc{"get committed": r.l.GetCommitted, "reader": r.reader.Get} {
		got, ts, ok, err = get([]byte("x"), []byte(k))
		check(r.t, err)
		if ok != wantOK || string(got) != "x"+want.bytes || ts != want.ts {
			r.t.Errorf("%s %q: %q at %d, %v; want %q at %d, %v", what, k, got, ts, ok, want.bytes, want.ts, wantOK)
		}
	}
	if offset, ok := r.l.Offset(); ok != (r.m.offset >= 0) || offset != max(r.m.offset, 0) {
		r.t.Errorf("offset %d, %v; want %d", offset, ok, r.m.offset)
	}
}

type getFunc func(dst, key []byte) (value []byte, ts int64, ok bool, err error)

func (r *random) bound() []byte {
	if r.rng.IntN(3) == 0 {
		return nil
	}
	return []byte(r.key())
}

func (r *random) rangeOf() store.Range {
	return store.Range{From: r.bound(), To: r.bound(), Reverse: r.rng.IntN(2) == 0}
}

func (r *random) scan() {
	rg := r.rangeOf()
	r.scanAgainst(rg, r.m.current, r.l.Scan, func() {})
	r.scanAgainst(rg, r.m.committed, r.l.ScanCommitted, func() {})
	r.scanAgainst(rg, r.m.committed, r.scanReader, func() {})
}

// scanReader scans in pieces, which have any limit.
func (r *random) scanReader(rg store.Range, fn func(store.Pair) (bool, error)) error {
	for more := true; more; {
		for !r.reader.Catalog(1 + r.rng.IntN(20)) {
		}
		limit := 1 + r.rng.IntN(10)
		pairs, rest, left, err := r.reader.Scan(nil, rg, limit)
		if err != nil {
			return err
		}
		if len(pairs) > limit {
			r.t.Errorf("%d pairs, more than %d", len(pairs), limit)
		}
		for _, p := range pairs {
			if more, err := fn(p); err != nil || !more {
				return err
			}
		}
		rg, more = rest, left
	}
	return nil
}

// scanAndWrite writes while it scans: each key must be the model's next one as
// of when it is reached.
func (r *random) scanAndWrite() {
	r.scanAgainst(r.rangeOf(), r.m.current, r.l.Scan, func() {
		switch r.rng.IntN(4) {
		case 0:
			r.put()
		case 1:
			r.delete()
		case 2:
			r.scanAgainst(r.rangeOf(), r.m.current, r.l.Scan, func() {})
		}
	})
}

type scanFunc func(store.Range, func(store.Pair) (bool, error)) error

func (r *random) scanAgainst(rg store.Range, s state, scan scanFunc, during func()) {
	r.note("  [%q, %q) reverse %v", rg.From, rg.To, rg.Reverse)
	var last *string
	stop := r.rng.IntN(60)
	errStop := errors.New("stop")
	err := scan(rg, func(p store.Pair) (bool, error) {
		want, ok := s.after(rg, last)
		if !ok || string(p.Key) != want || p.Value == nil ||
			string(p.Value) != s[want].bytes || p.Timestamp != s[want].ts {
			r.t.Errorf("scan [%q, %q) reverse %v: %q=%.20q at %d; want %q=%.20q at %d, %v",
				rg.From, rg.To, rg.Reverse, p.Key, p.Value, p.Timestamp, want, s[want].bytes, s[want].ts, ok)
			return false, nil
		}
		last = &want
		before := string(p.Value)
		during()
		if string(p.Key) != want || string(p.Value) != before {
			r.t.Errorf("scan: pair %q changed within fn", want)
		}
		if stop--; stop == 0 {
			return false, errStop
		}
		return true, nil
	})
	if stop == 0 || r.t.Failed() {
		return
	}
	check(r.t, err)
	if want, ok := s.after(rg, last); ok {
		r.t.Errorf("scan ended before %q", want)
	}
}

// after is the key of the range that follows last, or its first key.
func (s state) after(r store.Range, last *string) (next string, ok bool) {
	for k := range s {
		if (r.From != nil && k < string(r.From)) || (r.To != nil && k >= string(r.To)) {
			continue
		}
		if last != nil && (k == *last || (k < *last) != r.Reverse) {
			continue
		}
		if !ok || (k < next) != r.Reverse {
			next, ok = k, true
		}
	}
	return next, ok
}

func (r *random) mark() {
	r.l.Mark()
	r.m.marked = maps.Clone(r.m.current)
}

func (r *random) rollback() {
	r.l.Rollback()
	r.m.current = maps.Clone(r.m.marked)
}

func (r *random) prepare() {
	if r.m.inFlight != nil {
		return
	}
	w := r.l.Prepare()
	if w.Bytes() < 0 || w.Len() != len(w.Entries()) || r.l.Dirty() {
		r.t.Errorf("prepared set: %d bytes, %d keys", w.Bytes(), w.Len())
	}
	r.m.inFlight = maps.Clone(r.m.current)
	r.m.marked = maps.Clone(r.m.current)
}

func (r *random) commit() {
	if r.m.inFlight == nil {
		return
	}
	offset := int64(-1)
	if r.rng.IntN(5) > 0 {
		offset = r.m.offset + 1 + r.rng.Int64N(3)
	}
	r.l.Committed(offset)
	r.m.committed, r.m.inFlight = r.m.inFlight, nil
	r.m.offset = max(r.m.offset, offset)
}

func (r *random) abort() {
	r.l.Abort()
	r.m.inFlight = nil
	r.m.current = maps.Clone(r.m.committed)
	r.m.marked = maps.Clone(r.m.committed)
}

func (r *random) uncommittedAbort() {
	r.l.UncommittedAbort()
	below := r.m.committed
	if r.m.inFlight != nil {
		below = r.m.inFlight
	}
	r.m.current = maps.Clone(below)
	r.m.marked = maps.Clone(below)
}

func (r *random) beginFlush() {
	var ok bool
	batch, ok := r.l.BeginFlush()
	if !ok {
		return
	}
	if r.m.flushing != nil || batch.Offset != r.m.offset {
		r.t.Errorf("flush of %d, want %d", batch.Offset, r.m.offset)
	}
	r.batch = batch
	r.m.flushing, r.m.flushingOffset = maps.Clone(r.m.committed), r.m.offset
}

func (r *random) endFlush() {
	if r.m.flushing == nil {
		return
	}
	if r.rng.IntN(4) == 0 {
		r.note("  failed")
		r.l.EndFlush(errors.New("disk full"))
		r.m.flushing = nil
		return
	}
	err := r.l.Backend().Apply(r.batch)
	r.l.EndFlush(err)
	check(r.t, err)
	r.m.flushed, r.m.flushing = r.m.flushing, nil
	r.m.flushedOffset = r.m.flushingOffset
	if got, ok := r.l.Backend().Offset(); ok != (r.m.flushedOffset >= 0) || got != max(r.m.flushedOffset, 0) {
		r.t.Errorf("backend's offset %d, %v; want %d", got, ok, r.m.flushedOffset)
	}
}

func (r *random) restore() {
	r.abort()
	var pairs []store.Pair
	for range r.rng.IntN(30) {
		r.clock++
		p := store.Pair{Key: []byte(r.key()), Timestamp: r.clock}
		delete(r.m.committed, string(p.Key))
		if r.rng.IntN(3) > 0 {
			p.Value = []byte(r.value())
			r.m.committed[string(p.Key)] = value{string(p.Value), r.clock}
		}
		pairs = append(pairs, p)
	}
	r.m.offset += 1 + int64(len(pairs))
	if r.rng.IntN(2) == 0 && r.l.Loads() {
		check(r.t, r.l.Load(sortedRows(pairs), r.m.offset))
		r.m.flushed, r.m.flushedOffset = maps.Clone(r.m.committed), r.m.offset
	} else {
		for _, p := range pairs {
			check(r.t, r.l.RestorePut(p.Key, p.Value, p.Timestamp))
		}
		r.l.Restored(r.m.offset)
	}
	r.m.current = maps.Clone(r.m.committed)
	r.m.marked = maps.Clone(r.m.committed)
}

// sortedRows are the last pair of each key, as a durable backend is loaded.
func sortedRows(pairs []store.Pair) iter.Seq[store.Pair] {
	return func(yield func(store.Pair) bool) {
		for _, e := range entries(pairs...) {
			p := store.Pair{Key: e.KeyBytes(), Value: e.Value, Timestamp: e.Timestamp}
			if e.Deleted {
				p.Value = nil
			}
			if !yield(p) {
				return
			}
		}
	}
}

// reopen ends the process, by a stop or a crash: the backend has exactly what
// was flushed.
func (r *random) reopen() {
	if !r.f.Durable {
		return
	}
	if r.f.CrashCopy && r.rng.IntN(2) == 0 {
		r.note("  after a crash")
		r.dir = copyDir(r.t, r.dir)
	}
	check(r.t, r.l.Close())
	r.l = store.NewLayered("s", open(r.t, r.opener, r.dir, "s"))
	r.reader = r.l.Reader()
	r.m.current, r.m.marked = maps.Clone(r.m.flushed), maps.Clone(r.m.flushed)
	r.m.committed = maps.Clone(r.m.flushed)
	r.m.inFlight, r.m.flushing = nil, nil
	r.m.offset = r.m.flushedOffset
	keys := slices.Sorted(maps.Keys(r.m.flushed))
	wantKeys(r.t, r.l, store.Range{}, keys...)
}
