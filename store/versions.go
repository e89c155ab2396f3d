package store

import (
	"fmt"
	"math"
)

// versionedLayout is that of versioned stores: the versions of a key are rows of
// their own, of which the changelog sees all under the one key.
//
//	row    0 ‖ key ‖ from          value  1 ‖ value, or 0: a tombstone
//	index  1 ‖ from ‖ key
//
// The time from which a version is valid is its timestamp too. It ends where the
// next one begins, so a version is out of reach once the next one is as old as
// the history goes back; the index finds them by that. A version that nothing
// follows stays for ever, unless it is a tombstone.
type versionedLayout struct {
	history int64 // ms
}

const (
	versionTail = 8

	tombstoneTag = 0
	valueTag     = 1
)

func (t *versionedLayout) kind() string { return "versioned" }

func (t *versionedLayout) mirror(e *Entry) (key, value []byte) {
	row := e.KeyBytes()
	return row[1 : len(row)-versionTail], versionValue(e.Value)
}

// versionValue is the value of a row, nil for a tombstone.
func versionValue(row []byte) []byte {
	if isTombstone(row) {
		return nil
	}
	return row[1:]
}

func isTombstone(row []byte) bool { return len(row) == 0 || row[0] == tombstoneTag }

func appendVersion(dst, key []byte, from int64) []byte {
	return appendTime(append(append(dst, rowPrefix), key...), from)
}

func (t *versionedLayout) appendIndex(dst, key []byte, from int64) []byte {
	return append(appendTime(append(dst, indexPrefix), from), key...)
}

// span is the range of the rows of a key that begin in [from, to]. Rows of
// longer keys may lie between them, see isVersion.
func span(key []byte, from, to int64, reverse bool) Range {
	r := Range{From: appendVersion(nil, key, max(0, from)), Reverse: reverse}
	if to < 0 {
		r.To = r.From
	} else {
		r.To = append(appendVersion(nil, key, to), 0)
	}
	return r
}

// isVersion tells whether a row of a key's span is the key's.
func isVersion(row, key []byte) bool { return len(row) == 1+len(key)+versionTail }

func versionFrom(row []byte) int64 { return timeAt(row[len(row)-versionTail:]) }

// first finds the first row of a key that begins in [from, to], or the last in
// reverse. The pair is valid until the next write or scan of the store.
func (t *versionedLayout) first(l *Layered, key []byte, from, to int64, reverse bool) (found Pair, ok bool, err error) {
	if to < from {
		return Pair{}, false, nil
	}
	err = l.scan(span(key, from, to, reverse), false, func(p Pair) (bool, error) {
		if !isVersion(p.Key, key) {
			return true, nil
		}
		l.row = append(l.row[:0], p.Key...)
		l.old = append(l.old[:0], p.Value...)
		found, ok = Pair{Key: l.row, Value: l.old, Timestamp: p.Timestamp}, true
		return false, nil
	})
	return found, ok, err
}

// next is where the version that follows a time begins, NoEnd if none does.
func (t *versionedLayout) next(l *Layered, key []byte, after int64) (int64, error) {
	if after == math.MaxInt64 {
		return NoEnd, nil
	}
	p, ok, err := t.first(l, key, after+1, math.MaxInt64, false)
	if err != nil || !ok {
		return NoEnd, err
	}
	return versionFrom(p.Key), nil
}

// put writes a version, a tombstone if row is just its tag, and returns where it
// ends. It is not stored if it begins before the history. Key and row are not
// the layers' scratch.
func (t *versionedLayout) put(l *Layered, key, row []byte, from int64, headers []Header) (to int64, stored bool, err error) {
	if n := 1 + len(key) + versionTail; n > MaxKeySize {
		return 0, false, fmt.Errorf("%w: %s: %d bytes, at most %d", ErrKeyTooLarge, l.name, len(key), MaxKeySize-1-versionTail)
	}
	now, err := l.observe(from)
	if err != nil || from < now-t.history {
		return 0, false, err
	}
	if to, err = t.next(l, key, from); err != nil {
		return 0, false, err
	}
	t.enter(l, l.uncommitted, key, from)
	l.row = appendVersion(l.row[:0], key, from)
	e := l.uncommitted.Put(l.row, row, from, headers)
	e.echo = to != NoEnd
	if e.echo {
		err = t.touchNewest(l, key)
	}
	return to, true, err
}

