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
	exists, err := t.exists(r.Key)
	if err != nil {
		return t.failed(err)
	}
	if !r.NullValue {
		return t.put(r.Key, r.Value, r.Timestamp, r.Headers, exists)
	}
	if !exists {
		return nil
	}
	return t.remove(r.Key, r.Timestamp, r.Headers)
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

// ChangesWithOld returns the changes of a table's rows with the values before and after. Between commits, changes of a row
// are one change, from the value before the first to the one after the last.
func ChangesWithOld[K, V any](t KTable[K, V]) Stream[K, processor.Change[V]] {
	t.n.keepOld = true
	return Stream[K, processor.Change[V]](t)
}
