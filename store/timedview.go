package store

import (
	"bytes"
	"math"
	"slices"
)

// timedView is what the views of windows and sessions have in common: rows with
// two times behind the key, of which the first is the row's.
type timedView[K, V any] struct {
	view[K, V]
	layout *timedLayout
	size   int64 // ms, of windows
}

// Time is the store's own time: the highest time of a row ever put, of windows
// the start and of sessions the end; -1 before the first. It is what retention
// goes by. It survives restarts, and is restored.
func (v *timedView[K, V]) Time() (int64, error) {
	c, err := v.layers.now()
	if err != nil {
		return 0, err
	}
	return c.time, nil
}

// All calls fn for every row, in the order of the bytes of key ‖ time.
func (v *timedView[K, V]) All(fn func(Row[K, V]) bool) error { return v.all(false, fn) }

// ReverseAll is All in descending order.
func (v *timedView[K, V]) ReverseAll(fn func(Row[K, V]) bool) error { return v.all(true, fn) }

func (v *timedView[K, V]) all(reverse bool, fn func(Row[K, V]) bool) error {
	r := Range{From: []byte{rowPrefix}, To: []byte{rowPrefix + 1}, Reverse: reverse}
	return v.rows(r, func(_, _ []byte) bool { return true }, fn)
}

// ScanTime calls fn for the rows of the times from from to to, both included, in
// the order of their times, those included that are beyond the retention and
// not yet removed by Expire: whoever emits a row when it closes finds it here.
// Rows of one time are in the order of keys; sessions, in that of their starts
// first. fn may read, put and delete rows.
func (v *timedView[K, V]) ScanTime(from, to int64, fn func(Row[K, V]) bool) error {
	return v.byTime(from, to, false, false, fn)
}

// byTime goes through the time index.
func (v *timedView[K, V]) byTime(from, to int64, reverse, visible bool, fn func(Row[K, V]) bool) error {
	r := indexRange(from, to)
	r.Reverse = reverse
	var key, value []byte
	return v.layers.scan(r, false, func(p Pair) (bool, error) {
		if visible {
			if floor, err := v.layout.floor(v.layers); err != nil || timeAt(p.Key[1:]) < floor {
				return true, err
			}
		}
		key = v.layout.appendRow(key[:0], p.Key)
		var ts int64
		var ok bool
		var err error
		value, ts, ok, err = v.layers.get(value[:0], key)
		if err != nil || !ok {
			return true, err
		}
		row, err := v.decode(key, value, ts)
		if err != nil {
			return false, err
		}
		return fn(row), nil
	})
}

// rows calls fn for the rows of a range that are seen and wanted.
func (v *timedView[K, V]) rows(r Range, want func(key, tail []byte) bool, fn func(Row[K, V]) bool) error {
	return v.layers.scan(r, false, func(p Pair) (bool, error) {
		key, tail, err := v.layout.split(p.Key)
		if err != nil {
			return false, v.failed("read", err)
		}
		if !want(key, tail) {
			return true, nil
		}
		if floor, err := v.layout.floor(v.layers); err != nil || timeAt(tail) < floor {
			return true, err
		}
		row, err := v.decode(p.Key, p.Value, p.Timestamp)
		if err != nil {
			return false, err
		}
		return fn(row), nil
	})
}

// ofKey calls fn for the rows of one key whose times are in [from, to] and whose
// tails are wanted. Keys that begin with this one's bytes are not looked at.
func (v *timedView[K, V]) ofKey(
	k K, from, to int64, reverse bool, want func(tail []byte) bool, fn func(Row[K, V]) bool,
) error {
	if err := v.encodeKey(k); err != nil {
		return err
	}
	key := slices.Clone(v.key)
	r, err := v.keyRange(key, key, from, to, reverse)
	if err != nil || r.To == nil {
		return err
	}
	return v.rows(r, func(k, tail []byte) bool { return len(k) == len(key) && want(tail) }, fn)
}

// ofKeys is ofKey for the keys from kFrom to kTo, both included, by their bytes.
// Rows later than the store's time are not looked for: fn may put such.
func (v *timedView[K, V]) ofKeys(
	kFrom, kTo K, from, to int64, reverse bool, want func(tail []byte) bool, fn func(Row[K, V]) bool,
) error {
	if err := v.encodeKey(kFrom); err != nil {
		return err
	}
	low := slices.Clone(v.key)
	if err := v.encodeKey(kTo); err != nil {
		return err
	}
	high := slices.Clone(v.key)
	now, err := v.Time()
	if err != nil {
		return err
	}
	to = min(to, now)
	r, err := v.keyRange(low, high, from, to, reverse)
	if err != nil || r.To == nil {
		return err
	}
	return v.rows(r, func(key, tail []byte) bool {
		time := timeAt(tail)
		return bytes.Compare(low, key) <= 0 && bytes.Compare(key, high) <= 0 && from <= time && time <= to && want(tail)
	}, fn)
}

// keyRange holds the rows of the keys from low to high whose times are in [from,
// to], and others between them. It has no upper bound if there are none.
func (v *timedView[K, V]) keyRange(low, high []byte, from, to int64, reverse bool) (Range, error) {
	floor, err := v.layout.floor(v.layers)
	if err != nil {
		return Range{}, err
	}
	if from = max(from, floor); to < from || bytes.Compare(low, high) > 0 {
		return Range{}, nil
	}
	r := Range{From: append([]byte{rowPrefix}, low...), Reverse: reverse}
	if bytes.Equal(low, high) {
		r.From = appendTime(r.From, from)
	}
	r.To = upperBound(high, v.layout.topTail(to), bytes.Equal(low, high))
	return r, nil
}

// decode makes a row of its bytes.
func (v *timedView[K, V]) decode(row, value []byte, ts int64) (r Row[K, V], err error) {
	key, tail, err := v.layout.split(row)
	if err != nil {
		return r, v.failed("read", err)
	}
	r.Timestamp = ts
	if v.layout.session {
		r.End, r.Start = timeAt(tail), timeAt(tail[8:])
	} else {
		r.Start = timeAt(tail)
		r.End = endOf(r.Start, v.size)
	}
	if r.Key, err = v.decodeKey(key); err != nil {
		return r, err
	}
	r.Value, err = v.decodeValue(value)
	return r, err
}

// put writes the row whose key is in v.key, if it is not too late.
func (v *timedView[K, V]) put(value V, time, ts int64, headers []Header) (*Entry, error) {
	if err := v.encodeValue(value); err != nil {
		return nil, err
	}
	if ok, err := v.layout.admit(v.layers, time); err != nil || !ok {
		return nil, err
	}
	return v.layout.put(v.layers, v.key, v.value, ts, headers)
}

// delete removes the row whose key is in v.key, if it is not too late.
func (v *timedView[K, V]) delete(time, ts int64, headers []Header) (*Entry, error) {
	if ok, err := v.layout.admit(v.layers, time); err != nil || !ok {
		return nil, err
	}
	return v.layout.delete(v.layers, v.layers.uncommitted, v.key, ts, headers)
}

// find reads the row whose key is in v.key.
func (v *timedView[K, V]) find(time int64) (value V, ts int64, ok bool, err error) {
	floor, err := v.layout.floor(v.layers)
	if err != nil || time < floor {
		return value, 0, false, err
	}
	v.value, ts, ok, err = v.layers.get(v.value[:0], v.key)
	if err != nil || !ok {
		return value, 0, false, err
	}
	value, err = v.decodeValue(v.value)
	return value, ts, err == nil, err
}

// anyTail wants all rows.
func anyTail([]byte) bool { return true }

// always is the latest time there is.
const always = math.MaxInt64
