package storetest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/millrace-streams/millrace/store"
)

// versionedModel holds every version ever stored; what is out of reach is left
// out by who asks. A nil value is a tombstone.
type versionedModel struct {
	keys map[string]map[int64]*string
	time int64
}

func (m versionedModel) clone() versionedModel {
	keys := map[string]map[int64]*string{}
	for k, versions := range m.keys {
		keys[k] = maps.Clone(versions)
	}
	return versionedModel{keys, m.time}
}

// versionedKind is a versioned store beside its model.
type versionedKind struct {
	decl *store.Versioned[string, string]
	view *store.VersionedView[string, string]
	versionedModel
}

func newVersionedKind(history time.Duration) kind {
	return &versionedKind{
		decl:           store.NewVersioned("s", stringSerde, stringSerde, history),
		versionedModel: versionedModel{map[string]map[int64]*string{}, -1},
	}
}

func (k *versionedKind) declaration() store.Declaration { return k.decl }

func (k *versionedKind) open(src store.Source) (err error) {
	k.view, err = k.decl.View(src)
	return err
}

func (k *versionedKind) save() any      { return k.versionedModel.clone() }
func (k *versionedKind) load(state any) { k.versionedModel = state.(versionedModel).clone() }

// oldest is how far back the history goes.
func (k *versionedKind) oldest() int64 { return k.time - k.decl.History().Milliseconds() }

// next is where the version that follows a time begins.
func (k *versionedKind) next(key string, after int64) int64 {
	next := int64(store.NoEnd)
	for from := range k.keys[key] {
		if from > after {
			next = min(next, from)
		}
	}
	return next
}

// asOf is the version that is valid at a time, a tombstone included.
func (k *versionedKind) asOf(key string, at int64) (value *string, from int64, ok bool) {
	for f, v := range k.keys[key] {
		if f <= at && (!ok || f > from) {
			value, from, ok = v, f, true
		}
	}
	return value, from, ok
}

func (k *versionedKind) write(r *rig) {
	key, from := r.key(), r.time(60)
	var value *string
	var to int64
	var stored bool
	var err error
	if r.rng.IntN(4) > 0 {
		v := r.value()
		value = &v
		to, stored, err = k.view.Put(key, v, from)
	} else if r.rng.IntN(2) == 0 {
		to, stored, err = k.view.DeleteRecord(key, from, nil)
	} else {
		k.delete(r, key, from)
		return
	}
	r.note("put %q from %d: %v, to %d", key, from, stored, to)
	check(r.t, err)
	wantStored := k.put(key, value, from)
	if stored != wantStored || stored && to != k.next(key, from) {
		r.t.Errorf("stored %v, to %d; want %v, %d", stored, to, wantStored, k.next(key, from))
	}
}

func (k *versionedKind) put(key string, value *string, from int64) (stored bool) {
	k.time = max(k.time, from)
	if from < k.oldest() {
		return false
	}
	if k.keys[key] == nil {
		k.keys[key] = map[int64]*string{}
	}
	k.keys[key][from] = value
	return true
}

func (k *versionedKind) delete(r *rig, key string, at int64) {
	wantValue, wantFrom, ok := k.asOf(key, at)
	ok = ok && wantValue != nil && at >= k.oldest()
	old, found, err := k.view.Delete(key, at)
	r.note("delete %q from %d: %v", key, at, found)
	check(r.t, err)
	if found != ok || found && (old.Value != *wantValue || old.From != wantFrom) {
		r.t.Errorf("delete %q at %d: %v, %v; want %v", key, at, old, found, ok)
	}
	k.put(key, nil, at)
}

func showVersion(key string, v store.Version[string]) string {
	return fmt.Sprintf("%q [%d, %d) %s", key, v.From, v.To, v.Value)
}

