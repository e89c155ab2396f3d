package store

import (
	"encoding/binary"
	"fmt"
	"math"
)

// noTime is the time of a store before anything was put.
const noTime = -1

// clock is the time of a store: the highest time of a row ever put, and the
// number given to the latest row of a store that keeps duplicates. It is a row
// itself, so that it is undone, committed, flushed and found again like others.
// The fields are a copy of the row.
type clock struct {
	known bool // the fields are right
	ahead bool // of the row, in a restore
	time  int64
	seq   uint32
}

var clockKey = []byte{clockPrefix}

// now returns the clock as it is.
func (l *Layered) now() (*clock, error) {
	c := &l.clock
	if c.known {
		return c, nil
	}
	row, _, ok, err := l.get(nil, clockKey)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		*c = clock{known: true, time: noTime}
	case len(row) != 12:
		return nil, fmt.Errorf("%w: %s: a clock of %d bytes", ErrCorrupt, l.name, len(row))
	default:
		*c = clock{known: true, time: timeAt(row), seq: binary.BigEndian.Uint32(row[8:])}
	}
	return c, nil
}

// observe moves the clock on if t is later, and returns its time.
func (l *Layered) observe(t int64) (int64, error) {
	c, err := l.now()
	if err != nil {
		return 0, err
	}
	if t > c.time {
		c.time = t
		l.writeClock(l.uncommitted)
	}
	return c.time, nil
}

// number returns the next row's number, from 1 on.
func (l *Layered) number() (uint32, error) {
	c, err := l.now()
	if err != nil {
		return 0, err
	}
	c.seq = (c.seq + 1) & math.MaxInt32
	l.writeClock(l.uncommitted)
	return c.seq, nil
}

func (l *Layered) writeClock(to *WriteSet) {
	var row [12]byte
	binary.BigEndian.PutUint64(row[:], uint64(l.clock.time))
	binary.BigEndian.PutUint32(row[8:], l.clock.seq)
	to.putLocal(clockKey, row[:])
}

// restoredTime is observe in a restore, where the row is written by keepClock.
func (l *Layered) restoredTime(t int64) (*clock, error) {
	c, err := l.now()
	if err == nil && t > c.time {
		c.time, c.ahead = t, true
	}
	return c, err
}

func (l *Layered) keepClock(to *WriteSet) {
	if l.clock.ahead {
		l.clock.ahead = false
		l.writeClock(to)
	}
}

// forgetDerived drops what was derived from writes that are now undone.
func (l *Layered) forgetDerived() {
	l.clock.known = false
	l.earliest = math.MinInt64
}
