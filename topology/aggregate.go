package topology

import (
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
)

// Count counts the records of each key. Tombstones are ignored, records without a key skipped. The row's timestamp is the
// highest of its records'.
func Count[K, V any](g Grouped[K, V], s *store.KeyValue[K, int64], opts ...TableOption) KTable[K, int64] {
	n := g.b.child("count", tableOptions(opts), g.n)
	n.blind = true
	return aggregateBy(g, n, s, opts, func(_ K, _ V, count int64, _ bool) int64 { return count + 1 })
}

// Reduce combines the records of each key: the first value is the row, and then fn makes the next row of the row and each
// further value. Nulls and timestamps are treated as by Count.
func Reduce[K, V any](g Grouped[K, V], fn func(row, value V) V, s *store.KeyValue[K, V], opts ...TableOption) KTable[K, V] {
	n := g.b.child("reduce", tableOptions(opts), g.n)
	n.need(g.b, fn != nil, "the function")
	return aggregateBy(g, n, s, opts, func(_ K, value, row V, exists bool) V {
		if !exists {
			return value
		}
		return fn(row, value)
	})
}

// Aggregate makes a row of another type of the records of each key: fn makes the next row of each record and the row, which
// is init's for the first. fn may change the row that it was given and return it. Nulls and timestamps are treated as by
// Count.
func Aggregate[K, V, A any](
	g Grouped[K, V], init func() A, fn func(key K, value V, row A) A, s *store.KeyValue[K, A], opts ...TableOption,
) KTable[K, A] {
	n := g.b.child("aggregate", tableOptions(opts), g.n)
	n.need(g.b, init != nil, "the initial value's function")
	n.need(g.b, fn != nil, "the function")
	return aggregateBy(g, n, s, opts, func(key K, value V, row A, exists bool) A {
		if !exists {
			row = init()
		}
		return fn(key, value, row)
	})
}

// aggregateBy completes an aggregating node. row is the zero value when the key has none.
func aggregateBy[K, V, A any](
	g Grouped[K, V], n *node, s *store.KeyValue[K, A], opts []TableOption, next func(key K, value V, row A, exists bool) A,
) KTable[K, A] {
	everyUpdate := tableOptions(opts).everyUpdate
	maintain(g.b, n, s)
	n.Bind = func(b *processor.Binding) (any, error) {
		t, err := bindRows(b, s, n, everyUpdate)
		if err != nil {
			return nil, err
		}
		return aggregating(t.node, t, next), nil
	}
	return KTable[K, A]{g.b, n}
}

// aggregating is the bound node that aggregates records into rows.
func aggregating[K, V, A any](node string, t *rows[K, A], next func(key K, value V, row A, exists bool) A) processor.Emit[K, V] {
	return func(r processor.Record[K, V]) error {
		if r.NullKey {
			return t.task.NullKey(node)
		}
		if r.NullValue {
			return nil
		}
		old, err := t.find(r.Key)
		if err != nil {
			return t.failed(err)
		}
		row := next(r.Key, r.Value, old.value, old.exists)
		return t.put(r.Key, row, max(r.Timestamp, old.timestamp), r.Headers, old.exists)
	}
}
