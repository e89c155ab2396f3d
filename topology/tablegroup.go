package topology

import (
	"bytes"
	"fmt"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
)

// GroupedTable is a handle on the changes of a table's rows, each in the task of the group that the row is in. It comes from
// GroupTableBy and serves any number of aggregations.
type GroupedTable[K, V any] struct {
	b *Builder
	n *node
}

// GroupTableBy puts each row of a table into a group: fn returns the group's key, and what of the row the group gets. A
// change goes through the repartition topic to the group that the row leaves and to the one that it enters, or as one
// record if they are one. A nil pointer or nil byte slice for either result puts the row into no group; where the types
// have no nil, FilterTable before it does.
func GroupTableBy[K, V, K2, V2 any](
	t KTable[K, V], r Repartition[K2, V2], fn func(key K, value V) (K2, V2), opts ...Option,
) GroupedTable[K2, V2] {
	n := t.b.child("groupby", options(opts), t.n)
	n.need(t.b, fn != nil, "the function")
	n.need(t.b, r.values != nil, "the value serde of the repartition topic")
	t.n.table.needOld(n)
	changes := Repartition[K2, processor.Change[V2]]{name: r.name, keys: r.keys, values: changed[V2]{r.values}}
	n.Bind = func(b *processor.Binding) (any, error) {
		o, err := newOutlet(b, changes.keys, changes.values)
		if err != nil {
			return nil, err
		}
		g := &grouper[K, V, K2, V2]{fn: fn, keys: r.keys, out: o, nullKey: nullTest[K2](), nullValue: nullTest[V2]()}
		return processor.Emit[K, processor.Change[V]](g.process), nil
	}
	return GroupedTable[K2, V2]{t.b, cut(t.b, n, changes)}
}

// grouper turns changes of rows into changes of groups.
type grouper[K, V, K2, V2 any] struct {
	fn            func(K, V) (K2, V2)
	keys          serde.Serde[K2]
	out           *outlet[K2, processor.Change[V2]]
	nullKey       func(K2) bool
	nullValue     func(V2) bool
	before, after []byte
}

func (g *grouper[K, V, K2, V2]) process(r processor.Record[K, processor.Change[V]]) error {
	c := r.Value
	if c.Outdated {
		return nil
	}
	oldKey, oldValue, leaves := g.group(r.Key, c.Old, c.HasOld)
	newKey, newValue, enters := g.group(r.Key, c.New, c.HasNew)
	if leaves && enters {
		same, err := g.same(oldKey, newKey)
		if err != nil {
			return processor.Failed(g.out.node, processor.KindProcess, fmt.Errorf("encode key: %w", err))
		}
		if same {
			return g.send(r, newKey, processor.Change[V2]{Old: oldValue, New: newValue, HasOld: true, HasNew: true})
		}
	}
	if leaves {
		if err := g.send(r, oldKey, processor.Change[V2]{Old: oldValue, HasOld: true}); err != nil {
			return err
		}
	}
	if enters {
		return g.send(r, newKey, processor.Change[V2]{New: newValue, HasNew: true})
	}
	return nil
}

func (g *grouper[K, V, K2, V2]) group(k K, v V, exists bool) (key K2, value V2, ok bool) {
	if !exists {
		return key, value, false
	}
	key, value = g.fn(k, v)
	ok = (g.nullKey == nil || !g.nullKey(key)) && (g.nullValue == nil || !g.nullValue(value))
	return key, value, ok
}

func (g *grouper[K, V, K2, V2]) same(a, b K2) (same bool, err error) {
	if g.before, err = appendTo(g.keys, g.before, a); err != nil {
		return false, err
	}
	g.after, err = appendTo(g.keys, g.after, b)
	return bytes.Equal(g.before, g.after), err
}

func (g *grouper[K, V, K2, V2]) send(r processor.Record[K, processor.Change[V]], key K2, c processor.Change[V2]) error {
	return g.out.send(processor.Record[K2, processor.Change[V2]]{Key: key, Value: c, Timestamp: r.Timestamp, Headers: own(r.Headers)})
}

