package store

import (
	"strings"

	"github.com/tidwall/btree"
)

// Ascend calls fn for the entries of the range in ascending order, or in
// descending order if the range is reversed, tombstones included, until fn
// returns false. fn may write to the set: every entry is looked up when it is
// reached.
func (w *WriteSet) Ascend(r Range, fn func(*Entry) bool) {
	c := cursor{set: w}
	var last []byte
	for c.start(r); c.entry != nil; {
		last = refill(last, c.entry.Key)
		if !fn(c.entry) {
			return
		}
		c.advance(r, last)
	}
}

func byKey(a, b *Entry) bool { return a.Key < b.Key }

// ordered builds the index at the first scan; from then on writes maintain it.
func (w *WriteSet) ordered() *btree.BTreeG[*Entry] {
	if w.index == nil {
		sorted := w.Sorted()
		w.index = btree.NewBTreeGOptions(byKey, btree.Options{NoLocks: true})
		for _, e := range sorted {
			w.index.Load(e)
		}
	}
	return w.index
}

// cursor is a position in the key order of a write set. It holds its place when
// the set changes below it.
type cursor struct {
	set     *WriteSet
	beside  bool   // a Reader's: it goes by the set's catalog
	entry   *Entry // nil: behind the last entry of the range
	version uint64 // of the set, when the position was found
	iter    btree.IterG[*Entry]
	pivot   Entry
}

// start goes to the first entry of the range.
func (c *cursor) start(r Range) {
	if r.Reverse {
		c.seek(r, r.To, true)
	} else {
		c.seek(r, r.From, false)
	}
}

// advance goes to the entry that follows the key last, if the cursor has
// reached it; else, and if the set has not changed, it stays.
func (c *cursor) advance(r Range, last []byte) {
	switch {
	case c.version != c.set.version:
		c.seek(r, last, true)
	case c.entry != nil && c.entry.Key == string(last):
		c.settle(r, c.next(r.Reverse))
	}
}

func (c *cursor) next(reverse bool) bool {
	if reverse {
		return c.iter.Prev()
	}
	return c.iter.Next()
}

// seek goes to the first entry in the range's direction from bound on, or after
// it; a nil bound is the end of the set where the range begins.
func (c *cursor) seek(r Range, bound []byte, after bool) {
	c.version, c.entry = c.set.version, nil
	if len(c.set.order) == 0 {
		return
	}
	if c.beside {
		c.iter.Init(c.set.catalog.tree, false)
	} else {
		c.iter.Init(c.set.ordered(), false)
	}
	if r.Reverse {
		c.settle(r, c.seekBack(bound))
	} else {
		c.settle(r, c.seekForward(bound, after))
	}
}

func (c *cursor) seekForward(bound []byte, after bool) bool {
	if bound == nil {
		return c.iter.First()
	}
	c.pivot.Key = viewString(bound)
	found := c.iter.Seek(&c.pivot)
	if found && after && c.iter.Item().Key == c.pivot.Key {
		found = c.iter.Next()
	}
	c.pivot.Key = ""
	return found
}

// seekBack always excludes the bound: ranges do, and so does going on.
func (c *cursor) seekBack(bound []byte) bool {
	if bound == nil {
		return c.iter.Last()
	}
	c.pivot.Key = viewString(bound)
	found := c.iter.Seek(&c.pivot)
	c.pivot.Key = ""
	if !found {
		// Everything is below the bound.
		return c.iter.Last()
	}
	return c.iter.Prev()
}

// settle takes the iterator's item as the position if it is inside the range.
func (c *cursor) settle(r Range, found bool) {
	c.entry = nil
	if !found {
		return
	}
	if e := c.iter.Item(); r.reaches(e.Key) {
		c.entry = e
	}
}

// reaches tells whether key is not yet beyond the range's far end.
func (r *Range) reaches(key string) bool {
	if r.Reverse {
		return r.From == nil || key >= string(r.From)
	}
	return r.To == nil || key < string(r.To)
}

// compare orders two keys in the range's direction.
func (r *Range) compare(a, b string) int {
	if r.Reverse {
		a, b = b, a
	}
	return strings.Compare(a, b)
}

// forget drops what the cursor points to; its buffers stay.
func (c *cursor) forget() {
	c.iter.Release()
	c.set, c.entry = nil, nil
}
