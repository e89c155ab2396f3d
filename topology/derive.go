package topology

import (
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
)

// derive completes the node of a table that follows from others: with a store if the options name one, else with the view
// and the way to the old values that are given. The store is nil if there is none.
func derive[K, V any](
	b *Builder, n *node, set settings, rows *view[K, V], sendOld func(*node) bool,
) *store.KeyValue[K, V] {
	s, ok := set.rows.(*store.KeyValue[K, V])
	if set.rows != nil && !ok {
		b.fail(n.at, n.Name, "Materialized: the store is a %T, not a %T", set.rows, s)
	}
	if !ok {
		n.table.sendOld = sendOld
		if rows != nil {
			n.table.view = rows
		}
		return nil
	}
	maintain(b, n, s)
	return s
}

// noStores records a mistake if an operator was given stores that it cannot use.
func (n *node) noStores(b *Builder, set settings) {
	if len(set.stores) > 0 {
		b.fail(n.at, n.Name, "WithStores is for TransformTable only")
	}
}

// derived forwards the changes of a derived table in one task, by way of its store if it has one.
type derived[K, V any] struct {
	next processor.Emit[K, processor.Change[V]]
	rows *rows[K, V]
	null func(V) bool
}

func bindDerived[K, V any](b *processor.Binding, n *node, s *store.KeyValue[K, V], set settings) (*derived[K, V], error) {
	if s == nil {
		return &derived[K, V]{next: processor.FanOut[K, processor.Change[V]](b), null: nullTest[V]()}, nil
	}
	rows, err := bindRows(b, s, n, set.everyUpdate)
	return &derived[K, V]{rows: rows, null: nullTest[V]()}, err
}

// forward takes a change whose old value is the right one if there is no store.
func (d *derived[K, V]) forward(r processor.Record[K, processor.Change[V]]) error {
	c := &r.Value
	if d.rows != nil {
		return d.rows.set(r.Key, c.New, c.HasNew, r.Timestamp, r.Headers)
	}
	d.drop(c)
	return d.next(r)
}

// forwardAs is forward that tells the change's old value even if the store has another, should each update be forwarded: as
// Kafka Streams does after a join, where both sides may follow from one change.
func (d *derived[K, V]) forwardAs(r processor.Record[K, processor.Change[V]]) error {
	if d.rows == nil {
		return d.forward(r)
	}
	c := r.Value
	d.drop(&c)
	d.rows.told = &c
	defer func() { d.rows.told = nil }()
	return d.forward(r)
}

// drop takes values that are none out of a change.
func (d *derived[K, V]) drop(c *processor.Change[V]) {
	if d.null != nil {
		c.HasNew = c.HasNew && !d.null(c.New)
		c.HasOld = c.HasOld && !d.null(c.Old)
	}
}

// with returns a change of the same row, time and headers.
func with[K, A, B any](r processor.Record[K, processor.Change[A]], c processor.Change[B]) processor.Record[K, processor.Change[B]] {
	return processor.Record[K, processor.Change[B]]{Key: r.Key, Value: c, Timestamp: r.Timestamp, Headers: r.Headers}
}
