package store

import "iter"

// Dirty tells whether the uncommitted layer holds anything to commit.
func (l *Layered) Dirty() bool { return l.uncommitted.Len() > 0 }

// StagedBytes is the memory of the uncommitted layer.
func (l *Layered) StagedBytes() int { return l.uncommitted.Bytes() }

// Prepare makes the uncommitted layer the committing one, which is returned to
// be written to the changelog, and starts an empty uncommitted one. It panics if
// a commit is in flight already. The set must not be used after Committed or
// Abort.
func (l *Layered) Prepare() *WriteSet {
	if l.committing != nil {
		panic("store: " + l.name + ": prepare while a commit is in flight")
	}
	l.committing = l.uncommitted
	l.uncommitted = l.emptySet()
	return l.committing
}

// Committed ends the commit in flight with success: the committing layer joins
// the committed one. The offset is the changelog position behind its records;
// negative if there is no changelog or nothing was written to it. It also
// serves to move the position on, past control records, without a commit in
// flight.
func (l *Layered) Committed(offset int64) {
	if l.committing != nil {
		l.committed.Absorb(l.committing)
		l.keepSpare(l.committing)
		l.committing = nil
	}
	l.reach(offset)
}

// Abort ends the commit in flight without success: the committing layer is
// dropped, and the uncommitted one with it since it was computed from it. The
// caller reads the input again from the committed positions.
func (l *Layered) Abort() {
	l.committing = nil
	l.UncommittedAbort()
}

// UncommittedAbort drops the uncommitted layer only.
func (l *Layered) UncommittedAbort() {
	l.uncommitted.reset()
	l.forgetDerived()
}

// Offset is the changelog offset, exclusive, up to which the committed layers
// and the backend hold the changelog; false if there is none, which means
// nothing of it is held. 0 is a valid offset.
func (l *Layered) Offset() (int64, bool) {
	if l.offset == noOffset {
		return 0, false
	}
	return l.offset, true
}

// reach moves the offset on; it never goes back.
func (l *Layered) reach(offset int64) { l.offset = max(l.offset, offset) }

// UnflushedBytes is the memory of the layers that the backend does not hold yet.
func (l *Layered) UnflushedBytes() int {
	n := l.committed.Bytes()
	if l.flushing != nil {
		n += l.flushing.Bytes()
	}
	return n
}

// BeginFlush turns the committed layer into a batch for Backend.Apply, which
// may run on another goroutine; EndFlush must follow. It is false if a flush is
// in flight already, or if the backend holds everything. A batch without
// entries moves the backend's offset only.
func (l *Layered) BeginFlush() (Batch, bool) {
	if l.flushing != nil || l.closed {
		return Batch{}, false
	}
	if l.committed.Len() == 0 && l.offset == l.flushed {
		return Batch{}, false
	}
	l.flushing, l.committed = l.committed, l.emptySet()
	l.target = l.offset
	return Batch{Entries: l.flushing.batch(), Offset: l.target}, true
}

// EndFlush tells how Apply ended. With nil the flushed layer is dropped and its
// memory used again, else it goes back below the committed one and the next
// flush carries both.
func (l *Layered) EndFlush(err error) {
	if l.flushing == nil {
		return
	}
	if err == nil {
		l.flushed = l.target
		l.flushing.Recycle()
		l.keepSpare(l.flushing)
	} else {
		l.flushing.Absorb(l.committed)
		l.committed = l.flushing
	}
	l.flushing = nil
}

// RestorePut puts one record of the changelog into the committed layer, as its
// newest write; a nil value deletes. Key and value are copied. Restored must
// follow before the next BeginFlush. Nothing may be uncommitted.
//
// An error is ErrKeyTooLarge, ErrNilKey, ErrForeignRecord or the backend's.
func (l *Layered) RestorePut(key, value []byte, ts int64) error {
	if err := l.writable(key); err != nil {
		return err
	}
	if l.layout != nil {
		return l.layout.restore(l, key, value, ts)
	}
	if value == nil {
		l.committed.Delete(key, ts, nil)
	} else {
		l.committed.Put(key, value, ts, nil)
	}
	return nil
}

// Loads reports whether Load can take records of the changelog: they are the
// backend's own rows, and no layer above it holds any.
func (l *Layered) Loads() bool {
	return l.layout == nil && l.committed.Len() == 0 && l.flushing == nil && !l.closed
}

// Loadable returns the error that RestorePut would return for the key.
func (l *Layered) Loadable(key []byte) error { return l.writable(key) }

// Load brings records of the changelog into the backend past the layers, which
// spares a restore most of its work, and moves the offset; see Backend.Load for
// the rows. It needs Loads, and keys that are Loadable. Nothing may be
// uncommitted, and nobody may read meanwhile. After an error the backend must be
// loaded again with no less before it is of use.
func (l *Layered) Load(rows iter.Seq[Pair], offset int64) error {
	if err := l.backend.Load(rows, offset); err != nil {
		return err
	}
	l.Restored(offset)
	l.flushed = l.offset
	return nil
}

// Restored tells that the records below the offset have been put.
func (l *Layered) Restored(offset int64) {
	l.keepClock(l.committed)
	l.committed.Mark()
	l.restoredTo = l.streamTime
	l.reach(offset)
}

// emptySet returns a spare set, or a new one.
func (l *Layered) emptySet() *WriteSet {
	n := len(l.spares)
	if n == 0 {
		w := NewWriteSet()
		w.layout = l.layout
		return w
	}
	w := l.spares[n-1]
	l.spares[n-1] = nil
	l.spares = l.spares[:n-1]
	return w
}

// keepSpare keeps an emptied set to be used again, unless a burst has made it
// larger than a usual one needs: clearing a map costs its capacity.
func (l *Layered) keepSpare(w *WriteSet) {
	const slack, most = 8, 2
	if w.lastLen*slack >= cap(w.order) && len(l.spares) < most {
		l.spares = append(l.spares, w)
	}
}
