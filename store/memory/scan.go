package memory

import (
	"slices"
	"strings"

	"github.com/tidwall/btree"

	"github.com/millrace-streams/millrace/store"
)

// Scan implements store.Backend.
func (b *Backend) Scan(dst []store.Pair, r store.Range, limit int) ([]store.Pair, error) {
	b.orderKeys()
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.closed {
		return dst, errClosed
	}
	if limit <= 0 {
		return dst, nil
	}
	end := len(dst) + limit
	visit := func(it *item) bool {
		dst = store.AppendPair(dst, it.key, it.value, it.ts)
		return len(dst) < end
	}
	if r.Reverse {
		b.descend(r, visit)
	} else {
		b.ascend(r, visit)
	}
	return dst, nil
}

func (b *Backend) ascend(r store.Range, visit func(*item) bool) {
	to := string(r.To)
	b.index.Ascend(&item{key: string(r.From)}, func(it *item) bool {
		return (r.To == nil || it.key < to) && visit(it)
	})
}

func (b *Backend) descend(r store.Range, visit func(*item) bool) {
	from, to := string(r.From), string(r.To)
	below := func(it *item) bool {
		if r.To != nil && it.key == to {
			return true // the bound itself is not in the range
		}
		return it.key >= from && visit(it)
	}
	if r.To == nil {
		b.index.Reverse(below)
		return
	}
	b.index.Descend(&item{key: to}, below)
}

// orderKeys puts the keys in order at the first scan; from then on writes keep
// the order. Others get in between: a store may be large.
func (b *Backend) orderKeys() {
	if b.isOrdered() {
		return
	}
	b.ordering.Lock()
	defer b.ordering.Unlock()
	items := b.beginIndex()
	slices.SortFunc(items, func(a, b *item) int { return strings.Compare(a.key, b.key) })
	for len(items) > 0 {
		run := items[:min(len(items), applyRun)]
		items = items[len(run):]
		b.indexSome(run)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ordered = true
}

func (b *Backend) isOrdered() bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.ordered || b.closed
}

// beginIndex makes an empty index, to which writes add what is new, and returns
// the items that it lacks.
func (b *Backend) beginIndex() []*item {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ordered || b.closed {
		return nil
	}
	b.index = btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
	items := make([]*item, 0, len(b.items))
	for _, it := range b.items {
		items = append(items, it)
	}
	return items
}

// indexSome adds items that have not been removed meanwhile.
func (b *Backend) indexSome(items []*item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	for _, it := range items {
		if b.items[it.key] == it {
			b.index.Set(it)
		}
	}
}

func less(a, b *item) bool { return a.key < b.key }
