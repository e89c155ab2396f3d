package store

// Query is KeyValue.Query.
func (s *Window[K, V]) Query(src QuerySource) *ReadOnlyWindow[K, V] {
	return &ReadOnlyWindow[K, V]{readOnlyRows[K, V, *WindowView[K, V]]{newQuery(src, s, s.keys, s.View)}}
}

// Query is KeyValue.Query.
func (s *Session[K, V]) Query(src QuerySource) *ReadOnlySession[K, V] {
	return &ReadOnlySession[K, V]{readOnlyRows[K, V, *SessionView[K, V]]{newQuery(src, s, s.keys, s.View)}}
}

// rowsView is a view of windows or sessions.
type rowsView[K, V any] interface {
	All(fn func(Row[K, V]) bool) error
	ReverseAll(fn func(Row[K, V]) bool) error
}

// readOnlyRows is what queries of windows and sessions have in common.
type readOnlyRows[K, V any, W rowsView[K, V]] struct{ query[K, W] }

// All calls fn for every row until it returns false, in the order of the bytes of
// key ‖ time.
func (q *readOnlyRows[K, V, W]) All(fn func(Row[K, V]) bool) error {
	return q.everywhere(fn, func(w W, fn func(Row[K, V]) bool) error { return w.All(fn) })
}

// ReverseAll is All in descending order.
func (q *readOnlyRows[K, V, W]) ReverseAll(fn func(Row[K, V]) bool) error {
	return q.everywhere(fn, func(w W, fn func(Row[K, V]) bool) error { return w.ReverseAll(fn) })
}

// everywhere calls fn for what scan finds in each partition.
func (q *readOnlyRows[K, V, W]) everywhere(fn func(Row[K, V]) bool, scan func(W, func(Row[K, V]) bool) error) error {
	return q.each(func(w W) (more bool, err error) {
		more = true
		err = scan(w, func(r Row[K, V]) bool {
			more = fn(r)
			return more
		})
		return more, err
	})
}

// ofKey calls fn for what scan finds in the partition of a key.
func (q *readOnlyRows[K, V, W]) ofKey(k K, fn func(Row[K, V]) bool, scan func(W, func(Row[K, V]) bool) error) error {
	return q.find(k, func(w W) (found bool, err error) {
		err = scan(w, seen(&found, fn))
		return found, err
	})
}

// ReadOnlyWindow reads a window store. The package comment says what queries see.
// Its methods are those of WindowView: fn is called until it returns false, times
// are in ms, and what is too old for the store is not seen.
type ReadOnlyWindow[K, V any] struct {
	readOnlyRows[K, V, *WindowView[K, V]]
}

// Fetch returns the value of a key in the window that begins at start; ok is
// false if there is none. With RetainDuplicates it is the last one put.
func (q *ReadOnlyWindow[K, V]) Fetch(k K, start int64) (value V, ok bool, err error) {
	value, _, ok, err = q.FetchWithTime(k, start)
	return value, ok, err
}

// FetchWithTime is Fetch with the row's timestamp.
func (q *ReadOnlyWindow[K, V]) FetchWithTime(k K, start int64) (value V, ts int64, ok bool, err error) {
	err = q.find(k, func(v *WindowView[K, V]) (bool, error) {
		value, ts, ok, err = v.FetchWithTime(k, start)
		return ok, err
	})
	return value, ts, ok, err
}

// FetchRange calls fn for the windows of a key that begin in [from, to], both
// included, by ascending start.
func (q *ReadOnlyWindow[K, V]) FetchRange(k K, from, to int64, fn func(Row[K, V]) bool) error {
	return q.ofKey(k, fn, func(v *WindowView[K, V], fn func(Row[K, V]) bool) error { return v.FetchRange(k, from, to, fn) })
}

// ReverseFetchRange is FetchRange by descending start.
func (q *ReadOnlyWindow[K, V]) ReverseFetchRange(k K, from, to int64, fn func(Row[K, V]) bool) error {
	return q.ofKey(k, fn, func(v *WindowView[K, V], fn func(Row[K, V]) bool) error { return v.ReverseFetchRange(k, from, to, fn) })
}

// FetchKeys calls fn for the windows of the keys from kFrom to kTo that begin in
// [from, to], all included, in the order of the bytes of key ‖ start.
func (q *ReadOnlyWindow[K, V]) FetchKeys(kFrom, kTo K, from, to int64, fn func(Row[K, V]) bool) error {
	return q.everywhere(fn, func(v *WindowView[K, V], fn func(Row[K, V]) bool) error { return v.FetchKeys(kFrom, kTo, from, to, fn) })
}

// ReverseFetchKeys is FetchKeys in descending order; kFrom is still the lower key.
func (q *ReadOnlyWindow[K, V]) ReverseFetchKeys(kFrom, kTo K, from, to int64, fn func(Row[K, V]) bool) error {
	return q.everywhere(fn, func(v *WindowView[K, V], fn func(Row[K, V]) bool) error {
		return v.ReverseFetchKeys(kFrom, kTo, from, to, fn)
	})
}

