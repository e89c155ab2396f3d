package store

import (
	"encoding/binary"
	"fmt"
	"math"
)

// WindowView reads and writes a window store by its types. It belongs to the
// goroutine of the task.
//
// A row that is too old is not seen: its start is at most Time - retention. What
// fn may do in a scan is what it may do in Layered.Scan. Times are in ms.
type WindowView[K, V any] struct {
	timedView[K, V]
}

// Put sets the value of a key in the window that begins at start, as of the
// record being processed. It is not stored, and nothing changes, if the window
// is too old. A nil value deletes the row; with RetainDuplicates it does nothing.
func (v *WindowView[K, V]) Put(k K, value V, start int64) (stored bool, err error) {
	return v.PutAt(k, value, start, v.source.RecordTime())
}

// PutAt is Put with a timestamp.
func (v *WindowView[K, V]) PutAt(k K, value V, start, ts int64) (stored bool, err error) {
	e, err := v.PutRecord(k, value, start, ts, nil)
	return e != nil, err
}

// PutRecord is Put with a timestamp and headers for the changelog. It returns the
// entry, see Layered.Put, or nil if nothing was stored.
func (v *WindowView[K, V]) PutRecord(k K, value V, start, ts int64, headers []Header) (*Entry, error) {
	switch {
	case !v.isNil(value):
	case v.layout.duplicates:
		return nil, nil
	default:
		return v.DeleteRecord(k, start, ts, headers)
	}
	if err := v.seek(k, start); err != nil {
		return nil, err
	}
	if v.layout.duplicates {
		n, err := v.layers.number()
		if err != nil {
			return nil, err
		}
		binary.BigEndian.PutUint32(v.key[len(v.key)-4:], n)
	}
	return v.put(value, start, ts, headers)
}

// seek fills the key scratch with the key of the row numbered 0.
func (v *WindowView[K, V]) seek(k K, start int64) (err error) {
	if start < 0 {
		return v.failed("window", fmt.Errorf("%w: start %d", ErrInvalidTime, start))
	}
	if v.key, err = v.appendKey(append(v.key[:0], rowPrefix), k); err == nil {
		v.key = append(appendTime(v.key, start), 0, 0, 0, 0)
	}
	return err
}

// Delete removes the row of a key and start, with RetainDuplicates all of them,
// if there is one and it is not too old.
func (v *WindowView[K, V]) Delete(k K, start int64) error {
	_, err := v.DeleteRecord(k, start, v.source.RecordTime(), nil)
	return err
}

// DeleteRecord is Delete with a timestamp and headers for the changelog. It
// returns the tombstone, see Layered.Delete; nil if the window is too old, or if
// there were none or several.
func (v *WindowView[K, V]) DeleteRecord(k K, start, ts int64, headers []Header) (*Entry, error) {
	if err := v.seek(k, start); err != nil {
		return nil, err
	}
	if !v.layout.duplicates {
		return v.delete(start, ts, headers)
	}
	l := v.layers
	r := Range{From: v.key, To: append(append([]byte{}, v.key[:len(v.key)-4]...), 0xff)}
	n := len(v.key)
	return nil, l.scan(r, false, func(p Pair) (bool, error) {
		if len(p.Key) != n {
			return true, nil
		}
		_, err := v.layout.delete(l, l.uncommitted, p.Key, ts, headers)
		return true, err
	})
}

// Fetch returns the value of a key in the window that begins at start; ok is
// false if there is none. With RetainDuplicates it is the last one put.
func (v *WindowView[K, V]) Fetch(k K, start int64) (value V, ok bool, err error) {
	value, _, ok, err = v.FetchWithTime(k, start)
	return value, ok, err
}

// FetchWithTime is Fetch with the row's timestamp.
func (v *WindowView[K, V]) FetchWithTime(k K, start int64) (value V, ts int64, ok bool, err error) {
	if v.layout.duplicates {
		err = v.ReverseFetchRange(k, start, start, func(r Row[K, V]) bool {
			value, ts, ok = r.Value, r.Timestamp, true
			return false
		})
		return value, ts, ok, err
	}
	if start < 0 {
		return value, 0, false, nil
	}
	if err := v.seek(k, start); err != nil {
		return value, 0, false, err
	}
	return v.find(start)
}

// FetchRange calls fn for the windows of a key that begin in [from, to], both
// included, by ascending start.
func (v *WindowView[K, V]) FetchRange(k K, from, to int64, fn func(Row[K, V]) bool) error {
	return v.ofKey(k, from, to, false, anyTail, fn)
}

// ReverseFetchRange is FetchRange by descending start.
func (v *WindowView[K, V]) ReverseFetchRange(k K, from, to int64, fn func(Row[K, V]) bool) error {
	return v.ofKey(k, from, to, true, anyTail, fn)
}

// FetchKeys calls fn for the windows of the keys from kFrom to kTo that begin in
// [from, to], all included, in the order of the bytes of key ‖ start.
func (v *WindowView[K, V]) FetchKeys(kFrom, kTo K, from, to int64, fn func(Row[K, V]) bool) error {
	return v.ofKeys(kFrom, kTo, from, to, false, anyTail, fn)
}

// ReverseFetchKeys is FetchKeys in descending order; kFrom is still the lower key.
func (v *WindowView[K, V]) ReverseFetchKeys(kFrom, kTo K, from, to int64, fn func(Row[K, V]) bool) error {
	return v.ofKeys(kFrom, kTo, from, to, true, anyTail, fn)
}

// FetchAll calls fn for the windows of all keys that begin in [from, to], both
// included, by ascending start, those of one start in the order of their keys'
// bytes, with RetainDuplicates of key ‖ number.
func (v *WindowView[K, V]) FetchAll(from, to int64, fn func(Row[K, V]) bool) error {
	return v.byTime(from, to, false, true, fn)
}

// ReverseFetchAll is FetchAll in descending order.
func (v *WindowView[K, V]) ReverseFetchAll(from, to int64, fn func(Row[K, V]) bool) error {
	return v.byTime(from, to, true, true, fn)
}

// NoEnd is an end that is not there: of the latest version, of a window without
// bounds.
const NoEnd = math.MaxInt64
