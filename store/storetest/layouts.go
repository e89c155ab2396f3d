package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-streams/millrace/internal/seed"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
)

// kind is a kind of store: its view, and a simple model of it beside.
type kind interface {
	declaration() store.Declaration
	// open makes the view anew; the model stays.
	open(src store.Source) error
	// write does a random write to the view and to the model.
	write(r *rig)
	// read compares a random read.
	read(r *rig)
	shown
	modelled
}

// shown is what a kind's store shows.
type shown interface {
	// contents is all that the view shows.
	contents() ([]string, error)
	// queried is all that a query shows.
	queried(src store.QuerySource) ([]string, error)
}

// modelled is what a kind's model knows.
type modelled interface {
	// want is what contents are to be.
	want() []string
	// wantCompacted is want after a restore from a log of which compaction has
	// left the last record of each key.
	wantCompacted() []string
	// rows is how many rows the backend holds when all that expired is removed,
	// -1 if that is not certain.
	rows() int
	// save returns the model's state; load goes back to it.
	save() any
	load(state any)
}

// rig runs a store of some kind with a log that stands for its changelog.
type rig struct {
	t      *testing.T
	rng    *rand.Rand
	opener store.Opener
	f      Features
	dir    string
	kind   kind
	l      *store.Layered
	now    int64 // stream time

	log       []store.Mirrored
	unsent    []store.Mirrored // of the commit in flight
	inFlight  any              // model states, nil if there is none
	committed any
	asOf      int64 // stream time of the newest commit that was prepared
	query     *query
	notes     []string // the last operations, for the failure's report
}

func (r *rig) Layered(string) (*store.Layered, error) { return r.l, nil }
func (r *rig) RecordTime() int64                      { return r.now }

func testLayouts(t *testing.T, opener store.Opener, f Features) {
	kinds := map[string]kind{
		"window":     newWindowKind(store.WindowOptions{Size: 10 * ms, Retention: 100 * ms}),
		"duplicates": newWindowKind(store.WindowOptions{Size: 10 * ms, Retention: 40 * ms, RetainDuplicates: true}),
		"session":    newSessionKind(),
		"versioned":  newVersionedKind(60 * ms),
		"no history": newVersionedKind(0),
		"ttl":        newTTLKind(100 * ms),
		"short ttl":  newTTLKind(3 * ms),
		"map":        newMapKind(),
		"list":       newListKind(),
	}
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &rig{t: t, rng: seed.Rand(t), opener: opener, f: f, dir: t.TempDir(), kind: k}
			r.run(2000)
		})
	}
}

func (r *rig) run(ops int) {
	check(r.t, r.kind.declaration().Validate())
	r.l = r.openLayers(r.dir)
	r.query = &query{r.l.Reader(), 0}
	check(r.t, r.kind.open(r))
	r.committed = r.kind.save()
	for range ops {
		r.step()
		if r.t.Failed() {
			r.t.Fatalf("last operations:\n%s", strings.Join(r.notes, "\n"))
		}
	}
	r.physical()
	r.reopen()
	r.restoreElsewhere()
	r.physical()
}

func (r *rig) openLayers(dir string) *store.Layered {
	d := r.kind.declaration()
	return store.LayersOf(d, open(r.t, r.opener, dir, store.LocalName(d)))
}

func (r *rig) step() {
	switch n := r.rng.IntN(100); {
	case n < 55:
		r.kind.write(r)
	case n < 80:
		r.kind.read(r)
	case n < 82:
		r.compare(r.kind.want())
	case n < 84:
		r.compareQuery()
	case n < 88:
		r.undo()
	case n < 92:
		r.expire(r.rng.IntN(8))
	case n < 95:
		r.prepare()
	case n < 97:
		r.commit()
	case n < 98:
		r.abort()
	case n < 99:
		flush(r.t, r.l)
	default:
		r.reopen()
		r.restoreElsewhere()
	}
}

