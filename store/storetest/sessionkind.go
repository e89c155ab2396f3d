package storetest

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace-streams/millrace/store"
)

// sessionKind is a session store beside its model.
type sessionKind struct {
	decl *store.Session[string, string]
	view *store.SessionView[string, string]
	timedModel
}

func newSessionKind() kind {
	return &sessionKind{
		decl:       store.NewSession("s", stringSerde, stringSerde, store.SessionOptions{Retention: 80 * ms}),
		timedModel: timedModel{cells: map[place]cell{}, time: -1},
	}
}

func (k *sessionKind) declaration() store.Declaration { return k.decl }

func (k *sessionKind) open(src store.Source) (err error) {
	k.view, err = k.decl.View(src)
	return err
}

func (k *sessionKind) save() any        { return k.timedModel.clone() }
func (k *sessionKind) load(state any)   { k.timedModel = state.(timedModel).clone() }
func (k *sessionKind) retention() int64 { return k.decl.Retention().Milliseconds() }

func windowed(p place) store.Windowed[string] {
	return store.Windowed[string]{Key: p.key, Start: p.b, End: p.a}
}

func (k *sessionKind) write(r *rig) {
	p := place{key: r.key(), a: r.time(k.retention())}
	p.b = max(0, p.a-r.rng.Int64N(40))
	if existing := k.visible(k.retention(), bySessionBytes, all); len(existing) > 0 && r.rng.IntN(4) == 0 {
		p = existing[r.rng.IntN(len(existing))]
		r.note("remove %v", p)
		check(r.t, k.view.Remove(windowed(p)))
		k.admit(p.a, k.retention())
		delete(k.cells, p)
		return
	}
	value := r.value()
	stored, err := k.view.PutAt(windowed(p), value, r.now)
	r.note("put %v: %v", p, stored)
	check(r.t, err)
	want := k.admit(p.a, k.retention())
	if stored != want {
		r.t.Errorf("stored %v, want %v", stored, want)
	}
	if want {
		k.cells[p] = cell{value, r.now}
	}
}

func all(place) bool { return true }

func showSession(row store.Row[string, string]) string {
	return fmt.Sprintf("%q [%d,%d] %s at %d", row.Key, row.Start, row.End, row.Value, row.Timestamp)
}

func (k *sessionKind) rowsOf(places []place, reverse bool) []string {
	if reverse {
		slices.Reverse(places)
	}
	var rows []string
	for _, p := range places {
		rows = append(rows, showSession(store.Row[string, string]{Windowed: windowed(p), Value: k.cells[p].value, Timestamp: k.cells[p].ts}))
	}
	return rows
}

func gatherSessions(scan func(func(store.Row[string, string]) bool) error) (rows []string, err error) {
	err = scan(func(row store.Row[string, string]) bool {
		rows = append(rows, showSession(row))
		return true
	})
	return rows, err
}

func (k *sessionKind) contents() ([]string, error) { return gatherSessions(k.view.All) }

func (k *sessionKind) queried(src store.QuerySource) ([]string, error) {
	return gatherSessions(k.decl.Query(src).All)
}

func (k *sessionKind) want() []string {
	return k.rowsOf(k.visible(k.retention(), bySessionBytes, all), false)
}

func (k *sessionKind) wantCompacted() []string { return k.want() }

func (k *sessionKind) rows() int { return len(k.visible(k.retention(), bySessionBytes, all)) }

func bySessionBytes(x, y place) int { return strings.Compare(sessionBytes(x), sessionBytes(y)) }

func sessionBytes(p place) string {
	b := binary.BigEndian.AppendUint64([]byte(p.key), uint64(p.a))
	return string(binary.BigEndian.AppendUint64(b, uint64(p.b)))
}

// byEnd orders by end, start and key.
func byEnd(x, y place) int {
	switch {
	case x.a != y.a:
		return int(x.a - y.a)
	case x.b != y.b:
		return int(x.b - y.b)
	}
	return strings.Compare(x.key, y.key)
}

func (k *sessionKind) read(r *rig) {
	key, to := r.key(), r.key()
	earliest, latest := r.bounds()
	reverse := r.rng.IntN(2) == 0
	overlaps := func(p place) bool { return p.a >= earliest && p.b <= latest }
	type fn = func(store.Row[string, string]) bool
	var got []string
	var err error
	var want []place
	what := fmt.Sprintf("[%q, %q] [%d, %d] reverse %v, time %d", key, to, earliest, latest, reverse, k.time)
	switch r.rng.IntN(4) {
	case 0:
		scan := pick(reverse, k.view.ReverseFindSessions, k.view.FindSessions)
		got, err = gatherSessions(func(f fn) error { return scan(key, earliest, latest, f) })
		want = k.visible(k.retention(), bySessionBytes, func(p place) bool { return p.key == key && overlaps(p) })
	case 1:
		scan := pick(reverse, k.view.ReverseFindSessionsKeys, k.view.FindSessionsKeys)
		got, err = gatherSessions(func(f fn) error { return scan(key, to, earliest, latest, f) })
		want = k.visible(k.retention(), bySessionBytes, func(p place) bool { return key <= p.key && p.key <= to && overlaps(p) })
	case 2:
		reverse = false
		got, err = gatherSessions(func(f fn) error { return k.view.FindByEnd(earliest, latest, f) })
		want = k.visible(k.retention(), byEnd, func(p place) bool { return earliest <= p.a && p.a <= latest })
	case 3:
		k.fetch(r, key)
		return
	}
	check(r.t, err)
	r.same(what, got, k.rowsOf(want, reverse))
}

func (k *sessionKind) fetch(r *rig, key string) {
	got, err := gatherSessions(func(f func(store.Row[string, string]) bool) error { return k.view.Fetch(key, f) })
	check(r.t, err)
	found := k.visible(k.retention(), bySessionBytes, func(p place) bool { return p.key == key })
	r.same("fetch", got, k.rowsOf(found, false))
	for p, c := range k.cells {
		value, ok, err := k.view.FetchSession(p.key, p.b, p.a)
		check(r.t, err)
		visible := p.a >= k.time-k.retention()+1
		if ok != visible || ok && value != c.value {
			r.t.Errorf("session %v: %q, %v; want %q, %v", p, value, ok, c.value, visible)
		}
		break
	}
}
