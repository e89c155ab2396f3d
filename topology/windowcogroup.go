package topology

import (
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
)

// AggregateCogroupedWindows makes the table of grouped streams in windows, as AggregateCogrouped without. Each stream has a
// stream time of its own, as in Kafka Streams. Nulls and timestamps are treated as by ReduceWindows. Results cannot be emitted
// on close; use Suppress.
func AggregateCogroupedWindows[K, A any](
	c Cogrouped[K, A], w Windowing, init func() A, s *store.Window[K, A], opts ...TableOption,
) KTable[store.Windowed[K], A] {
	set := tableOptions(opts)
	parents, n := c.nodes(set)
	n.need(c.b, init != nil, "the initial value's function")
	windowTable(c.b, n, s, w, set)
	c.noClose(n, set)
	for i, p := range c.parts {
		if s != nil {
			c.b.use(parents[i], s, false)
		}
		parents[i].Bind = func(b *processor.Binding) (any, error) {
			a, err := newWindowAggregation(b, n, s, w, p.n.Name)
			if err != nil {
				return nil, err
			}
			return p.inWindows(init, a.take), nil
		}
	}
	n.Bind = func(b *processor.Binding) (any, error) {
		t, err := windowRowsOf(b.Task, n, s)
		if err != nil {
			return nil, err
		}
		next := processor.FanOut[store.Windowed[K], processor.Change[A]](b)
		t.bind(n, next, set)
		return next, nil // the parts write the rows, which forward by themselves
	}
	return KTable[store.Windowed[K], A]{c.b, n}
}

// AggregateCogroupedSessions makes the table of grouped streams in sessions, as AggregateCogroupedWindows in windows. merge
// makes one row of two.
func AggregateCogroupedSessions[K, A any](
	c Cogrouped[K, A], w SessionWindows, init func() A, merge func(key K, a, b A) A, s *store.Session[K, A], opts ...TableOption,
) KTable[store.Windowed[K], A] {
	set := tableOptions(opts)
	parents, n := c.nodes(set)
	n.need(c.b, init != nil, "the initial value's function")
	n.need(c.b, merge != nil, "the merging function")
	sessionTable(c.b, n, s, w, set)
	c.noClose(n, set)
	for i, p := range c.parts {
		if s != nil {
			c.b.use(parents[i], s, false)
		}
		parents[i].Bind = func(b *processor.Binding) (any, error) {
			a, err := newSessionAggregation(b, n, s, w, p.n.Name, merging[K, A]{init: init, fn: merge})
			if err != nil {
				return nil, err
			}
			return p.inWindows(init, a.take), nil
		}
	}
	n.Bind = func(b *processor.Binding) (any, error) {
		t, err := sessionRowsOf(b.Task, n, s)
		if err != nil {
			return nil, err
		}
		next := processor.FanOut[store.Windowed[K], processor.Change[A]](b)
		t.bind(n, next, set)
		return next, nil
	}
	return KTable[store.Windowed[K], A]{c.b, n}
}

// noClose refuses EmitOnClose.
func (c Cogrouped[K, A]) noClose(n *node, set settings) {
	if set.closing.onClose {
		c.b.fail(n.at, n.Name, "EmitOnClose: the streams have no stream time in common; use Suppress with UntilWindowCloses")
	}
}
