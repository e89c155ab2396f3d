package store

import "fmt"

// SessionView reads and writes a session store by its types. It belongs to the
// goroutine of the task.
//
// A session that is too old is not seen: its end is at most Time - retention.
// What fn may do in a scan is what it may do in Layered.Scan. Times are in ms.
type SessionView[K, V any] struct {
	timedView[K, V]
}

// Put sets the value of a session, as of the record being processed. It is not
// stored, and nothing changes, if the session is too old. A nil value removes it.
func (v *SessionView[K, V]) Put(w Windowed[K], value V) (stored bool, err error) {
	return v.PutAt(w, value, v.source.RecordTime())
}

// PutAt is Put with a timestamp.
func (v *SessionView[K, V]) PutAt(w Windowed[K], value V, ts int64) (stored bool, err error) {
	e, err := v.PutRecord(w, value, ts, nil)
	return e != nil, err
}

// PutRecord is Put with a timestamp and headers for the changelog. It returns the
// entry, see Layered.Put, or nil if the session is too old.
func (v *SessionView[K, V]) PutRecord(w Windowed[K], value V, ts int64, headers []Header) (*Entry, error) {
	if v.isNil(value) {
		return v.RemoveRecord(w, ts, headers)
	}
	if err := v.seek(w); err != nil {
		return nil, err
	}
	return v.put(value, w.End, ts, headers)
}

// seek fills the key scratch with the row's key.
func (v *SessionView[K, V]) seek(w Windowed[K]) (err error) {
	if w.Start < 0 || w.End < w.Start {
		return v.failed("session", fmt.Errorf("%w: [%d, %d]", ErrInvalidTime, w.Start, w.End))
	}
	if v.key, err = v.appendKey(append(v.key[:0], rowPrefix), w.Key); err == nil {
		v.key = appendTime(appendTime(v.key, w.End), w.Start)
	}
	return err
}

// Remove removes a session, which need not be there.
func (v *SessionView[K, V]) Remove(w Windowed[K]) error {
	_, err := v.RemoveRecord(w, v.source.RecordTime(), nil)
	return err
}

// RemoveRecord is Remove with a timestamp and headers for the changelog. It
// returns the tombstone, see Layered.Delete, or nil if the session is too old.
func (v *SessionView[K, V]) RemoveRecord(w Windowed[K], ts int64, headers []Header) (*Entry, error) {
	if err := v.seek(w); err != nil {
		return nil, err
	}
	return v.delete(w.End, ts, headers)
}

// FetchSession returns the value of one session; ok is false if there is none.
func (v *SessionView[K, V]) FetchSession(k K, start, end int64) (value V, ok bool, err error) {
	value, _, ok, err = v.FetchWithTime(Windowed[K]{k, start, end})
	return value, ok, err
}

// FetchWithTime is FetchSession with the row's timestamp.
func (v *SessionView[K, V]) FetchWithTime(w Windowed[K]) (value V, ts int64, ok bool, err error) {
	if w.Start < 0 || w.End < w.Start {
		return value, 0, false, nil
	}
	if err := v.seek(w); err != nil {
		return value, 0, false, err
	}
	return v.find(w.End)
}

// Fetch calls fn for the sessions of a key by ascending end, then start.
func (v *SessionView[K, V]) Fetch(k K, fn func(Row[K, V]) bool) error {
	return v.ofKey(k, 0, always, false, anyTail, fn)
}

// ReverseFetch is Fetch in descending order.
func (v *SessionView[K, V]) ReverseFetch(k K, fn func(Row[K, V]) bool) error {
	return v.ofKey(k, 0, always, true, anyTail, fn)
}

// FindSessions calls fn for the sessions of a key that end at earliestEnd or
// later and start at latestStart or earlier, by ascending end, then start.
func (v *SessionView[K, V]) FindSessions(k K, earliestEnd, latestStart int64, fn func(Row[K, V]) bool) error {
	return v.ofKey(k, earliestEnd, always, false, startsBy(latestStart), fn)
}

// ReverseFindSessions is FindSessions in descending order.
func (v *SessionView[K, V]) ReverseFindSessions(k K, earliestEnd, latestStart int64, fn func(Row[K, V]) bool) error {
	return v.ofKey(k, earliestEnd, always, true, startsBy(latestStart), fn)
}

// FindSessionsKeys is FindSessions for the keys from kFrom to kTo, both included,
// in the order of the bytes of key ‖ end ‖ start.
func (v *SessionView[K, V]) FindSessionsKeys(
	kFrom, kTo K, earliestEnd, latestStart int64, fn func(Row[K, V]) bool,
) error {
	return v.ofKeys(kFrom, kTo, earliestEnd, always, false, startsBy(latestStart), fn)
}

// ReverseFindSessionsKeys is FindSessionsKeys in descending order; kFrom is still
// the lower key.
func (v *SessionView[K, V]) ReverseFindSessionsKeys(
	kFrom, kTo K, earliestEnd, latestStart int64, fn func(Row[K, V]) bool,
) error {
	return v.ofKeys(kFrom, kTo, earliestEnd, always, true, startsBy(latestStart), fn)
}

// FindByEnd calls fn for the sessions of all keys that end in [from, to], both
// included, by ascending end, then start, then key.
func (v *SessionView[K, V]) FindByEnd(from, to int64, fn func(Row[K, V]) bool) error {
	return v.byTime(from, to, false, true, fn)
}

// startsBy wants the sessions that start at latest or earlier.
func startsBy(latest int64) func(tail []byte) bool {
	return func(tail []byte) bool { return timeAt(tail[8:]) <= latest }
}