// CountTable counts the rows of each group. A group that has had rows stays, with a count of 0. Its time is the highest of
// the changes' since it was made.
func CountTable[K, V any](g GroupedTable[K, V], s *store.KeyValue[K, int64], opts ...TableOption) KTable[K, int64] {
	n := g.b.child("count", tableOptions(opts), g.n)
	a := tableAggregate[K, V, int64]{
		first:  func(K, V) int64 { return 1 },
		add:    func(_ K, _ V, count int64) int64 { return count + 1 },
		remove: func(_ K, _ V, count int64) int64 { return count - 1 },
	}
	return a.declare(g, n, s, opts)
}

// ReduceTable combines the values of each group. When a row changes, subtractor first takes its old value out of the group's
// row, then adder brings in the new one; the first value of a group is its row. A subtractor that returns a nil pointer or
// nil byte slice deletes the group's row. Times are treated as by CountTable.
func ReduceTable[K, V any](
	g GroupedTable[K, V], adder, subtractor func(row, value V) V, s *store.KeyValue[K, V], opts ...TableOption,
) KTable[K, V] {
	n := g.b.child("reduce", tableOptions(opts), g.n)
	n.need(g.b, adder != nil, "the adder")
	n.need(g.b, subtractor != nil, "the subtractor")
	a := tableAggregate[K, V, V]{
		first:  func(_ K, v V) V { return v },
		add:    func(_ K, v V, row V) V { return adder(row, v) },
		remove: func(_ K, v V, row V) V { return subtractor(row, v) },
	}
	return a.declare(g, n, s, opts)
}

// AggregateTable makes a row of another type of the values of each group. It is ReduceTable with init's value as the row
// before the first value. The functions may change the row that they were given and return it.
func AggregateTable[K, V, A any](
	g GroupedTable[K, V], init func() A, adder, subtractor func(key K, value V, row A) A, s *store.KeyValue[K, A], opts ...TableOption,
) KTable[K, A] {
	n := g.b.child("aggregate", tableOptions(opts), g.n)
	n.need(g.b, init != nil, "the initial value's function")
	n.need(g.b, adder != nil, "the adder")
	n.need(g.b, subtractor != nil, "the subtractor")
	a := tableAggregate[K, V, A]{
		first: func(k K, v V) A { return adder(k, v, init()) },
		add:   adder, remove: subtractor,
	}
	return a.declare(g, n, s, opts)
}

// tableAggregate says how the row of a group follows.
type tableAggregate[K, V, A any] struct {
	first  func(K, V) A // the row when there is none
	add    func(K, V, A) A
	remove func(K, V, A) A
}

func (a tableAggregate[K, V, A]) declare(g GroupedTable[K, V], n *node, s *store.KeyValue[K, A], opts []TableOption) KTable[K, A] {
	everyUpdate := tableOptions(opts).everyUpdate
	maintain(g.b, n, s)
	n.Bind = func(b *processor.Binding) (any, error) {
		t, err := bindRows(b, s, n, everyUpdate)
		if err != nil {
			return nil, err
		}
		return processor.Emit[K, processor.Change[V]](func(r processor.Record[K, processor.Change[V]]) error {
			return a.apply(t, r)
		}), nil
	}
	return KTable[K, A]{g.b, n}
}

func (a tableAggregate[K, V, A]) apply(t *rows[K, A], r processor.Record[K, processor.Change[V]]) error {
	if r.NullKey {
		return t.task.NullKey(t.node)
	}
	if r.NullValue {
		return nil
	}
	before, err := t.find(r.Key)
	if err != nil {
		return t.failed(err)
	}
	at, now, c := max(r.Timestamp, before.timestamp), before, r.Value
	if c.HasOld && now.exists {
		now.value = a.remove(r.Key, c.Old, now.value)
		now.exists = t.null == nil || !t.null(now.value)
	}
	switch {
	case c.HasNew && now.exists:
		now.value = a.add(r.Key, c.New, now.value)
	case c.HasNew:
		now.value, now.exists = a.first(r.Key, c.New), true
	}
	if !now.exists {
		return t.remove(r.Key, at, r.Headers, before.exists)
	}
	return t.put(r.Key, now.value, at, r.Headers, before.exists)
}
