package store

import "encoding/binary"

// Layout tells how the entries of a store's layers and its backend stand for the
// records of its changelog. All kinds of stores are layouts over the same write
// sets and backends. This package alone makes layouts; nil is that of a plain
// key-value store, whose entries are the records.
//
// In the other layouts the first byte of a local key says what the entry is:
//
//	0  a row: one record of the changelog
//	1  a row's place in the time index: local, and empty
//	2  the store's own time: local
//
// Local entries are not mirrored. They are made again by a restore.
type Layout interface {
	// mirror returns the key and the value, nil for a tombstone, of the record
	// of an entry that is not local.
	mirror(e *Entry) (key, value []byte)

	// restore puts what a record of the changelog stands for into the committed
	// layer; a nil value is a tombstone.
	restore(l *Layered, key, value []byte, ts int64) error

	// expire removes up to limit rows that are too old, by writing to the set
	// to, which is the uncommitted layer or, while nothing is uncommitted in a
	// restore, the committed one.
	expire(l *Layered, to *WriteSet, limit int) (removed int, err error)

	// kind is what the local name of the store ends in.
	kind() string
}

const (
	rowPrefix   = 0x00
	indexPrefix = 0x01
	clockPrefix = 0x02
)

// LayersOf returns the layers of a declared store over a backend, which it owns
// from now on. The backend is to be opened under the store's LocalName.
func LayersOf(d Declaration, backend Backend) *Layered {
	l := NewLayered(d.Name(), backend)
	l.layout = d.Layout()
	l.ttl, _ = l.layout.(*ttlLayout)
	l.uncommitted.layout, l.committed.layout = l.layout, l.layout
	return l
}

// LocalName is the name of a store's local data, for an Opener. It tells layouts
// apart, so that a store that is declared as another kind than before begins
// afresh, from its changelog: "counts", "counts~window". No store's own name has
// a tilde.
func LocalName(d Declaration) string {
	if l := d.Layout(); l != nil {
		return d.Name() + "~" + l.kind()
	}
	return d.Name()
}

// Mirrored is one record for the changelog.
type Mirrored struct {
	// Key and Value are the write set's bytes; they are valid as long as it is
	// and must not be changed. A nil value is a tombstone.
	Key, Value []byte
	Timestamp  int64 // ms
	Headers    []Header
}

// Mirror calls fn for each record that the set has for the changelog, in their
// order there, until fn returns false.
func (w *WriteSet) Mirror(fn func(Mirrored) bool) {
	for _, e := range w.order {
		if e.Local {
			continue
		}
		if !fn(w.mirrored(e)) {
			return
		}
		if !e.echo {
			continue
		}
		if newest := newestVersion(w, e); newest != nil && newest.place < e.place && !fn(w.mirrored(newest)) {
			return
		}
	}
}

// Mirrors reports whether the changelog is told anything of the set: what it holds
// may all be local.
func (w *WriteSet) Mirrors() (any bool) {
	w.Mirror(func(Mirrored) bool {
		any = true
		return false
	})
	return any
}

// MirrorLen is the most records that Mirror may come to.
func (w *WriteSet) MirrorLen() int {
	if _, ok := w.layout.(*versionedLayout); ok {
		return 2 * len(w.order)
	}
	return len(w.order)
}

func (w *WriteSet) mirrored(e *Entry) Mirrored {
	m := Mirrored{Timestamp: e.Timestamp, Headers: e.Headers}
	if w.layout != nil {
		m.Key, m.Value = w.layout.mirror(e)
	} else {
		m.Key, m.Value = e.KeyBytes(), e.mirroredValue()
	}
	return m
}

func (e *Entry) mirroredValue() []byte {
	if e.Deleted {
		return nil
	}
	return nonNil(e.Value)
}

// Advance tells the stream time of the task, in ms: rows with a TTL go by it. It
// never goes back. Stores of other kinds go by what was put into them.
func (l *Layered) Advance(streamTime int64) { l.streamTime = max(l.streamTime, streamTime) }

// Expire removes up to limit rows that are beyond what the store retains, and
// are not seen any more, and returns how many it removed. If limit is not
// positive it is as many as is enough to keep up with what was put since the
// last commit. It costs next to nothing if there is nothing to remove.
//
// The writes are part of the uncommitted layer. What the topic's own retention
// removes from the changelog is removed locally only; rows with a TTL leave
// tombstones.
func (l *Layered) Expire(limit int) (removed int, err error) {
	if l.layout == nil || l.closed {
		return 0, nil
	}
	if limit <= 0 {
		limit = expireAtLeast + 2*l.uncommitted.Len()
	}
	return l.layout.expire(l, l.uncommitted, limit)
}

// expireAtLeast bounds how long a store takes to become free of what expired at
// once: many commits rather than one long one.
const expireAtLeast = 1024

// ExpireRestored removes all that the records put by RestorePut have shown to be
// too old, as far as the changelog need not know. Restored must follow.
func (l *Layered) ExpireRestored() error {
	if l.layout == nil || l.ttl != nil {
		return nil
	}
	for {
		n, err := l.layout.expire(l, l.committed, expireAtLeast)
		if err != nil || n < expireAtLeast {
			return err
		}
	}
}

// below tells whether a layer under the uncommitted one has the entry.
func (l *Layered) below(key []byte) (ok bool, err error) {
	if l.committing != nil {
		if e := l.committing.Get(key); e != nil {
			return !e.Deleted, nil
		}
	}
	l.old, _, ok, err = l.getCommitted(l.old[:0], key)
	return ok, err
}

func appendTime(dst []byte, t int64) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(t))
}

func timeAt(b []byte) int64 { return int64(binary.BigEndian.Uint64(b)) }
