package storetest

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millrace-streams/millrace/store"
)

const ms = time.Millisecond

// place is the place of a row: its key and two numbers. For windows they are the
// start and the number among duplicates, for sessions the end and the start.
type place struct {
	key  string
	a, b int64
}

// cell is what is there.
type cell struct {
	value string
	ts    int64
}

// timedModel is a window or session store as a map.
type timedModel struct {
	cells map[place]cell
	time  int64
	seq   int64
}

func (m timedModel) clone() timedModel {
	m.cells = maps.Clone(m.cells)
	return m
}

// admit moves the time on, and tells whether a row is retained.
func (m *timedModel) admit(at, retention int64) bool {
	m.time = max(m.time, at)
	return at > m.time-retention
}

// visible returns the places that are seen and wanted, in the given order.
func (m *timedModel) visible(retention int64, less func(a, b place) int, want func(place) bool) []place {
	var found []place
	for p := range m.cells {
		if p.a >= m.time-retention+1 && want(p) {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, less)
	return found
}

// windowKind is a window store beside its model.
type windowKind struct {
	decl *store.Window[string, string]
	view *store.WindowView[string, string]
	timedModel
}

func newWindowKind(o store.WindowOptions) kind {
	return &windowKind{
		decl:       store.NewWindow("s", stringSerde, stringSerde, o),
		timedModel: timedModel{cells: map[place]cell{}, time: -1},
	}
}

func (k *windowKind) declaration() store.Declaration { return k.decl }

func (k *windowKind) open(src store.Source) (err error) {
	k.view, err = k.decl.View(src)
	return err
}

func (k *windowKind) save() any      { return k.timedModel.clone() }
func (k *windowKind) load(state any) { k.timedModel = state.(timedModel).clone() }

func (k *windowKind) retention() int64 { return k.decl.Retention().Milliseconds() }

func (k *windowKind) write(r *rig) {
	p := place{key: r.key(), a: r.time(k.retention())}
	if r.rng.IntN(4) == 0 {
		r.note("delete %q at %d", p.key, p.a)
		check(r.t, k.view.Delete(p.key, p.a))
		k.remove(p)
		return
	}
	value := r.value()
	stored, err := k.view.PutAt(p.key, value, p.a, r.now)
	r.note("put %q at %d: %v", p.key, p.a, stored)
	check(r.t, err)
	if k.decl.RetainDuplicates() {
		k.seq++
		p.b = k.seq
	}
	want := k.admit(p.a, k.retention())
	if stored != want {
		r.t.Errorf("stored %v, want %v", stored, want)
	}
	if want {
		k.cells[p] = cell{value, r.now}
	}
}

func (k *windowKind) remove(p place) {
	if k.decl.RetainDuplicates() {
		maps.DeleteFunc(k.cells, func(q place, _ cell) bool { return q.key == p.key && q.a == p.a })
	} else if k.admit(p.a, k.retention()) {
		delete(k.cells, p)
	}
}

func (k *windowKind) show(row store.Row[string, string]) string {
	return fmt.Sprintf("%q [%d,%d) %s at %d", row.Key, row.Start, row.End, row.Value, row.Timestamp)
}

// rowsOf shows places as the view shows rows.
func (k *windowKind) rowsOf(places []place, reverse bool) []string {
	if reverse {
		slices.Reverse(places)
	}
	var rows []string
	for _, p := range places {
		c := k.cells[p]
		row := store.Row[string, string]{Value: c.value, Timestamp: c.ts}
		row.Key, row.Start, row.End = p.key, p.a, p.a+k.decl.Size().Milliseconds()
		rows = append(rows, k.show(row))
	}
	return rows
}

// gather runs a scan of the view.
func (k *windowKind) gather(scan func(func(store.Row[string, string]) bool) error) (rows []string, err error) {
	err = scan(func(row store.Row[string, string]) bool {
		rows = append(rows, k.show(row))
		return true
	})
	return rows, err
}

func (k *windowKind) contents() ([]string, error) { return k.gather(k.view.All) }

func (k *windowKind) queried(src store.QuerySource) ([]string, error) {
	return k.gather(k.decl.Query(src).All)
}

func (k *windowKind) want() []string {
	return k.rowsOf(k.visible(k.retention(), byWindowBytes, func(place) bool { return true }), false)
}

func (k *windowKind) wantCompacted() []string { return k.want() }

func (k *windowKind) rows() int {
	return len(k.visible(k.retention(), byWindowBytes, func(place) bool { return true }))
}

// byWindowBytes orders places as the changelog's keys do.
func byWindowBytes(x, y place) int { return strings.Compare(windowBytes(x), windowBytes(y)) }

func windowBytes(p place) string {
	b := binary.BigEndian.AppendUint64([]byte(p.key), uint64(p.a))
	return string(binary.BigEndian.AppendUint32(b, uint32(p.b)))
}

// byTimeThenKey orders places as the time index does.
func byTimeThenKey(x, y place) int {
	if x.a != y.a {
		return int(x.a - y.a)
	}
	bytes := func(p place) string { return string(binary.BigEndian.AppendUint32([]byte(p.key), uint32(p.b))) }
	return strings.Compare(bytes(x), bytes(y))
}

func (k *windowKind) read(r *rig) {
	key, to := r.key(), r.key()
	from, until := r.bounds()
	reverse := r.rng.IntN(2) == 0
	in := func(p place) bool { return from <= p.a && p.a <= until }
	type fn = func(store.Row[string, string]) bool
	var got []string
	var err error
	var want []place
	order := byWindowBytes
	what := fmt.Sprintf("[%q, %q] [%d, %d] reverse %v, time %d", key, to, from, until, reverse, k.time)
	switch r.rng.IntN(4) {
	case 0:
		scan := pick(reverse, k.view.ReverseFetchRange, k.view.FetchRange)
		got, err = k.gather(func(f fn) error { return scan(key, from, until, f) })
		want = k.visible(k.retention(), order, func(p place) bool { return p.key == key && in(p) })
	case 1:
		scan := pick(reverse, k.view.ReverseFetchKeys, k.view.FetchKeys)
		got, err = k.gather(func(f fn) error { return scan(key, to, from, until, f) })
		want = k.visible(k.retention(), order, func(p place) bool { return key <= p.key && p.key <= to && in(p) })
	case 2:
		scan := pick(reverse, k.view.ReverseFetchAll, k.view.FetchAll)
		got, err = k.gather(func(f fn) error { return scan(from, until, f) })
		want = k.visible(k.retention(), byTimeThenKey, in)
	case 3:
		k.fetch(r, key)
		return
	}
	check(r.t, err)
	r.same(what, got, k.rowsOf(want, reverse))
}

func (k *windowKind) fetch(r *rig, key string) {
	at := r.time(k.retention())
	value, ok, err := k.view.Fetch(key, at)
	check(r.t, err)
	found := k.visible(k.retention(), byWindowBytes, func(p place) bool { return p.key == key && p.a == at })
	if ok != (len(found) > 0) || ok && value != k.cells[found[len(found)-1]].value {
		r.t.Errorf("fetch %q at %d: %q, %v; want %v", key, at, value, ok, found)
	}
	if now, err := k.view.Time(); err != nil || now != k.time {
		r.t.Errorf("time %d, %v; want %d", now, err, k.time)
	}
}

func pick[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}

// bounds are two times around those in use.
func (r *rig) bounds() (from, to int64) {
	switch r.rng.IntN(8) {
	case 0:
		return 0, 1<<63 - 1
	case 1:
		return -5, r.now
	}
	from = r.now - r.rng.Int64N(120)
	return from, from + r.rng.Int64N(100) - 5
}
