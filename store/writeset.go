package store

import (
	"slices"

	"github.com/tidwall/btree"
)

// WriteSet is the last write per key, in the order in which keys were first
// touched. Steps (Mark, Rollback) make groups of writes atomic. It is used by
// one goroutine.
type WriteSet struct {
	table  table
	order  []*Entry // first touch first
	bytes  int
	layout Layout // nil: entries are records

	// recent is the entry found by the latest Get, nil if it is none of the
	// set's; then absent is the key, unless it may have joined since. A read is
	// mostly followed by a write of the same key, which need not look again.
	recent *Entry
	absent absent

	// index orders the entries by key. It is nil until the first scan.
	index *btree.BTreeG[*Entry]
	// version changes whenever an entry joins or leaves, so that cursors know
	// when their position in the index is stale.
	version uint64
	lastLen int    // keys before the last reset
	warmth  uint64 // see warmNext

	catalog catalog // the readers' index
	undoLog
	recycler
}

// NewWriteSet returns an empty set.
func NewWriteSet() *WriteSet {
	return &WriteSet{undoLog: undoLog{step: 1}}
}

// Len is the number of keys, tombstones included.
func (w *WriteSet) Len() int { return len(w.order) }

// Bytes is roughly the memory the set holds: keys, values, headers and a fixed
// overhead per entry.
func (w *WriteSet) Bytes() int { return w.bytes }

// Get returns the entry of the key, which may be a tombstone, or nil. The entry
// is the set's own: only Aux may be changed.
func (w *WriteSet) Get(key []byte) *Entry { return w.get(hashOf(key), key) }

// get is Get of a key whose hash is known.
func (w *WriteSet) get(hash uint32, key []byte) *Entry {
	w.recent = w.peek(hash, key)
	if w.recent == nil {
		w.absent.note(hash, key)
	}
	return w.recent
}

// peek is get for readers on other goroutines.
func (w *WriteSet) peek(hash uint32, key []byte) *Entry { return w.table.find(hash, key) }

// Put sets the key's value, timestamp in ms and headers, and returns the entry.
// Key and value are copied; headers are kept as they are and must not be
// changed afterwards. A nil value is stored as an empty one.
func (w *WriteSet) Put(key, value []byte, ts int64, headers []Header) *Entry {
	e := w.touch(key)
	e.Value = e.Value[:0] // by itself, so that only the length is written, unless it grows
	e.Value = append(e.Value, value...)
	e.setMeta(ts, headers, false)
	w.bytes += e.size()
	return e
}

// Delete leaves a tombstone for the key, whether or not it was there, and
// returns it. Arguments are treated as by Put.
func (w *WriteSet) Delete(key []byte, ts int64, headers []Header) *Entry {
	e := w.touch(key)
	e.Value = e.Value[:0]
	e.setMeta(ts, headers, true)
	w.bytes += e.size()
	return e
}

// putLocal is Put of an entry that is not mirrored.
func (w *WriteSet) putLocal(key, value []byte) {
	w.Put(key, value, 0, nil).Local = true
}

// deleteLocal is Delete of an entry, mirrored or not, that leaves the changelog
// as it is. What the set was yet to mirror of it is not.
func (w *WriteSet) deleteLocal(key []byte) {
	w.Delete(key, 0, nil).Local = true
}

// touch returns the key's entry, ready to be overwritten: its size is no longer
// part of bytes, and what it held before the step is saved.
func (w *WriteSet) touch(key []byte) *Entry {
	e, hash := w.seek(key)
	if e != nil {
		w.bytes -= e.size()
		if e.step != w.step {
			w.save(e)
		}
		return e
	}
	e = w.take()
	e.setKey(key)
	e.hash = hash
	e.step = w.step
	w.insert(e)
	return e
}

// seek returns the key's entry, nil if there is none, and the key's hash.
func (w *WriteSet) seek(key []byte) (*Entry, uint32) {
	if e := w.recent; e != nil && e.Key == string(key) {
		return e, e.hash
	}
	if hash, ok := w.absent.is(key); ok {
		return nil, hash
	}
	hash := hashOf(key)
	return w.peek(hash, key), hash
}

