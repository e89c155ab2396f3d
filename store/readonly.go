package store

// Query returns what is committed of the store, for any goroutine, over all
// partitions that src has. It costs nothing, and may be kept for as long as src.
func (s *KeyValue[K, V]) Query(src QuerySource) *ReadOnlyKeyValue[K, V] {
	return &ReadOnlyKeyValue[K, V]{newQuery(src, s, s.keys, s.View)}
}

// Query is KeyValue.Query: a value state is a key-value store.
func (s *ValueState[K, V]) Query(src QuerySource) *ReadOnlyKeyValue[K, V] {
	return &ReadOnlyKeyValue[K, V]{newQuery(src, s, s.keys, func(src Source) (*KeyValueView[K, V], error) {
		v, err := s.open(src)
		return &KeyValueView[K, V]{v}, err
	})}
}

// ReadOnlyKeyValue reads a key-value store. The package comment says what queries
// see. Its methods are those of KeyValueView.
type ReadOnlyKeyValue[K, V any] struct {
	query[K, *KeyValueView[K, V]]
}

// Get returns the value of k; ok is false if there is none.
func (q *ReadOnlyKeyValue[K, V]) Get(k K) (value V, ok bool, err error) {
	value, _, ok, err = q.GetWithTime(k)
	return value, ok, err
}

// GetWithTime is Get with the value's timestamp in ms.
func (q *ReadOnlyKeyValue[K, V]) GetWithTime(k K) (value V, ts int64, ok bool, err error) {
	err = q.find(k, func(v *KeyValueView[K, V]) (bool, error) {
		value, ts, ok, err = v.GetWithTime(k)
		return ok, err
	})
	return value, ts, ok, err
}

// Range calls fn for the keys from from to to, both included, until it returns
// false.
func (q *ReadOnlyKeyValue[K, V]) Range(from, to K, fn func(K, V) bool) error {
	return q.scan(fn, func(v *KeyValueView[K, V], fn func(K, V) bool) error { return v.Range(from, to, fn) })
}

// ReverseRange is Range in descending order; from is still the lower key.
func (q *ReadOnlyKeyValue[K, V]) ReverseRange(from, to K, fn func(K, V) bool) error {
	return q.scan(fn, func(v *KeyValueView[K, V], fn func(K, V) bool) error { return v.ReverseRange(from, to, fn) })
}

// All calls fn for every key until it returns false.
func (q *ReadOnlyKeyValue[K, V]) All(fn func(K, V) bool) error {
	return q.scan(fn, (*KeyValueView[K, V]).All)
}

// ReverseAll is All in descending order.
func (q *ReadOnlyKeyValue[K, V]) ReverseAll(fn func(K, V) bool) error {
	return q.scan(fn, (*KeyValueView[K, V]).ReverseAll)
}

// PrefixScan calls fn for every key whose encoded bytes begin with prefix, until
// it returns false.
func (q *ReadOnlyKeyValue[K, V]) PrefixScan(prefix []byte, fn func(K, V) bool) error {
	return q.scan(fn, func(v *KeyValueView[K, V], fn func(K, V) bool) error { return v.PrefixScan(prefix, fn) })
}

func (q *ReadOnlyKeyValue[K, V]) scan(fn func(K, V) bool, scan func(*KeyValueView[K, V], func(K, V) bool) error) error {
	return q.each(func(v *KeyValueView[K, V]) (more bool, err error) {
		more = true
		err = scan(v, func(k K, value V) bool {
			more = fn(k, value)
			return more
		})
		return more, err
	})
}

// Query is KeyValue.Query.
func (s *Versioned[K, V]) Query(src QuerySource) *ReadOnlyVersioned[K, V] {
	return &ReadOnlyVersioned[K, V]{newQuery(src, s, s.keys, s.View)}
}

// ReadOnlyVersioned reads a versioned store. The package comment says what queries
// see. Its methods are those of VersionedView.
type ReadOnlyVersioned[K, V any] struct {
	query[K, *VersionedView[K, V]]
}

