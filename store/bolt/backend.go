package bolt

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/millrace-streams/millrace/store"
)

// Backend is one open file.
//
// Reads share one read transaction, which saves a third of a get. It never
// outlasts an Apply: a transaction that stays open would keep old pages from
// being used again, and the file from growing. While an Apply runs each read
// has a transaction of its own.
type Backend struct {
	path, name string
	opt        Options
	h          handle

	writing sync.Mutex // held by Apply and Close

	mu       sync.Mutex // guards what follows
	shared   *reader    // nil: none open
	applying bool
	closed   bool
	failed   error // set once the file has turned out damaged
	stuck    bool  // written under writing: a write transaction could not be ended: bbolt cannot close
	state    state // likewise
	key      []byte
}

var _ store.Backend = (*Backend)(nil)

// reader is a read transaction with a cursor to be used again.
type reader struct {
	tx     *bbolt.Tx
	cursor *bbolt.Cursor
}

// Get implements store.Backend.
func (b *Backend) Get(dst, key []byte) (value []byte, ts int64, ok bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	value = dst // also after a panic
	defer b.caught(&err, debug.SetPanicOnFault(true))
	r, err := b.acquire()
	if err != nil {
		return dst, 0, false, err
	}
	defer b.release(r)
	b.key = appendKey(b.key[:0], key)
	k, v := r.cursor.Seek(b.key)
	if string(k) != string(b.key) {
		return dst, 0, false, nil
	}
	if ts, v, _, err = unseal(k, v); err != nil {
		return dst, 0, false, b.fail(err)
	}
	return append(dst, v...), ts, true, nil
}

// Scan implements store.Backend.
func (b *Backend) Scan(dst []store.Pair, r store.Range, limit int) (pairs []store.Pair, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	pairs = dst
	defer b.caught(&err, debug.SetPanicOnFault(true))
	rd, err := b.acquire()
	if err != nil {
		return dst, err
	}
	defer b.release(rd)
	w := newWalk(rd.cursor, r)
	end := len(dst) + limit
	for k, v := w.first(); w.inside(k) && len(pairs) < end; k, v = w.next() {
		ts, v, _, err := unseal(k, v)
		if err != nil {
			return dst, b.fail(err)
		}
		pairs = store.AppendPair(pairs, k[1:], v, ts)
	}
	return pairs, nil
}

// acquire returns a reader; mu is held until its release, when all that the
// reader showed of the file's memory is gone.
func (b *Backend) acquire() (*reader, error) {
	if err := b.usable(); err != nil {
		return nil, err
	}
	if b.shared != nil {
		return b.shared, nil
	}
	r, err := b.begin()
	if err == nil && !b.applying {
		b.shared = r
	}
	return r, err
}

func (b *Backend) release(r *reader) {
	if r != b.shared {
		_ = r.tx.Rollback()
	}
}

func (b *Backend) begin() (*reader, error) {
	tx, err := b.h.db.Begin(false)
	if err != nil {
		return nil, fmt.Errorf("bolt: %s: %w", b.path, err)
	}
	data := tx.Bucket(dataBucket)
	if data == nil {
		_ = tx.Rollback()
		return nil, b.fail(errNoBucket)
	}
	return &reader{tx: tx, cursor: data.Cursor()}, nil
}

// usable is called with mu held.
func (b *Backend) usable() error {
	if b.closed {
		return fmt.Errorf("bolt: %w: %s", store.ErrClosed, b.path)
	}
	return b.failed
}

// caught, deferred, makes a panic inside bbolt, or a fault of the memory it maps,
// an ErrCorrupt that stays; mu is held. The argument restores what
// debug.SetPanicOnFault was.
func (b *Backend) caught(err *error, panicOnFault bool) {
	debug.SetPanicOnFault(panicOnFault)
	if r := recover(); r != nil {
		*err = b.fail(fmt.Errorf("panic: %v", r))
	}
}

// caughtWrite is caught for a write transaction, whose error may be of damage as
// well; mu is not held.
func (b *Backend) caughtWrite(err *error, panicOnFault bool) {
	debug.SetPanicOnFault(panicOnFault)
	r := recover()
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case r != nil:
		*err = b.fail(fmt.Errorf("panic: %v", r))
	case errors.Is(*err, store.ErrCorrupt):
		b.failed = *err
	}
}

// fail notes that the file is damaged: from now on every call says so. mu is held.
func (b *Backend) fail(cause error) error {
	if b.failed == nil {
		b.failed = corrupt(b.path, cause)
	}
	return b.failed
}

// Offset implements store.Backend.
func (b *Backend) Offset() (int64, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(b.state.offset, 0), b.state.offset >= 0
}

// Close implements store.Backend. It waits for an Apply to end.
func (b *Backend) Close() error {
	b.writing.Lock()
	defer b.writing.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	if b.stuck {
		// The transaction holds bbolt's locks. The mapping leaks, and with it
		// the file's lock until the process ends.
		return b.h.file.Close()
	}
	b.endShared()
	if err := b.h.db.Close(); err != nil {
		return fmt.Errorf("bolt: close %s: %w", b.path, err)
	}
	return nil
}

// endShared closes the shared read transaction; mu is held.
func (b *Backend) endShared() {
	if b.shared != nil {
		_ = b.shared.tx.Rollback()
		b.shared = nil
	}
}

// walk is a range read through a cursor.
type walk struct {
	cursor   *bbolt.Cursor
	from, to []byte // as stored; to may be nil
	reverse  bool
}

func newWalk(c *bbolt.Cursor, r store.Range) *walk {
	w := &walk{cursor: c, reverse: r.Reverse, from: appendKey(nil, r.From)}
	if r.To != nil {
		w.to = appendKey(nil, r.To)
	}
	return w
}

func (w *walk) first() (k, v []byte) {
	if !w.reverse {
		return w.cursor.Seek(w.from)
	}
	if w.to != nil {
		if k, _ := w.cursor.Seek(w.to); k != nil {
			return w.cursor.Prev()
		}
	}
	return w.cursor.Last()
}

func (w *walk) next() (k, v []byte) {
	if w.reverse {
		return w.cursor.Prev()
	}
	return w.cursor.Next()
}

// inside tells whether the walk has not left the range at its far end.
func (w *walk) inside(k []byte) bool {
	switch {
	case k == nil:
		return false
	case w.reverse:
		return string(k) >= string(w.from)
	}
	return w.to == nil || string(k) < string(w.to)
}
