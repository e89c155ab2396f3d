package topology

import (
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
)

// Table reads a topic as a table: each record is the new value of its key's row, a tombstone deletes the row. Records
// without a key are skipped. Rows are written in the order of the topic, whatever their timestamps. An option that names
// the node names the table; the source keeps the topic's name.
func Table[K, V any](b *Builder, t Topic[K, V], s *store.KeyValue[K, V], opts ...TableOption) KTable[K, V] {
	set := tableOptions(opts)
	n := b.child("table", settings{name: set.name}, read(b, t, settings{}))
	return upserted(b, n, s, set)
}

// ToTable reads a stream as a table, as Table reads a topic. The stream must be partitioned by its keys.
func ToTable[K, V any](s Stream[K, V], rows *store.KeyValue[K, V], opts ...TableOption) KTable[K, V] {
	set := tableOptions(opts)
	n := s.b.child("table", settings{name: set.name}, s.n)
	n.copartitioned(s.b, s.n)
	return upserted(s.b, n, rows, set)
}

// upserted completes a node that writes what comes to it as a table.
func upserted[K, V any](b *Builder, n *node, s *store.KeyValue[K, V], set settings) KTable[K, V] {
	maintain(b, n, s)
	n.Bind = func(b *processor.Binding) (any, error) {
		t, err := bindRows(b, s, n, set.everyUpdate)
		if err != nil {
			return nil, err
		}
		return processor.Emit[K, V](t.upsert), nil
	}
	return KTable[K, V]{b, n}
}

// upsert is the node of Table.
func (t *rows[K, V]) upsert(r processor.Record[K, V]) error {
	if r.NullKey {
		return t.task.NullKey(t.node)
	}
	return t.set(r.Key, r.Value, !r.NullValue, r.Timestamp, r.Headers)
}

// Changes returns the new values of a table's rows as they change; the deletion of a row is a tombstone.
func Changes[K, V any](t KTable[K, V], opts ...Option) Stream[K, V] {
	n := t.b.child("changes", options(opts), t.n)
	n.Bind = func(b *processor.Binding) (any, error) {
		next := processor.FanOut[K, V](b)
		return processor.Emit[K, processor.Change[V]](func(r processor.Record[K, processor.Change[V]]) error {
			return next(processor.Record[K, V]{
				Key: r.Key, Value: r.Value.New, NullValue: !r.Value.HasNew, Timestamp: r.Timestamp, Headers: r.Headers,
			})
		}), nil
	}
	return Stream[K, V]{t.b, n}
}

// ChangesBy is Changes with other keys. Unlike SelectKey, the function is also called for the deletion of a row: exists is
// false then, and value the zero value.
func ChangesBy[K, V, K2 any](t KTable[K, V], key func(key K, value V, exists bool) K2, opts ...Option) Stream[K2, V] {
	n := t.b.child("changesby", options(opts), t.n)
	n.need(t.b, key != nil, "the function")
	n.rekeyed = true
	n.Bind = func(b *processor.Binding) (any, error) {
		next := processor.FanOut[K2, V](b)
		return processor.Emit[K, processor.Change[V]](func(r processor.Record[K, processor.Change[V]]) error {
			c := r.Value
			return next(processor.Record[K2, V]{
				Key: key(r.Key, c.New, c.HasNew), Value: c.New, NullValue: !c.HasNew, Timestamp: r.Timestamp, Headers: r.Headers,
			})
		}), nil
	}
	return Stream[K2, V]{t.b, n}
}

// ChangesWithOld returns the changes of a table's rows with the values before and after. Between commits, changes of a row
// are one change, from the value before the first to the one after the last. A table that forwards each update at once
// also forwards the deletion of a row that it has not: a change with neither value.
func ChangesWithOld[K, V any](t KTable[K, V]) Stream[K, processor.Change[V]] {
	t.n.table.needOld(&node{at: caller(), Node: processor.Node{Name: t.n.Name}})
	return Stream[K, processor.Change[V]](t)
}
