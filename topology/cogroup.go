package topology

import (
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
)

// Cogrouped is a handle on grouped streams whose records make one table, each stream's in a way of its own. It comes from
// Cogroup.
type Cogrouped[K, A any] struct {
	b     *Builder
	parts []cogroupPart[K, A]
}

// cogroupPart is one stream, with its values' type erased.
type cogroupPart[K, A any] struct {
	b    *Builder
	n    *node
	fn   bool // there is a function
	bind func(node string, t *rows[K, A], init func() A) any
	// inWindows is the bound node of an aggregation in windows, which hands its records to take.
	inWindows func(init func() A, take func(*windowRecord[K, A]) (late bool, err error)) any
}

// Cogroup says how the records of a grouped stream change the rows of a table that other streams change too: fn makes the
// next row of each record and the row, which it may change and return.
//
//	totals := topology.Cogroup(orders, addOrder).And(topology.Cogroup(refunds, addRefund))
//	topology.AggregateCogrouped(totals, newTotal, Totals)
func Cogroup[K, V, A any](g Grouped[K, V], fn func(key K, value V, row A) A) Cogrouped[K, A] {
	p := cogroupPart[K, A]{b: g.b, n: g.n, fn: fn != nil}
	p.bind = func(node string, t *rows[K, A], init func() A) any {
		return aggregating(node, t, func(k K, v V, row A, exists bool) A {
			if !exists {
				row = init()
			}
			return fn(k, v, row)
		})
	}
	p.inWindows = func(init func() A, take func(*windowRecord[K, A]) (bool, error)) any {
		return windowInput[K, V, A]{next: aggregatingFrom(init, fn)}.bind(take)
	}
	return Cogrouped[K, A]{b: g.b, parts: []cogroupPart[K, A]{p}}
}

// And returns the streams of c and of the others together.
func (c Cogrouped[K, A]) And(others ...Cogrouped[K, A]) Cogrouped[K, A] {
	parts := c.parts[:len(c.parts):len(c.parts)]
	for _, o := range others {
		parts = append(parts, o.parts...)
	}
	c.parts = parts
	return c
}

// AggregateCogrouped makes the table of grouped streams. A row is init's before the first record of its key. Nulls and
// timestamps are treated as by Count. There is one node for each stream, and one where they meet: the table's.
func AggregateCogrouped[K, A any](c Cogrouped[K, A], init func() A, s *store.KeyValue[K, A], opts ...TableOption) KTable[K, A] {
	set := tableOptions(opts)
	parents, n := c.nodes(set)
	n.need(c.b, init != nil, "the initial value's function")
	maintain(c.b, n, s)
	for i, p := range c.parts {
		if s != nil {
			c.b.use(parents[i], s, false)
		}
		parents[i].Bind = func(b *processor.Binding) (any, error) {
			t, err := rowsOf(b.Task, n, s)
			return p.bind(b.Node.Name, t, init), err
		}
	}
	n.Bind = func(b *processor.Binding) (any, error) {
		t, err := bindRows(b, s, n, set.everyUpdate)
		if err != nil {
			return nil, err
		}
		return t.next, nil // the parts write the rows, which forward by themselves
	}
	return KTable[K, A]{c.b, n}
}

// nodes declares a node for each stream, and the table's, in which they meet.
func (c Cogrouped[K, A]) nodes(set settings) (parents []*node, whole *node) {
	name, given := wholeName(set, c.parts[0].n, "cogroup")
	parents = make([]*node, len(c.parts))
	seen := map[*node]bool{}
	for i, p := range c.parts {
		if seen[p.n] {
			at := caller()
			c.b.fail(at, name, "the stream %q is cogrouped with itself", p.n.Name)
		}
		seen[p.n] = true
		parents[i] = c.b.part(name, given, "of."+p.n.Name, p.n)
		parents[i].need(c.b, p.fn, "the function")
		if p.b != c.b {
			c.b.fail(parents[i].at, name, "the cogrouped streams belong to different builders")
		}
	}
	return parents, c.b.whole(name, given, parents...)
}
