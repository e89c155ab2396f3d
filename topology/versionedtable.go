package topology

import (
	"fmt"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
)

// VersionedTable reads a topic as a table that remembers earlier values of its rows: each record is the value of its key's
// row from its timestamp until the next one, whatever the order in which they come. Records that are older than the store's
// history are dropped. Each update is forwarded at once.
//
// JoinTable joins a record with the row as it was at the record's time. Tables made of this one by JoinTables, JoinForeign
// and GroupTableBy follow the latest values, and do not see records out of order; FilterTable, MapTableValues and
// TransformTable pass them on, marked as Outdated.
func VersionedTable[K, V any](b *Builder, t Topic[K, V], s *store.Versioned[K, V], opts ...TableOption) KTable[K, V] {
	n := b.child("table", settings{name: tableOptions(opts).name}, read(b, t, settings{}))
	return versioned(b, n, s)
}

// ToVersionedTable reads a stream as a table, as VersionedTable reads a topic. The stream must be partitioned by its keys.
func ToVersionedTable[K, V any](s Stream[K, V], rows *store.Versioned[K, V], opts ...TableOption) KTable[K, V] {
	n := s.b.child("table", settings{name: tableOptions(opts).name}, s.n)
	n.copartitioned(s.b, s.n)
	return versioned(s.b, n, rows)
}

func versioned[K, V any](b *Builder, n *node, s *store.Versioned[K, V]) KTable[K, V] {
	if s != nil {
		n.need(b, s.KeySerde() != nil, fmt.Sprintf("the key serde of store %q", s.Name()))
		n.need(b, s.ValueSerde() != nil, fmt.Sprintf("the value serde of store %q", s.Name()))
	}
	b.keep(n, s)
	n.table.versioned = true
	n.table.view = versionsView(n, s)
	n.Bind = func(b *processor.Binding) (any, error) {
		rows, err := s.View(b.Task)
		if err != nil {
			return nil, err
		}
		t := &versions[K, V]{
			task: b.Task, node: n.Name, rows: rows, keepOld: n.table.keepOld, null: nullTest[V](),
			next: processor.FanOut[K, processor.Change[V]](b),
		}
		return processor.Emit[K, V](t.process), nil
	}
	return KTable[K, V]{b, n}
}

func versionsView[K, V any](n *node, s *store.Versioned[K, V]) *view[K, V] {
	v := &view[K, V]{stores: []store.Declaration{s}, tables: []*node{n}}
	if s != nil {
		v.history = s.History()
	}
	v.asOf = func(task *processor.Task) (lookupAt[K, V], error) {
		rows, err := s.View(task)
		return func(k K, at int64) (row[V], error) {
			found, ok, err := rows.GetAsOf(k, at)
			return row[V]{found.Value, found.From, ok}, err
		}, err
	}
	v.bind = func(task *processor.Task, _ bool) (lookup[K, V], error) {
		rows, err := s.View(task)
		return func(k K) (row[V], error) {
			found, ok, err := rows.Get(k)
			return row[V]{found.Value, found.From, ok}, err
		}, err
	}
	return v
}

// versions is a versioned table in one task.
type versions[K, V any] struct {
	task    *processor.Task
	node    string
	rows    *store.VersionedView[K, V]
	keepOld bool
	null    func(V) bool
	next    processor.Emit[K, processor.Change[V]]
}

func (t *versions[K, V]) process(r processor.Record[K, V]) error {
	if r.NullKey {
		return t.task.NullKey(t.node)
	}
	c, err := t.latest(r.Key)
	if err != nil {
		return processor.Failed(t.node, processor.KindProcess, err)
	}
	var to int64
	var stored bool
	if c.HasNew = !r.NullValue && (t.null == nil || !t.null(r.Value)); c.HasNew {
		c.New = r.Value
		to, stored, err = t.rows.PutRecord(r.Key, r.Value, r.Timestamp, r.Headers)
	} else {
		to, stored, err = t.rows.DeleteRecord(r.Key, r.Timestamp, r.Headers)
	}
	if err != nil {
		return processor.Failed(t.node, processor.KindProcess, err)
	}
	if !stored {
		return t.late(r.Timestamp)
	}
	c.Outdated = to != store.NoEnd
	return t.next(processor.Record[K, processor.Change[V]]{Key: r.Key, Value: c, Timestamp: r.Timestamp, Headers: r.Headers})
}

// late reports a record from before the history.
func (t *versions[K, V]) late(ts int64) error {
	now, err := t.rows.Time()
	if err == nil {
		t.task.Late(processor.Late{Node: t.node, Timestamp: ts, Start: ts, End: ts, StreamTime: now})
	}
	return processor.Failed(t.node, processor.KindProcess, err)
}

// latest begins a change with the value before, if it is wanted.
func (t *versions[K, V]) latest(k K) (c processor.Change[V], err error) {
	if !t.keepOld {
		return c, nil
	}
	old, exists, err := t.rows.Get(k)
	c.Old, c.HasOld = old.Value, exists
	return c, err
}
