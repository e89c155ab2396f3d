package store

import (
	"encoding/binary"
	"fmt"
	"math"
)

// timedLayout is that of windows and sessions: rows that a store retains for a
// time. A row's key is that of the changelog behind a zero byte,
//
//	window   0 ‖ key ‖ start ‖ number      index  1 ‖ start ‖ key ‖ number
//	session  0 ‖ key ‖ end ‖ start         index  1 ‖ end ‖ start ‖ key
//
// with times in 8 bytes and numbers in 4, big-endian. The first time of a key is
// the row's: it is seen as long as time > clock - retention. The index begins
// with it, so that what expires and what closes is found in order.
type timedLayout struct {
	retention  int64 // ms
	session    bool
	duplicates bool // rows are numbered
}

const (
	windowTail  = 12 // what follows the key in a window's row
	sessionTail = 16
)

func (t *timedLayout) kind() string {
	if t.session {
		return "session"
	}
	return "window"
}

// tail is the length of what follows the key.
func (t *timedLayout) tail() int {
	if t.session {
		return sessionTail
	}
	return windowTail
}

func (t *timedLayout) mirror(e *Entry) (key, value []byte) {
	return e.KeyBytes()[1:], e.mirroredValue()
}

// split takes a row's key apart.
func (t *timedLayout) split(row []byte) (key, tail []byte, err error) {
	at := len(row) - t.tail()
	if at < 1 || timeAt(row[at:]) < 0 {
		return nil, nil, fmt.Errorf("%w: a row's key of %d bytes", ErrForeignRecord, len(row)-1)
	}
	return row[1:at], row[at:], nil
}

// appendIndex appends the key in the time index of a row.
func (t *timedLayout) appendIndex(dst, key, tail []byte) []byte {
	dst = append(append(dst, indexPrefix), tail[:8]...)
	if t.session {
		return append(append(dst, tail[8:]...), key...)
	}
	return append(append(dst, key...), tail[8:]...)
}

// appendRow appends the row's key that a key in the time index stands for.
func (t *timedLayout) appendRow(dst, index []byte) []byte {
	dst = append(dst, rowPrefix)
	if t.session {
		return append(append(dst, index[17:]...), index[1:17]...)
	}
	end := len(index) - 4
	return append(append(append(dst, index[9:end]...), index[1:9]...), index[end:]...)
}

// admit moves the clock and tells whether a row of this time is retained.
func (t *timedLayout) admit(l *Layered, time int64) (bool, error) {
	now, err := l.observe(time)
	return err == nil && time > now-t.retention, err
}

// put writes an admitted row. The row's key may be in l.row.
func (t *timedLayout) put(l *Layered, row, value []byte, ts int64, headers []Header) (*Entry, error) {
	if err := l.writable(row); err != nil {
		return nil, err
	}
	e := l.uncommitted.Get(row)
	exists := e != nil && !e.Deleted
	if e == nil {
		var err error
		if exists, err = l.below(row); err != nil {
			return nil, err
		}
	}
	if !exists {
		if err := t.enter(l, l.uncommitted, row); err != nil {
			return nil, err
		}
	}
	return l.uncommitted.Put(row, value, ts, headers), nil
}

// enter adds a row to the time index.
func (t *timedLayout) enter(l *Layered, to *WriteSet, row []byte) error {
	key, tail, err := t.split(row)
	if err != nil {
		return err
	}
	l.index = t.appendIndex(l.index[:0], key, tail)
	to.putLocal(l.index, emptyBytes)
	l.earliest = min(l.earliest, timeAt(tail))
	return nil
}

// delete removes a row, whether or not it is there.
func (t *timedLayout) delete(l *Layered, to *WriteSet, row []byte, ts int64, headers []Header) (*Entry, error) {
	if err := l.writable(row); err != nil {
		return nil, err
	}
	key, tail, err := t.split(row)
	if err != nil {
		return nil, err
	}
	l.index = t.appendIndex(l.index[:0], key, tail)
	to.deleteLocal(l.index)
	return to.Delete(row, ts, headers), nil
}

// restore leaves out what was too old already when it was written, or by now.
func (t *timedLayout) restore(l *Layered, key, value []byte, ts int64) error {
	l.row = append(append(l.row[:0], rowPrefix), key...)
	if err := l.writable(l.row); err != nil {
		return err
	}
	_, tail, err := t.split(l.row)
	if err != nil {
		return fmt.Errorf("%w: %s", err, l.name)
	}
	time := timeAt(tail)
	c, err := l.restoredTime(time)
	if err != nil {
		return err
	}
	if t.duplicates {
		c.seq, c.ahead = binary.BigEndian.Uint32(tail[8:]), true
	}
	if time <= c.time-t.retention {
		return nil
	}
	if value == nil {
		_, err = t.delete(l, l.committed, l.row, ts, nil)
		return err
	}
	l.committed.Put(l.row, value, ts, nil)
	return t.enter(l, l.committed, l.row)
}

func (t *timedLayout) expire(l *Layered, to *WriteSet, limit int) (removed int, err error) {
	c, err := l.now()
	if err != nil || c.time < t.retention {
		return 0, err
	}
	last := c.time - t.retention // the latest time that is too old
	if last < l.earliest {
		return 0, nil
	}
	// Windows come many at a time. The first row that stays tells when there is something to remove again, so that most
	// commits need not look, nor have their writes in order for it.
	stays := int64(math.MaxInt64)
	err = l.scan(Range{From: []byte{indexPrefix}, To: []byte{indexPrefix + 1}}, false, func(p Pair) (bool, error) {
		if time := timeAt(p.Key[1:]); time > last {
			stays = time
			return false, nil
		}
		if removed == limit {
			stays = last
			return false, nil
		}
		removed++
		l.row = t.appendRow(l.row[:0], p.Key)
		to.deleteLocal(l.row)
		to.deleteLocal(p.Key)
		return true, nil
	})
	if err == nil {
		l.earliest = stays
	}
	return removed, err
}

// floor is the earliest time that is seen.
func (t *timedLayout) floor(l *Layered) (int64, error) {
	c, err := l.now()
	if err != nil {
		return 0, err
	}
	return max(0, c.time-t.retention+1), nil
}

// indexRange is the part of the time index for the times from from to to, both
// included.
func indexRange(from, to int64) Range {
	r := Range{From: appendTime([]byte{indexPrefix}, max(0, from)), To: []byte{indexPrefix + 1}}
	switch {
	case to < 0:
		r.To = r.From
	case to < math.MaxInt64:
		r.To = appendTime([]byte{indexPrefix}, to+1)
	}
	return r
}

// upperBound returns a bound, exclusive, above the rows of a key, or of all keys
// up to it, if tail is the highest that can follow a key.
func upperBound(key, tail []byte, alone bool) []byte {
	highest := append(append([]byte{rowPrefix}, key...), tail...)
	for i := range key {
		// A row of a key that is the beginning of this one can lie above it.
		if alone || key[i] > tail[0] {
			continue
		}
		row := append(append([]byte{rowPrefix}, key[:i]...), tail...)
		if string(row) > string(highest) {
			highest = row
		}
	}
	return append(highest, 0)
}

// topTail is above what follows the key in rows up to a time.
func (t *timedLayout) topTail(to int64) []byte {
	return append(appendTime(nil, to), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)[:t.tail()]
}