// FetchAll calls fn for the windows of all keys that begin in [from, to], both
// included, by ascending start, those of one start in the order of their keys'
// bytes.
func (q *ReadOnlyWindow[K, V]) FetchAll(from, to int64, fn func(Row[K, V]) bool) error {
	return q.everywhere(fn, func(v *WindowView[K, V], fn func(Row[K, V]) bool) error { return v.FetchAll(from, to, fn) })
}

// ReverseFetchAll is FetchAll in descending order.
func (q *ReadOnlyWindow[K, V]) ReverseFetchAll(from, to int64, fn func(Row[K, V]) bool) error {
	return q.everywhere(fn, func(v *WindowView[K, V], fn func(Row[K, V]) bool) error { return v.ReverseFetchAll(from, to, fn) })
}

// ReadOnlySession reads a session store. The package comment says what queries
// see. Its methods are those of SessionView: fn is called until it returns false,
// times are in ms, and what is too old for the store is not seen.
type ReadOnlySession[K, V any] struct {
	readOnlyRows[K, V, *SessionView[K, V]]
}

// FetchSession returns the value of one session; ok is false if there is none.
func (q *ReadOnlySession[K, V]) FetchSession(k K, start, end int64) (value V, ok bool, err error) {
	value, _, ok, err = q.FetchWithTime(Windowed[K]{k, start, end})
	return value, ok, err
}

// FetchWithTime is FetchSession with the row's timestamp.
func (q *ReadOnlySession[K, V]) FetchWithTime(w Windowed[K]) (value V, ts int64, ok bool, err error) {
	err = q.find(w.Key, func(v *SessionView[K, V]) (bool, error) {
		value, ts, ok, err = v.FetchWithTime(w)
		return ok, err
	})
	return value, ts, ok, err
}

// Fetch calls fn for the sessions of a key by ascending end, then start.
func (q *ReadOnlySession[K, V]) Fetch(k K, fn func(Row[K, V]) bool) error {
	return q.ofKey(k, fn, func(v *SessionView[K, V], fn func(Row[K, V]) bool) error { return v.Fetch(k, fn) })
}

// ReverseFetch is Fetch in descending order.
func (q *ReadOnlySession[K, V]) ReverseFetch(k K, fn func(Row[K, V]) bool) error {
	return q.ofKey(k, fn, func(v *SessionView[K, V], fn func(Row[K, V]) bool) error { return v.ReverseFetch(k, fn) })
}

// FindSessions calls fn for the sessions of a key that end at earliestEnd or
// later and start at latestStart or earlier, by ascending end, then start.
func (q *ReadOnlySession[K, V]) FindSessions(k K, earliestEnd, latestStart int64, fn func(Row[K, V]) bool) error {
	return q.ofKey(k, fn, func(v *SessionView[K, V], fn func(Row[K, V]) bool) error {
		return v.FindSessions(k, earliestEnd, latestStart, fn)
	})
}

// ReverseFindSessions is FindSessions in descending order.
func (q *ReadOnlySession[K, V]) ReverseFindSessions(k K, earliestEnd, latestStart int64, fn func(Row[K, V]) bool) error {
	return q.ofKey(k, fn, func(v *SessionView[K, V], fn func(Row[K, V]) bool) error {
		return v.ReverseFindSessions(k, earliestEnd, latestStart, fn)
	})
}

// FindSessionsKeys is FindSessions for the keys from kFrom to kTo, both included,
// in the order of the bytes of key ‖ end ‖ start.
func (q *ReadOnlySession[K, V]) FindSessionsKeys(
	kFrom, kTo K, earliestEnd, latestStart int64, fn func(Row[K, V]) bool,
) error {
	return q.everywhere(fn, func(v *SessionView[K, V], fn func(Row[K, V]) bool) error {
		return v.FindSessionsKeys(kFrom, kTo, earliestEnd, latestStart, fn)
	})
}

// ReverseFindSessionsKeys is FindSessionsKeys in descending order; kFrom is still
// the lower key.
func (q *ReadOnlySession[K, V]) ReverseFindSessionsKeys(
	kFrom, kTo K, earliestEnd, latestStart int64, fn func(Row[K, V]) bool,
) error {
	return q.everywhere(fn, func(v *SessionView[K, V], fn func(Row[K, V]) bool) error {
		return v.ReverseFindSessionsKeys(kFrom, kTo, earliestEnd, latestStart, fn)
	})
}

// FindByEnd calls fn for the sessions of all keys that end in [from, to], both
// included, by ascending end, then start, then key.
func (q *ReadOnlySession[K, V]) FindByEnd(from, to int64, fn func(Row[K, V]) bool) error {
	return q.everywhere(fn, func(v *SessionView[K, V], fn func(Row[K, V]) bool) error { return v.FindByEnd(from, to, fn) })
}