func (t *versionedLayout) enter(l *Layered, to *WriteSet, key []byte, from int64) {
	l.index = t.appendIndex(l.index[:0], key, from)
	to.putLocal(l.index, emptyBytes)
	l.earliest = min(l.earliest, from)
}

// touchNewest makes the newest version of a key part of the next commit, behind
// a version that was put out of order: compaction keeps the last record of a
// key, which must be the newest version.
func (t *versionedLayout) touchNewest(l *Layered, key []byte) error {
	p, ok, err := t.first(l, key, 0, math.MaxInt64, true)
	if err != nil || !ok || pending(l.uncommitted.Get(p.Key)) {
		return err
	}
	l.uncommitted.Put(p.Key, p.Value, p.Timestamp, nil)
	return nil
}

// pending tells whether an entry is yet to be mirrored.
func pending(e *Entry) bool { return e != nil && !e.Local }

// newestVersion finds the newest version of an entry's key in a set that has it.
func newestVersion(w *WriteSet, e *Entry) (newest *Entry) {
	row := e.KeyBytes()
	key := row[1 : len(row)-versionTail]
	w.Ascend(span(key, 0, math.MaxInt64, true), func(e *Entry) bool {
		if isVersion(e.KeyBytes(), key) && !e.Local {
			newest = e
		}
		return newest == nil
	})
	return newest
}

// restore leaves out what was too old already when it was written, as a store
// ignores it.
func (t *versionedLayout) restore(l *Layered, key, value []byte, ts int64) error {
	if ts < 0 {
		return fmt.Errorf("%w: %s: a version of time %d", ErrForeignRecord, l.name, ts)
	}
	c, err := l.restoredTime(ts)
	if err != nil || ts < c.time-t.history {
		return err
	}
	l.row = appendVersion(l.row[:0], key, ts)
	if err := l.writable(l.row); err != nil {
		return err
	}
	l.old = appendVersionValue(l.old[:0], value)
	l.committed.Put(l.row, l.old, ts, nil)
	t.enter(l, l.committed, key, ts)
	return nil
}

// appendVersionValue appends a row's value; a nil value is a tombstone.
func appendVersionValue(dst, value []byte) []byte {
	if value == nil {
		return append(dst, tombstoneTag)
	}
	return append(append(dst, valueTag), value...)
}

// expire takes versions off the index from the oldest on: the one before has
// ended by then, and is removed; so is a tombstone itself.
func (t *versionedLayout) expire(l *Layered, to *WriteSet, limit int) (removed int, err error) {
	c, err := l.now()
	if err != nil || c.time < t.history {
		return 0, err
	}
	last := c.time - t.history
	if last < l.earliest {
		return 0, nil
	}
	r, postponed := indexRange(0, last), false
	var key []byte
	err = l.scan(r, false, func(p Pair) (bool, error) {
		if removed >= limit {
			return false, nil
		}
		removed++
		key = append(key[:0], p.Key[1+versionTail:]...)
		done, err := t.end(l, to, key, timeAt(p.Key[1:]))
		if done {
			to.deleteLocal(p.Key)
		}
		postponed = postponed || !done
		return true, err
	})
	if err == nil && removed < limit && !postponed {
		l.earliest = last + 1
	}
	return removed, err
}

// end removes the versions of a key that end by the time from, where another
// begins, and that one if it is a tombstone. It is not done if the changelog
// does not know the tombstone yet.
func (t *versionedLayout) end(l *Layered, to *WriteSet, key []byte, from int64) (done bool, err error) {
	err = l.scan(span(key, 0, from-1, true), false, func(p Pair) (bool, error) {
		if isVersion(p.Key, key) {
			to.deleteLocal(p.Key)
		}
		return true, nil
	})
	if err != nil {
		return false, err
	}
	l.row = appendVersion(l.row[:0], key, from)
	var ok bool
	l.old, _, ok, err = l.get(l.old[:0], l.row)
	if err != nil || !ok || !isTombstone(l.old) {
		return err == nil, err
	}
	if to == l.uncommitted && pending(to.Get(l.row)) {
		return false, nil
	}
	to.deleteLocal(l.row)
	return true, nil
}
