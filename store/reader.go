package store

import "github.com/tidwall/btree"

// Reader reads what is committed of a store beside the goroutine that works with
// it. It knows nothing of the store's layout: keys and values are those of its
// backend, see [Layout].
//
// No call may run together with those of the Layered that change the committed
// layers: Committed, BeginFlush, EndFlush, Load, RestorePut, Restored,
// ExpireRestored and Close. Whatever else the owner does meanwhile touches
// nothing that a Reader looks at. Gets may run together; Catalog and Scan run
// alone.
type Reader struct {
	layers *Layered
	below  BackendReader
	scan   scan
}

// Reader returns a reader of the store.
func (l *Layered) Reader() *Reader {
	r := &Reader{layers: l, below: l.backend}
	if b, ok := l.backend.(SharedBackend); ok {
		r.below = b.Beside()
	}
	r.scan.beside = true
	return r
}

// Get implements BackendReader.
func (r *Reader) Get(dst, key []byte) (value []byte, ts int64, ok bool, err error) {
	hash := hashOf(key)
	if e := r.layers.committed.peek(hash, key); e != nil {
		return e.read(dst)
	}
	if f := r.layers.flushing; f != nil {
		if e := f.peek(hash, key); e != nil {
			return e.read(dst)
		}
	}
	return r.below.Get(dst, key)
}

// RestoredTime is the stream time in ms that the records of the changelog have
// shown so far, -1 if none has. Rows with a TTL go by it and by the task's.
func (r *Reader) RestoredTime() int64 { return r.layers.restoredTo }

// Catalog prepares a Scan: it puts up to limit of the keys that were committed
// since the last one in order. A Scan needs one that has returned true since the
// committed layers have changed.
func (r *Reader) Catalog(limit int) (done bool) {
	limit -= r.layers.committed.catalog.add(r.layers.committed, limit)
	if f := r.layers.flushing; f != nil {
		limit -= f.catalog.add(f, limit)
	}
	return limit > 0
}

// Scan appends pairs of the range, in its order, to dst: up to limit of them,
// and as many as are found by looking at readerSteps keys. It returns what is
// left of the range; there is no more if it has reached the range's end. The
// pairs are copies, see AppendPair.
func (r *Reader) Scan(dst []Pair, within Range, limit int) (pairs []Pair, rest Range, more bool, err error) {
	s := &r.scan
	defer s.forget()
	s.r, s.n, s.live, s.started = within, 0, false, false
	s.add(r.layers.committed)
	s.add(r.layers.flushing)
	s.below.begin(r.below, within)
	s.below.limit = min(limit, maxChunk)
	end := len(dst) + limit
	for range readerSteps {
		pair, ok, more, err := s.step()
		if err != nil || !more {
			return dst, Range{}, false, err
		}
		if !ok {
			continue
		}
		if dst = AppendPair(dst, pair.Key, pair.Value, pair.Timestamp); len(dst) == end {
			break
		}
	}
	within.cut(refill(nil, s.last))
	return dst, within, true, nil
}

// readerSteps bounds how long a Scan keeps the owner waiting.
const readerSteps = 256

// catalog orders a committed set's entries for Readers. The set's own index is
// the worker's, who makes it in the middle of a step; the catalog is theirs. They
// bring it up to date from the order of first touch, which only grows while a set
// is committed, so it costs the worker nothing and can be done in pieces.
type catalog struct {
	tree *btree.BTreeG[*Entry]
	at   int // so many entries of the order are in
}

// add puts up to limit more entries in order, and returns how many.
func (c *catalog) add(w *WriteSet, limit int) int {
	if c.tree == nil {
		c.tree = btree.NewBTreeGOptions(byKey, btree.Options{NoLocks: true})
	}
	more := w.order[c.at:min(len(w.order), c.at+limit)]
	for _, e := range more {
		c.tree.Set(e)
	}
	c.at += len(more)
	return len(more)
}