// Get returns the latest version of k; ok is false if there is none or if it is a
// tombstone.
func (q *ReadOnlyVersioned[K, V]) Get(k K) (version Version[V], ok bool, err error) {
	err = q.find(k, func(v *VersionedView[K, V]) (bool, error) {
		version, ok, err = v.Get(k)
		return ok, err
	})
	return version, ok, err
}

// GetAsOf returns the version of k that is valid at the time; ok is false if there
// is none, or if the time lies before the history. But the latest version is found
// at any time since it is valid.
func (q *ReadOnlyVersioned[K, V]) GetAsOf(k K, at int64) (version Version[V], ok bool, err error) {
	err = q.find(k, func(v *VersionedView[K, V]) (bool, error) {
		version, ok, err = v.GetAsOf(k, at)
		return ok, err
	})
	return version, ok, err
}

// History calls fn for the versions of k that are valid at any time of [from, to],
// both included, by ascending time, until it returns false. Times before the
// history find the latest version only.
func (q *ReadOnlyVersioned[K, V]) History(k K, from, to int64, fn func(Version[V]) bool) error {
	return q.find(k, func(v *VersionedView[K, V]) (found bool, err error) {
		err = v.History(k, from, to, seen(&found, fn))
		return found, err
	})
}

// ReverseHistory is History by descending time.
func (q *ReadOnlyVersioned[K, V]) ReverseHistory(k K, from, to int64, fn func(Version[V]) bool) error {
	return q.find(k, func(v *VersionedView[K, V]) (found bool, err error) {
		err = v.ReverseHistory(k, from, to, seen(&found, fn))
		return found, err
	})
}

// seen notes that fn is called.
func seen[R any](found *bool, fn func(R) bool) func(R) bool {
	return func(r R) bool {
		*found = true
		return fn(r)
	}
}

// Query is KeyValue.Query.
func (s *MapState[K, MK, MV]) Query(src QuerySource) *ReadOnlyMapState[K, MK, MV] {
	return &ReadOnlyMapState[K, MK, MV]{newQuery(src, s, s.keys, s.View)}
}

// ReadOnlyMapState reads a map state. The package comment says what queries see.
type ReadOnlyMapState[K, MK, MV any] struct {
	query[K, *MapStateView[K, MK, MV]]
}

// Get returns the value of mk in the map of k; ok is false if there is none.
func (q *ReadOnlyMapState[K, MK, MV]) Get(k K, mk MK) (value MV, ok bool, err error) {
	err = q.find(k, func(v *MapStateView[K, MK, MV]) (bool, error) {
		if err = v.SetKey(k); err == nil {
			value, ok, err = v.Get(mk)
		}
		return ok, err
	})
	return value, ok, err
}

// Each calls fn for the entries of the map of k in the order of the bytes of the
// map keys, until it returns false.
func (q *ReadOnlyMapState[K, MK, MV]) Each(k K, fn func(MK, MV) bool) error {
	return q.find(k, func(v *MapStateView[K, MK, MV]) (found bool, err error) {
		if err = v.SetKey(k); err != nil {
			return false, err
		}
		err = v.Each(func(mk MK, value MV) bool {
			found = true
			return fn(mk, value)
		})
		return found, err
	})
}

// Query is KeyValue.Query.
func (s *ListState[K, V]) Query(src QuerySource) *ReadOnlyListState[K, V] {
	return &ReadOnlyListState[K, V]{newQuery(src, s, s.keys, s.View)}
}

// ReadOnlyListState reads a list state. The package comment says what queries see.
type ReadOnlyListState[K, V any] struct {
	query[K, *ListStateView[K, V]]
}

// Each calls fn for the elements of the list of k in order, until it returns false.
func (q *ReadOnlyListState[K, V]) Each(k K, fn func(V) bool) error {
	return q.find(k, func(v *ListStateView[K, V]) (found bool, err error) {
		if err = v.SetKey(k); err == nil {
			err = v.Each(seen(&found, fn))
		}
		return found, err
	})
}

// Values returns the list of k; it is the caller's, and nil if it is empty.
func (q *ReadOnlyListState[K, V]) Values(k K) (values []V, err error) {
	err = q.Each(k, func(value V) bool {
		values = append(values, value)
		return true
	})
	return values, err
}