// history is what the model knows of a key in [from, to].
func (k *versionedKind) historyOf(key string, from, to int64) (found []store.Version[string]) {
	for _, begin := range slices.Sorted(maps.Keys(k.keys[key])) {
		value, end := k.keys[key][begin], k.next(key, begin)
		low := from
		if end != store.NoEnd {
			low = max(from, k.oldest())
		}
		if value != nil && max(begin, low) <= min(end-1, to) && low <= to {
			found = append(found, store.Version[string]{Value: *value, From: begin, To: end})
		}
	}
	return found
}

func (k *versionedKind) contents() ([]string, error) { return allVersions(k.view.History) }

func (k *versionedKind) queried(src store.QuerySource) ([]string, error) {
	return allVersions(k.decl.Query(src).History)
}

func allVersions(history func(string, int64, int64, func(store.Version[string]) bool) error) (rows []string, err error) {
	for _, key := range slices.Sorted(slices.Values(layoutKeys)) {
		err = history(key, 0, store.NoEnd, func(v store.Version[string]) bool {
			rows = append(rows, showVersion(key, v))
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func (k *versionedKind) want() (rows []string) {
	for _, key := range slices.Sorted(slices.Values(layoutKeys)) {
		for _, v := range k.historyOf(key, 0, store.NoEnd) {
			rows = append(rows, showVersion(key, v))
		}
	}
	return rows
}

// wantCompacted are the latest versions: compaction begins behind the history.
func (k *versionedKind) wantCompacted() (rows []string) {
	for _, key := range slices.Sorted(slices.Values(layoutKeys)) {
		if value, from, ok := k.asOf(key, store.NoEnd); ok && value != nil {
			rows = append(rows, showVersion(key, store.Version[string]{Value: *value, From: from, To: store.NoEnd}))
		}
	}
	return rows
}

// rows are the versions that are in reach, tombstones in the history included.
func (k *versionedKind) rows() (n int) {
	for key, versions := range k.keys {
		for from, value := range versions {
			end := k.next(key, from)
			if end != store.NoEnd && end <= k.oldest() || value == nil && from <= k.oldest() {
				continue
			}
			n++
		}
	}
	return n
}

func (k *versionedKind) read(r *rig) {
	key, at := r.key(), r.time(60)
	from, to := r.bounds()
	switch r.rng.IntN(3) {
	case 0:
		got, ok, err := k.view.GetAsOf(key, at)
		check(r.t, err)
		value, begin, found := k.asOf(key, at)
		end := k.next(key, max(at, begin))
		found = found && value != nil && (at >= k.oldest() || end == store.NoEnd)
		if ok != found || ok && got != (store.Version[string]{Value: *value, From: begin, To: end}) {
			r.t.Errorf("%q as of %d, time %d: %v, %v; want %v from %d to %d", key, at, k.time, got, ok, found, begin, end)
		}
	case 1:
		got, ok, err := k.view.Get(key)
		check(r.t, err)
		value, begin, found := k.asOf(key, store.NoEnd)
		found = found && value != nil
		if ok != found || ok && got != (store.Version[string]{Value: *value, From: begin, To: store.NoEnd}) {
			r.t.Errorf("%q: %v, %v; want %v from %d", key, got, ok, found, begin)
		}
	case 2:
		var got []store.Version[string]
		check(r.t, pick(r.rng.IntN(2) == 0, k.view.History, k.backwards)(key, from, to, func(v store.Version[string]) bool {
			got = append(got, v)
			return true
		}))
		if want := k.historyOf(key, from, to); !slices.Equal(got, want) {
			r.t.Errorf("history of %q in [%d, %d], time %d: %v; want %v", key, from, to, k.time, got, want)
		}
	}
}

// backwards is History by way of ReverseHistory.
func (k *versionedKind) backwards(key string, from, to int64, fn func(store.Version[string]) bool) error {
	var found []store.Version[string]
	err := k.view.ReverseHistory(key, from, to, func(v store.Version[string]) bool {
		found = append(found, v)
		return true
	})
	for _, v := range slices.Backward(found) {
		fn(v)
	}
	return err
}
