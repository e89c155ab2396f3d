package store

import (
	"fmt"
	"time"
)

// Option changes a declaration.
type Option func(*options)

type options struct {
	ttl    time.Duration
	hasTTL bool
}

// WithTTL makes rows expire by event time: a row is not seen any more, by reads
// nor by scans, once the task's stream time is above the row's timestamp + ttl.
// It is then removed little by little, from the changelog too. The ttl is whole
// milliseconds, at least one.
//
// Each write of a row renews it. A row that is written with a timestamp so old
// that it has expired is not seen.
func WithTTL(ttl time.Duration) Option {
	return func(o *options) { o.ttl, o.hasTTL = ttl, true }
}

func optionsOf(opts []Option) options {
	var o options
	for _, set := range opts {
		set(&o)
	}
	return o
}

func (o *options) layout() Layout {
	if !o.hasTTL {
		return nil
	}
	ms := o.ttl.Milliseconds()
	return &ttlLayout{ttl: ms, bucket: max(1, ms/ttlBuckets)}
}

func (o *options) validate(name string) error {
	if !o.hasTTL {
		return nil
	}
	return wholeMilliseconds(name, "TTL", o.ttl, 1)
}

// wholeMilliseconds refuses spans that are shorter than least ms, or have a
// fraction of one.
func wholeMilliseconds(name, what string, d time.Duration, least int64) error {
	switch {
	case d%time.Millisecond != 0:
		return fmt.Errorf("store: %s: the %s is %v, not whole milliseconds", name, what, d)
	case d.Milliseconds() < least:
		return fmt.Errorf("store: %s: the %s is %v, less than %d ms", name, what, d, least)
	}
	return nil
}

// ttlLayout is that of key-value stores with a time to live:
//
//	row    0 ‖ key
//	index  1 ‖ bucket ‖ key
//
// The bucket, 8 bytes, is the row's timestamp in units of a fraction of the ttl.
// A row that is written again and again moves in the index that seldom, and a
// row is removed that much after it has expired. What is seen depends on the
// row's timestamp alone.
type ttlLayout struct {
	ttl    int64 // ms
	bucket int64 // ms
}

const ttlBuckets = 16

func (t *ttlLayout) kind() string { return "ttl" }

func (t *ttlLayout) mirror(e *Entry) (key, value []byte) {
	return e.KeyBytes()[1:], e.mirroredValue()
}

// expired tells whether a row of this timestamp is not seen any more.
func (t *ttlLayout) expired(l *Layered, ts int64) bool { return ts < l.streamTime-t.ttl }

func (t *ttlLayout) appendRow(dst, key []byte) []byte {
	return append(append(dst, rowPrefix), key...)
}

func (t *ttlLayout) bucketOf(ts int64) int64 { return max(0, ts) / t.bucket }

func (t *ttlLayout) appendIndex(dst, key []byte, bucket int64) []byte {
	return append(appendTime(append(dst, indexPrefix), bucket), key...)
}

// getFunc reads an entry by its local key.
type getFunc func(dst, key []byte) (value []byte, ts int64, ok bool, err error)

func (t *ttlLayout) get(l *Layered, get getFunc, dst, key []byte) (value []byte, ts int64, ok bool, err error) {
	l.row = t.appendRow(l.row[:0], key)
	value, ts, ok, err = get(dst, l.row)
	if err != nil || !ok || t.expired(l, ts) {
		return dst, 0, false, err
	}
	return value, ts, true, nil
}

func (t *ttlLayout) put(l *Layered, to *WriteSet, key, value []byte, ts int64, headers []Header) (*Entry, error) {
	if n := indexSize + len(key); n > MaxKeySize {
		return nil, fmt.Errorf("%w: %s: %d bytes, at most %d", ErrKeyTooLarge, l.name, len(key), MaxKeySize-indexSize)
	}
	bucket := t.bucketOf(ts)
	old, exists, err := t.place(l, key)
	if err != nil {
		return nil, err
	}
	if !exists || old != bucket {
		if exists {
			t.leave(l, to, key, old)
		}
		l.index = t.appendIndex(l.index[:0], key, bucket)
		to.putLocal(l.index, emptyBytes)
		l.earliest = min(l.earliest, bucket)
	}
	return to.Put(l.row, value, ts, headers), nil
}

const indexSize = 9

func (t *ttlLayout) delete(l *Layered, to *WriteSet, key []byte, ts int64, headers []Header) (*Entry, error) {
	old, exists, err := t.place(l, key)
	if err != nil {
		return nil, err
	}
	if exists {
		t.leave(l, to, key, old)
	}
	return to.Delete(l.row, ts, headers), nil
}

// place finds the bucket in which the key's row is, and leaves its key in l.row.
func (t *ttlLayout) place(l *Layered, key []byte) (bucket int64, exists bool, err error) {
	var ts int64
	l.row = t.appendRow(l.row[:0], key)
	l.old, ts, exists, err = l.get(l.old[:0], l.row)
	return t.bucketOf(ts), exists, err
}

// leave takes the key out of the index.
func (t *ttlLayout) leave(l *Layered, to *WriteSet, key []byte, bucket int64) {
	l.index = t.appendIndex(l.index[:0], key, bucket)
	to.deleteLocal(l.index)
}

func (t *ttlLayout) scan(l *Layered, r Range, committedOnly bool, fn func(Pair) (bool, error)) error {
	from, to := t.appendRow(nil, r.From), []byte{rowPrefix + 1}
	if r.To != nil {
		to = t.appendRow(nil, r.To)
	}
	return l.scan(Range{From: from, To: to, Reverse: r.Reverse}, committedOnly, func(p Pair) (bool, error) {
		if t.expired(l, p.Timestamp) {
			return true, nil
		}
		p.Key = p.Key[1:]
		return fn(p)
	})
}

// restore keeps rows that have expired: they are not seen, and Expire leaves the
// tombstones that the changelog lacks.
func (t *ttlLayout) restore(l *Layered, key, value []byte, ts int64) (err error) {
	l.Advance(ts)
	if value == nil {
		_, err = t.delete(l, l.committed, key, ts, nil)
	} else {
		_, err = t.put(l, l.committed, key, value, ts, nil)
	}
	return err
}

// expire removes the rows of the buckets of which all rows have expired.
func (t *ttlLayout) expire(l *Layered, to *WriteSet, limit int) (removed int, err error) {
	if l.streamTime < t.ttl {
		return 0, nil
	}
	end := (l.streamTime - t.ttl) / t.bucket // the first bucket that is not over
	if end <= l.earliest {
		return 0, nil
	}
	r := Range{From: []byte{indexPrefix}, To: appendTime([]byte{indexPrefix}, end)}
	err = l.scan(r, false, func(p Pair) (bool, error) {
		if removed == limit {
			return false, nil
		}
		removed++
		l.row = t.appendRow(l.row[:0], p.Key[indexSize:])
		to.Delete(l.row, l.streamTime, nil)
		to.deleteLocal(p.Key)
		return true, nil
	})
	if err == nil && removed < limit {
		l.earliest = end
	}
	return removed, err
}
