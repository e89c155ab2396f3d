package memory

import (
	"slices"
	"strings"

	"github.com/tidwall/btree"

	"github.com/millrace-streams/millrace/store"
)

// Scan implements store.Backend.
func (b *Backend) Scan(dst []store.Pair, r store.Range, limit int) ([]store.Pair, error) {
	b.ensureIndex()
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

// ensureIndex sorts the keys at the first scan; from then on writes keep order.
func (b *Backend) ensureIndex() {
	b.mu.RLock()
	done := b.index != nil || b.closed
	b.mu.RUnlock()
	if done {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.index != nil || b.closed {
		return
	}
	sorted := make([]*item, 0, len(b.items))
	for _, it := range b.items {
		sorted = append(sorted, it)
	}
	slices.SortFunc(sorted, func(a, b *item) int { return strings.Compare(a.key, b.key) })
	b.index = btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
	for _, it := range sorted {
		b.index.Load(it)
	}
}

func less(a, b *item) bool { return a.key < b.key }
