package store

import (
	"fmt"
	"math"
)

// Layered is one store of one task: write sets over a backend. The package
// comment names the layers. It is used by one goroutine.
//
// Its methods speak of keys and values as the changelog of a key-value store
// has them, with a TTL or without. Stores of other kinds are used through their
// views.
type Layered struct {
	// MaxRecord bounds key and value of a Put together, in bytes, as they become a
	// record of the changelog: more is ErrRecordTooLarge. 0 is no bound.
	MaxRecord int

	name    string
	backend Backend
	layout  Layout     // nil: entries are the records of the changelog
	ttl     *ttlLayout // the layout, if it is this one
	closed  bool

	failure error // of the backend's reads, the first one

	uncommitted *WriteSet
	committing  *WriteSet // nil: no commit in flight
	committed   *WriteSet
	flushing    *WriteSet // nil: no flush in flight

	// Changelog offsets, exclusive, noOffset if there is none.
	offset  int64 // reached by the committed layer
	target  int64 // the backend will hold when the flush in flight ends
	flushed int64 // the backend holds

	spares []*WriteSet // emptied sets, to be used again
	scans  []*scan     // idle ones

	clock      clock // the store's own time, if its layout has one
	streamTime int64 // what Advance was told last
	// restoredTo is streamTime as far as a restore has told it.
	restoredTo int64
	earliest   int64 // the time index holds nothing older
	row, index []byte
	old        []byte
	warmth     uint64 // see Warm
}

const noOffset = -1

// NewLayered returns the layers of a plain key-value store over a backend, which
// it owns from now on. See LayersOf for stores of other kinds.
func NewLayered(name string, backend Backend) *Layered {
	l := &Layered{
		name: name, backend: backend,
		uncommitted: NewWriteSet(), committed: NewWriteSet(),
		target: noOffset, flushed: noOffset,
		streamTime: noTime, restoredTo: noTime, earliest: math.MinInt64,
	}
	if offset, ok := backend.Offset(); ok {
		l.flushed = offset
	}
	l.offset = l.flushed
	return l
}

// Name is the store's name.
func (l *Layered) Name() string { return l.name }

// Backend is the lowest layer. It lacks what the others hold.
func (l *Layered) Backend() Backend { return l.backend }

// Get appends the key's newest value to dst and returns it with its timestamp
// in ms. If the key is absent or deleted, ok is false and value is dst.
func (l *Layered) Get(dst, key []byte) (value []byte, ts int64, ok bool, err error) {
	if err := l.usable(key); err != nil {
		return dst, 0, false, err
	}
	if l.ttl != nil {
		return l.ttl.get(l, l.get, dst, key)
	}
	return l.get(dst, key)
}

// get is Get of an entry by its local key.
func (l *Layered) get(dst, key []byte) (value []byte, ts int64, ok bool, err error) {
	hash := hashOf(key)
	if e := l.uncommitted.get(hash, key); e != nil {
		return e.read(dst)
	}
	if l.committing != nil {
		if e := l.committing.peek(hash, key); e != nil {
			return e.read(dst)
		}
	}
	return l.getBelow(dst, hash, key)
}

// GetCommitted is Get for readers that must not see what may yet be undone: it
// looks at the committed layers only.
func (l *Layered) GetCommitted(dst, key []byte) (value []byte, ts int64, ok bool, err error) {
	if err := l.usable(key); err != nil {
		return dst, 0, false, err
	}
	if l.ttl != nil {
		return l.ttl.get(l, l.getCommitted, dst, key)
	}
	return l.getCommitted(dst, key)
}

func (l *Layered) getCommitted(dst, key []byte) ([]byte, int64, bool, error) {
	return l.getBelow(dst, hashOf(key), key)
}

// getBelow looks at the committed layers.
func (l *Layered) getBelow(dst []byte, hash uint32, key []byte) ([]byte, int64, bool, error) {
	if e := l.committed.peek(hash, key); e != nil {
		return e.read(dst)
	}
	if l.flushing != nil {
		if e := l.flushing.peek(hash, key); e != nil {
			return e.read(dst)
		}
	}
	value, ts, ok, err := l.backend.Get(dst, key)
	return value, ts, ok, l.failed(err)
}

// Failure returns the first error of a read of the backend, nil if there was none. It
// stays, whatever the reader made of it: what was computed since may rest on what was
// not read.
func (l *Layered) Failure() error { return l.failure }

// failed keeps the first error of the backend.
func (l *Layered) failed(err error) error {
	if err != nil && l.failure == nil {
		l.failure = err
	}
	return err
}

// read answers a Get from an entry.
func (e *Entry) read(dst []byte) ([]byte, int64, bool, error) {
	if e.Deleted {
		return dst, 0, false, nil
	}
	return append(dst, e.Value...), e.Timestamp, true, nil
}

// Put writes to the uncommitted layer; ts is in ms. A nil value deletes. Key
// and value are copied, headers must not be changed afterwards. The returned
// entry belongs to the layer; it is valid until the next Rollback or Prepare.
func (l *Layered) Put(key, value []byte, ts int64, headers []Header) (*Entry, error) {
	if value == nil {
		return l.Delete(key, ts, headers)
	}
	if err := l.writable(key); err != nil {
		return nil, err
	}
	if size := len(key) + len(value); l.MaxRecord > 0 && size > l.MaxRecord {
		return nil, fmt.Errorf("%w: %s: %d bytes, at most %d", ErrRecordTooLarge, l.name, size, l.MaxRecord)
	}
	if l.ttl != nil {
		return l.ttl.put(l, l.uncommitted, key, value, ts, headers)
	}
	return l.uncommitted.Put(key, value, ts, headers), nil
}

// Delete leaves a tombstone in the uncommitted layer. See Put.
func (l *Layered) Delete(key []byte, ts int64, headers []Header) (*Entry, error) {
	if err := l.writable(key); err != nil {
		return nil, err
	}
	if l.ttl != nil {
		return l.ttl.delete(l, l.uncommitted, key, ts, headers)
	}
	return l.uncommitted.Delete(key, ts, headers), nil
}

// usable refuses nil keys, and everything after Close.
func (l *Layered) usable(key []byte) error {
	switch {
	case l.closed:
		return fmt.Errorf("%w: %s", ErrClosed, l.name)
	case key == nil:
		return fmt.Errorf("%w: %s", ErrNilKey, l.name)
	}
	return nil
}

func (l *Layered) writable(key []byte) error {
	if len(key) > MaxKeySize {
		return fmt.Errorf("%w: %s: %d bytes, at most %d", ErrKeyTooLarge, l.name, len(key), MaxKeySize)
	}
	return l.usable(key)
}

// Mark begins a step of the uncommitted layer.
func (l *Layered) Mark() { l.uncommitted.Mark() }

// Rollback undoes every write to the uncommitted layer since the last Mark, or
// since Prepare if that is later.
func (l *Layered) Rollback() {
	l.uncommitted.Rollback()
	l.forgetDerived()
}

// Close drops all layers and closes the backend; what was not flushed comes
// back from the changelog. No flush may be in flight. A second Close is a no-op.
func (l *Layered) Close() error {
	if l.closed {
		return nil
	}
	l.closed = true
	l.uncommitted, l.committed = NewWriteSet(), NewWriteSet()
	l.committing, l.flushing, l.spares = nil, nil, nil
	return l.backend.Close()
}