func (w *WriteSet) insert(e *Entry) {
	w.absent.known = false
	e.place = int32(len(w.order))
	w.order = append(w.order, e)
	w.table.insert(e)
	w.version++
	if w.index != nil {
		w.index.Set(e)
	}
}

// absent is a key that a set was found not to have.
type absent struct {
	known bool
	hash  uint32
	size  uint8
	key   [2 * inlineSize]byte
}

// note remembers a key, unless it is long.
func (a *absent) note(hash uint32, key []byte) {
	if a.known = len(key) <= len(a.key); a.known {
		a.hash, a.size = hash, uint8(copy(a.key[:], key))
	}
}

// is reports whether a key is the one, and if so, its hash.
func (a *absent) is(key []byte) (hash uint32, ok bool) {
	return a.hash, a.known && string(a.key[:a.size]) == string(key)
}

// Entries returns the entries in order of first touch, which is the order of
// the changelog; but see Mirror for its records. The slice and the entries are owned by the set.
func (w *WriteSet) Entries() []*Entry { return w.order }

// Sorted returns the entries in ascending order of their keys. The slice is the
// caller's, the entries are the set's.
func (w *WriteSet) Sorted() []*Entry {
	if w.index != nil {
		return w.index.Items()
	}
	sorted := slices.Clone(w.order)
	sortEntries(sorted)
	return sorted
}

// batch returns the entries in a slice of its own, sorted if that costs nothing.
func (w *WriteSet) batch() []*Entry {
	if w.index != nil {
		return w.index.Items()
	}
	return slices.Clone(w.order)
}

// Absorb takes over all entries of newer; where both have a key, newer's wins.
// Keys new to the set join its order at the end. It begins a new step, and
// newer, its entries included, must not be used again.
func (w *WriteSet) Absorb(newer *WriteSet) {
	if len(w.order) == 0 {
		version := max(w.version, newer.version) + 1
		*w, *newer = *newer, *w
		w.version = version
	} else {
		for i, e := range newer.order {
			if i%warmKeys == 0 {
				w.warmNext(newer.order[i:])
			}
			if !w.adopt(e) {
				newer.release(e)
			}
		}
	}
	newer.reset()
	w.Mark()
}

// adopt makes e the newest write of its key. It reports whether e itself is now
// part of the set; otherwise its content was copied.
func (w *WriteSet) adopt(e *Entry) bool {
	old := w.peek(e.hash, e.KeyBytes())
	if old == nil {
		e.step = 0 // of no step of this set
		w.insert(e)
		w.bytes += e.size()
		return true
	}
	w.bytes -= old.size()
	old.overwrite(e)
	w.bytes += old.size()
	return false
}

// overwrite gives e the content of newer, which keeps no claim on it.
func (e *Entry) overwrite(newer *Entry) {
	e.Timestamp, e.Headers = newer.Timestamp, newer.Headers
	e.Deleted, e.Local, e.echo, e.Aux = newer.Deleted, newer.Local, newer.echo, newer.Aux
	// A value that may lie inside newer has to be copied. A longer one changes
	// hands if it does not fit.
	if n := len(newer.Value); n <= inlineSize || n <= cap(e.Value) {
		e.Value = append(e.Value[:0], newer.Value...)
		return
	}
	e.Value, newer.Value = newer.Value, nil
}

// reset empties the set for another life. Entries that were moved elsewhere are
// forgotten, entries that were released are used again.
func (w *WriteSet) reset() {
	w.lastLen = len(w.order)
	w.table.reset()
	clear(w.order)
	w.order = w.order[:0]
	w.bytes = 0
	w.recent = nil
	w.index = nil
	w.catalog = catalog{}
	w.version++
	w.Mark()
}

// Recycle empties a set of whose entries nobody holds any, to use their memory
// again. It begins a new step.
func (w *WriteSet) Recycle() {
	for _, e := range w.order {
		w.release(e)
	}
	w.reset()
}