func (r *rig) note(format string, args ...any) {
	if len(r.notes) == 40 {
		r.notes = r.notes[1:]
	}
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// compare looks at everything the view shows.
func (r *rig) compare(want []string) {
	r.t.Helper()
	got, err := r.kind.contents()
	check(r.t, err)
	r.same("contents", got, want)
}

func (r *rig) same(what string, got, want []string) {
	r.t.Helper()
	if !slices.Equal(got, want) {
		r.t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// compareQuery looks at everything that a query shows of what is committed.
func (r *rig) compareQuery() {
	r.t.Helper()
	now, state := r.now, r.kind.save()
	r.kind.load(r.committed)
	r.now, _ = r.query.Ready()
	want := r.kind.want()
	r.now = now
	r.kind.load(state)
	got, err := r.kind.queried(r.query)
	check(r.t, err)
	r.same("query", got, want)
}

// query is a store's only partition for queries.
type query struct {
	*store.Reader
	streamTime int64
}

func (q *query) Queried(store.Declaration) (store.Queried, error) {
	return store.Queried{Partitions: []store.QueriedPartition{q}, Owner: func([]byte) int32 { return 0 }}, nil
}

func (q *query) Number() int32         { return 0 }
func (q *query) Ready() (int64, error) { return max(q.streamTime, q.RestoredTime()), nil }

func (q *query) Scan(dst []store.Pair, rg store.Range, limit int) (pairs []store.Pair, err error) {
	end := len(dst) + limit
	for more := true; more && len(dst) < end; {
		for !q.Catalog(50) {
		}
		if dst, rg, more, err = q.Reader.Scan(dst, rg, end-len(dst)); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// undo writes in a step that fails.
func (r *rig) undo() {
	r.l.Mark()
	before := r.kind.save()
	for range 1 + r.rng.IntN(5) {
		r.kind.write(r)
	}
	r.expire(3)
	r.note("rollback")
	r.l.Rollback()
	r.kind.load(before)
}

func (r *rig) expire(limit int) {
	n, err := r.l.Expire(limit)
	check(r.t, err)
	if limit > 0 && n > limit {
		r.t.Errorf("removed %d, more than %d", n, limit)
	}
	r.note("expire: %d", n)
}

func (r *rig) prepare() {
	if r.inFlight != nil {
		return
	}
	r.note("prepare")
	w := r.l.Prepare()
	w.Mirror(func(m store.Mirrored) bool {
		r.unsent = append(r.unsent, store.Mirrored{Key: slices.Clone(m.Key), Value: slices.Clone(m.Value), Timestamp: m.Timestamp})
		return true
	})
	if len(r.unsent) > w.MirrorLen() {
		r.t.Errorf("%d records, announced %d", len(r.unsent), w.MirrorLen())
	}
	r.inFlight, r.asOf = r.kind.save(), r.now
}

func (r *rig) commit() {
	if r.inFlight == nil {
		return
	}
	r.note("committed")
	end := int64(-1)
	if len(r.unsent) > 0 {
		r.log = append(r.log, r.unsent...)
		end = int64(len(r.log))
	}
	r.l.Committed(end)
	r.query.streamTime = r.asOf
	r.committed, r.inFlight, r.unsent = r.inFlight, nil, nil
}

func (r *rig) abort() {
	r.note("abort")
	r.l.Abort()
	r.inFlight, r.unsent = nil, nil
	r.kind.load(r.committed)
}

// settle commits everything.
func (r *rig) settle() {
	r.commit()
	r.prepare()
	r.commit()
}

// reopen ends the process, by a stop or a crash, and brings the store up from
// what the backend has and the rest of the log. It is then as it was committed.
func (r *rig) reopen() {
	if r.rng.IntN(2) == 0 {
		r.settle()
	}
	r.note("reopen")
	if r.f.CrashCopy && r.rng.IntN(2) == 0 {
		r.dir = copyDir(r.t, r.dir)
	}
	check(r.t, r.l.Close())
	r.l = r.openLayers(r.dir)
	from, ok := r.l.Offset()
	if ok != (from > 0) && r.f.Durable && from != 0 {
		r.t.Errorf("offset %d, %v", from, ok)
	}
	r.restore(r.l, r.log[from:], int(from))
	r.query = &query{r.l.Reader(), r.now}
	check(r.t, r.kind.open(r))
	r.inFlight, r.unsent = nil, nil
	r.kind.load(r.committed)
	r.compare(r.kind.want())
	r.compareQuery()
}

// restore brings layers up from a part of the log that begins at the offset from,
// in batches.
func (r *rig) restore(l *store.Layered, log []store.Mirrored, from int) {
	for len(log) > 0 {
		n := min(len(log), 1+r.rng.IntN(50))
		for _, m := range log[:n] {
			check(r.t, l.RestorePut(m.Key, m.Value, m.Timestamp))
		}
		check(r.t, l.ExpireRestored())
		from += n
		l.Restored(int64(from))
		if r.rng.IntN(4) == 0 {
			flush(r.t, l)
		}
		log = log[n:]
	}
	l.Advance(r.now)
}

// compacted is the log when only the last record of each key is left.
func compacted(log []store.Mirrored) (left []store.Mirrored) {
	last := map[string]int{}
	for i, m := range log {
		last[string(m.Key)] = i
	}
	for i, m := range log {
		if last[string(m.Key)] == i {
			left = append(left, m)
		}
	}
	return left
}

// restoreElsewhere brings an empty store up from the whole log, and one from what
// compaction leaves of it: they show the same.
func (r *rig) restoreElsewhere() {
	r.settle()
	live := r.l
	r.restoredShows(r.log, r.kind.want())
	r.restoredShows(compacted(r.log), r.kind.wantCompacted())
	r.l = live
	check(r.t, r.kind.open(r))
}

func (r *rig) restoredShows(log []store.Mirrored, want []string) {
	r.l = r.openLayers(r.t.TempDir())
	r.restore(r.l, log, 0)
	check(r.t, r.kind.open(r))
	r.compare(want)
	if r.f.Durable {
		flush(r.t, r.l)
		r.compare(want)
	}
	check(r.t, r.l.Close())
}

// physical looks at what the backend holds when everything that expired is gone.
func (r *rig) physical() {
	for n := 1; n > 0; r.settle() {
		var err error
		n, err = r.l.Expire(100)
		check(r.t, err)
	}
	flush(r.t, r.l)
	r.compare(r.kind.want())
	want := r.kind.rows()
	if want < 0 {
		return
	}
	pairs, err := r.l.Backend().Scan(nil, store.Range{To: []byte{1}}, 1<<20)
	check(r.t, err)
	if rows := len(pairs); rows != want {
		r.t.Errorf("%d rows are left, want %d", rows, want)
	}
}

// layoutKeys have one another as beginnings, and look like parts of times.
var layoutKeys = []string{
	"", "a", "ab", "a\x00", "\x00", "a\x00\x00\x00\x00\x00\x00\x00", "a\x00\x00\x00\x00\x00\x00\x00\x10", "b",
	"\x00\x00\x00\x00\x00\x00\x00\x00", "\xff", "a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
}

func (r *rig) key() string { return layoutKeys[r.rng.IntN(len(layoutKeys))] }

func (r *rig) value() string { return fmt.Sprint("v", r.rng.IntN(1000)) }

// time is mostly near the stream time, which moves now and then.
func (r *rig) time(spread int64) int64 {
	switch r.rng.IntN(30) {
	case 0:
		r.now += r.rng.Int64N(spread)
	case 1, 2, 3, 4, 5, 6:
		r.now++
	}
	r.l.Advance(r.now)
	return max(0, r.now-r.rng.Int64N(spread+spread/2))
}

var stringSerde = serde.String
