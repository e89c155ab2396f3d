package storetest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/millrace-streams/millrace/store"
)

// ttlKind is a key-value store with a TTL beside a map.
type ttlKind struct {
	decl  *store.KeyValue[string, string]
	view  *store.KeyValueView[string, string]
	cells map[string]cell
	rig   *rig
}

func newTTLKind(ttl time.Duration) kind {
	return &ttlKind{decl: store.NewKeyValue("s", stringSerde, stringSerde, store.WithTTL(ttl)), cells: map[string]cell{}}
}

func (k *ttlKind) declaration() store.Declaration { return k.decl }

func (k *ttlKind) open(src store.Source) (err error) {
	k.rig = src.(*rig)
	k.view, err = k.decl.View(src)
	return err
}

func (k *ttlKind) save() any      { return maps.Clone(k.cells) }
func (k *ttlKind) load(state any) { k.cells = maps.Clone(state.(map[string]cell)) }

func (k *ttlKind) visible(key string) bool {
	c, ok := k.cells[key]
	return ok && k.rig.now <= c.ts+k.decl.TTL().Milliseconds()
}

func (k *ttlKind) write(r *rig) {
	key, ts := r.key(), r.time(k.decl.TTL().Milliseconds())
	switch r.rng.IntN(5) {
	case 0:
		r.note("delete %q", key)
		check(r.t, k.view.Delete(key))
		delete(k.cells, key)
	case 1:
		value := r.value()
		r.note("put %q at %d if absent", key, r.now)
		old, found, err := k.view.PutIfAbsent(key, value)
		check(r.t, err)
		if found != k.visible(key) || found && old != k.cells[key].value {
			r.t.Errorf("put %q if absent: %q, %v; want %q, %v", key, old, found, k.cells[key].value, k.visible(key))
		}
		if !found {
			k.cells[key] = cell{value, r.now}
		}
	default:
		value := r.value()
		r.note("put %q at %d", key, ts)
		check(r.t, k.view.PutAt(key, value, ts))
		k.cells[key] = cell{value, ts}
	}
}

func (k *ttlKind) read(r *rig) {
	key := r.key()
	r.time(k.decl.TTL().Milliseconds())
	got, ts, ok, err := k.view.GetWithTime(key)
	check(r.t, err)
	if want := k.cells[key]; ok != k.visible(key) || ok && (got != want.value || ts != want.ts) {
		r.t.Errorf("get %q: %q at %d, %v; want %v, %v", key, got, ts, ok, want, k.visible(key))
	}
	from, to := r.key(), r.key()
	rows, err := gatherPairs(func(fn func(string, string) bool) error {
		return pick(r.rng.IntN(2) == 0, k.view.Range, k.backwards)(from, to, fn)
	})
	check(r.t, err)
	r.same(fmt.Sprintf("[%q, %q]", from, to), rows, k.between(func(key string) bool { return from <= key && key <= to }))
}

// backwards is Range by way of ReverseRange.
func (k *ttlKind) backwards(from, to string, fn func(string, string) bool) error {
	var pairs [][2]string
	err := k.view.ReverseRange(from, to, func(key, value string) bool {
		pairs = append(pairs, [2]string{key, value})
		return true
	})
	for _, p := range slices.Backward(pairs) {
		fn(p[0], p[1])
	}
	return err
}

func gatherPairs(scan func(func(string, string) bool) error) (rows []string, err error) {
	err = scan(func(key, value string) bool {
		rows = append(rows, fmt.Sprintf("%q %s", key, value))
		return true
	})
	return rows, err
}

func (k *ttlKind) between(in func(string) bool) (rows []string) {
	for _, key := range slices.Sorted(maps.Keys(k.cells)) {
		if k.visible(key) && in(key) {
			rows = append(rows, fmt.Sprintf("%q %s", key, k.cells[key].value))
		}
	}
	return rows
}

func (k *ttlKind) contents() ([]string, error) { return gatherPairs(k.view.All) }

func (k *ttlKind) queried(src store.QuerySource) ([]string, error) {
	return gatherPairs(k.decl.Query(src).All)
}

func (k *ttlKind) want() []string { return k.between(func(string) bool { return true }) }

func (k *ttlKind) wantCompacted() []string { return k.want() }

// rows are a few more than those that are seen: they go by sixteenths of the TTL.
func (k *ttlKind) rows() (n int) {
	ttl := k.decl.TTL().Milliseconds()
	bucket := max(1, ttl/16)
	for _, c := range k.cells {
		if c.ts/bucket >= (k.rig.now-ttl)/bucket || k.rig.now < ttl {
			n++
		}
	}
	return n
}

// mapKind is a map state beside maps.
type mapKind struct {
	decl *store.MapState[string, string, string]
	view *store.MapStateView[string, string, string]
	maps map[string]map[string]string
}

func newMapKind() kind {
	return &mapKind{decl: store.NewMapState("s", stringSerde, stringSerde, stringSerde), maps: map[string]map[string]string{}}
}

func (k *mapKind) declaration() store.Declaration { return k.decl }

func (k *mapKind) open(src store.Source) (err error) {
	k.view, err = k.decl.View(src)
	return err
}

func (k *mapKind) save() any {
	saved := map[string]map[string]string{}
	for key, m := range k.maps {
		saved[key] = maps.Clone(m)
	}
	return saved
}

