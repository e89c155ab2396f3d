package store

import "iter"

// Range selects keys by their bytes. A nil bound is open; an empty non-nil To
// selects nothing.
type Range struct {
	From    []byte // inclusive
	To      []byte // exclusive
	Reverse bool   // descending: from just below To down to From
}

// Pair is one live key of a scan.
type Pair struct {
	Key, Value []byte // never nil
	Timestamp  int64  // ms
}

// Batch is what one flush carries to a backend.
type Batch struct {
	// Entries hold each key once, tombstones included. They ascend by key after
	// Sort, which Apply is to call if it needs the order: sorting is work for
	// the flusher's goroutine, not for the worker's. The slice is the batch's
	// own; the entries are shared with the flushing layer, so a backend must
	// neither change them nor keep them beyond Apply.
	Entries []*Entry
	// Offset is the changelog offset, exclusive, that the backend has reached
	// when the batch is applied. If negative, the backend's stays as it is.
	Offset int64
}

// BackendReader is the part of a backend that reads. Any method may return
// ErrClosed after the backend's Close, or ErrCorrupt.
type BackendReader interface {
	// Get appends the key's value to dst and returns it with its timestamp in
	// ms. If the key is absent, ok is false and value is dst. The value is
	// never part of the backend's own memory.
	Get(dst, key []byte) (value []byte, ts int64, ok bool, err error)

	// Scan appends up to limit pairs of the range, in its order, and returns
	// dst. Fewer than limit mean the range has no more; to go on after limit
	// pairs, call again with the range cut at the last key. Pairs are copies
	// that belong to the caller; buffers of pairs between dst's length and
	// capacity are used again (see AppendPair).
	Scan(dst []Pair, r Range, limit int) ([]Pair, error)
}

// Backend holds one store of one partition below the write sets.
//
// Get and Scan are called by the worker and, now and then, by queries, Apply by
// a goroutine of the flusher, at the same time: while an Apply runs, readers may
// see each of its keys as before or as after. Any method may return ErrClosed
// after Close, or ErrCorrupt, which stays: every later call returns it too.
type Backend interface {
	BackendReader

	// Apply makes all entries and the offset durable in one atomic step: after
	// a crash the backend holds all of the batch or nothing of it.
	Apply(b Batch) error

	// Load is an Apply of what a restore has read, for large amounts: a nil Value
	// deletes. If the opener is durable, rows ascend by key and hold each key once,
	// else they come in any order and the last one of a key wins. They may be gone
	// through more than once, and are valid while yield runs. Nobody reads
	// meanwhile.
	//
	// A backend that has no offset yet may do it in several steps. If it then
	// ends early, by an error or a crash, the backend is as good as empty, without
	// an offset, until a Load succeeds.
	Load(rows iter.Seq[Pair], offset int64) error

	// Offset is the changelog offset, exclusive, of the last batch applied. It
	// is false if the backend never had one; 0 is a valid offset.
	Offset() (int64, bool)

	// Close frees what the backend holds. A second Close is a no-op.
	Close() error
}

// SharedBackend is a backend that others can read without holding up the
// worker's reads.
type SharedBackend interface {
	Backend
	// Beside returns a reader of the backend for other goroutines than the
	// worker's; it is safe for any number of them.
	Beside() BackendReader
}

// Opener makes backends; which one an application uses is configuration. The
// name is the store's, dir is a folder of the task's own that outlives the
// process. An opener is safe for concurrent use.
type Opener interface {
	// Open opens the backend, with the data it had when last closed or killed
	// if it is durable. Errors: ErrLocked, ErrCorrupt, or the system's.
	Open(dir, name string) (Backend, error)

	// Durable tells whether data outlives the process. If not, a flush is
	// cheap and every start restores from the changelog.
	Durable() bool

	// Remove deletes the data of a store that is not open; there may be none.
	// Errors: ErrLocked, or the system's.
	Remove(dir, name string) error

	// SetAside moves the data of a store that is not open out of the way, so
	// that Open begins afresh, and returns where it is now, or "" if there was
	// none. What was set aside before is replaced.
	SetAside(dir, name string) (string, error)
}

// AppendPair appends a copy of a pair, for use by backends in Scan. It writes
// into the buffers of the pair that follows dst's end if there is one.
func AppendPair[K string | []byte](dst []Pair, key K, value []byte, ts int64) []Pair {
	if len(dst) < cap(dst) {
		dst = dst[:len(dst)+1]
	} else {
		dst = append(dst, Pair{})
	}
	p := &dst[len(dst)-1]
	p.Key = refill(p.Key, key)
	p.Value = refill(p.Value, value)
	p.Timestamp = ts
	return dst
}

// refill copies b over buf, or into a new buffer; the result is never nil.
func refill[B string | []byte](buf []byte, b B) []byte {
	if buf == nil {
		buf = make([]byte, 0, len(b))
	}
	return append(buf[:0], b...)
}