func (k *mapKind) load(state any) {
	k.maps = state.(map[string]map[string]string)
	k.maps = k.save().(map[string]map[string]string)
}

func (k *mapKind) write(r *rig) {
	key, mk, value := r.key(), r.key(), r.value()
	check(r.t, k.view.SetKey(key))
	if k.maps[key] == nil {
		k.maps[key] = map[string]string{}
	}
	switch r.rng.IntN(12) {
	case 0:
		r.note("clear %q", key)
		check(r.t, k.view.Clear())
		clear(k.maps[key])
	case 1, 2, 3:
		r.note("remove %q %q", key, mk)
		check(r.t, k.view.Remove(mk))
		delete(k.maps[key], mk)
	default:
		r.note("put %q %q", key, mk)
		check(r.t, k.view.Put(mk, value))
		k.maps[key][mk] = value
	}
}

func (k *mapKind) read(r *rig) {
	key, mk := r.key(), r.key()
	check(r.t, k.view.SetKey(key))
	value, ok, err := k.view.Get(mk)
	check(r.t, err)
	has, err := k.view.Contains(mk)
	check(r.t, err)
	empty, err := k.view.Empty()
	check(r.t, err)
	want, wantOK := k.maps[key][mk]
	if value != want || ok != wantOK || has != ok || empty != (len(k.maps[key]) == 0) {
		r.t.Errorf("%q %q: %q, %v, %v, empty %v; want %q, %v", key, mk, value, ok, has, empty, want, wantOK)
	}
}

func (k *mapKind) contents() (rows []string, err error) {
	for _, key := range layoutKeys {
		if err := k.view.SetKey(key); err != nil {
			return nil, err
		}
		if err := k.view.Each(func(mk, value string) bool {
			rows = append(rows, fmt.Sprintf("%q %q %s", key, mk, value))
			return true
		}); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func (k *mapKind) queried(src store.QuerySource) (rows []string, err error) {
	q := k.decl.Query(src)
	for _, key := range layoutKeys {
		if err := q.Each(key, func(mk, value string) bool {
			rows = append(rows, fmt.Sprintf("%q %q %s", key, mk, value))
			return true
		}); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func (k *mapKind) want() (rows []string) {
	for _, key := range layoutKeys {
		for _, mk := range slices.Sorted(maps.Keys(k.maps[key])) {
			rows = append(rows, fmt.Sprintf("%q %q %s", key, mk, k.maps[key][mk]))
		}
	}
	return rows
}

func (k *mapKind) wantCompacted() []string { return k.want() }
func (k *mapKind) rows() int               { return -1 }

// listKind is a list state beside slices.
type listKind struct {
	decl  *store.ListState[string, string]
	view  *store.ListStateView[string, string]
	lists map[string][]string
}

func newListKind() kind {
	return &listKind{decl: store.NewListState("s", stringSerde, stringSerde), lists: map[string][]string{}}
}

func (k *listKind) declaration() store.Declaration { return k.decl }

func (k *listKind) open(src store.Source) (err error) {
	k.view, err = k.decl.View(src)
	return err
}

func (k *listKind) save() any {
	saved := map[string][]string{}
	for key, list := range k.lists {
		saved[key] = slices.Clone(list)
	}
	return saved
}

func (k *listKind) load(state any) {
	k.lists = state.(map[string][]string)
	k.lists = k.save().(map[string][]string)
}

func (k *listKind) write(r *rig) {
	key := r.key()
	check(r.t, k.view.SetKey(key))
	var values []string
	for range r.rng.IntN(4) {
		values = append(values, r.value())
	}
	switch r.rng.IntN(10) {
	case 0:
		r.note("clear %q", key)
		check(r.t, k.view.Clear())
		k.lists[key] = nil
	case 1, 2:
		r.note("update %q to %q", key, values)
		check(r.t, k.view.Update(values))
		k.lists[key] = values
	default:
		r.note("append to %q %q", key, values)
		check(r.t, k.view.Append(values...))
		k.lists[key] = append(k.lists[key], values...)
	}
}

func (k *listKind) read(r *rig) {
	key := r.key()
	check(r.t, k.view.SetKey(key))
	got, err := k.view.Values()
	check(r.t, err)
	r.same("list", got, k.lists[key])
}

func (k *listKind) contents() (rows []string, err error) {
	for _, key := range layoutKeys {
		if err := k.view.SetKey(key); err != nil {
			return nil, err
		}
		values, err := k.view.Values()
		if err != nil {
			return nil, err
		}
		rows = append(rows, fmt.Sprintf("%q %q", key, values))
	}
	return rows, nil
}

func (k *listKind) queried(src store.QuerySource) (rows []string, err error) {
	q := k.decl.Query(src)
	for _, key := range layoutKeys {
		values, err := q.Values(key)
		if err != nil {
			return nil, err
		}
		rows = append(rows, fmt.Sprintf("%q %q", key, values))
	}
	return rows, nil
}

func (k *listKind) want() (rows []string) {
	for _, key := range layoutKeys {
		rows = append(rows, fmt.Sprintf("%q %q", key, k.lists[key]))
	}
	return rows
}

func (k *listKind) wantCompacted() []string { return k.want() }
func (k *listKind) rows() int               { return -1 }
