package topology

import (
	"github.com/millrace-streams/millrace/processor"
)

// GroupBy gives each record a new key and sends it through the repartition topic to the task that owns that key.
// Tombstones are dropped. Reading the topic is another sub-topology, whose source node bears the topic's name.
func GroupBy[K, V, K2 any](s Stream[K, V], r Repartition[K2, V], key func(K, V) K2, opts ...Option) Grouped[K2, V] {
	n := s.b.child("groupby", options(opts), s.n)
	n.need(s.b, key != nil, "the function")
	n.Bind = func(b *processor.Binding) (any, error) {
		o, err := newOutlet(b, r.keys, r.values)
		if err != nil {
			return nil, err
		}
		return processor.Emit[K, V](func(in processor.Record[K, V]) error {
			if in.NullValue {
				return nil
			}
			return o.send(processor.Record[K2, V]{
				Key: key(in.Key, in.Value), Value: in.Value, Timestamp: in.Timestamp, Headers: in.Headers,
			})
		}), nil
	}
	return Grouped[K2, V]{s.b, cut(s.b, n, r)}
}

// Through sends a stream through the repartition topic to the tasks that own its keys, as is needed after an operator that
// has changed them. Tombstones go along; records without a key are spread.
func Through[K, V any](s Stream[K, V], r Repartition[K, V], opts ...Option) Stream[K, V] {
	n := s.b.child("through", options(opts), s.n)
	n.Bind = func(b *processor.Binding) (any, error) {
		o, err := newOutlet(b, r.keys, r.values)
		if err != nil {
			return nil, err
		}
		return processor.Emit[K, V](o.send), nil
	}
	return Stream[K, V]{s.b, cut(s.b, n, r)}
}

// cut makes n the sink of a repartition topic, and returns the source.
func cut[K, V any](b *Builder, n *node, r Repartition[K, V]) *node {
	topic := processor.Topic{Name: r.name, Internal: true, Suffix: r.suffix}
	n.Kind, n.Topic = processor.KindSink, topic
	n.need(b, r.keys != nil, "the key serde of the repartition topic")
	n.need(b, r.values != nil, "the value serde of the repartition topic")
	if first := b.reparts[r.name]; first != nil {
		b.fail(n.at, n.Name, "the repartition topic %q is already used at %s; each has one writer", r.name, first.at)
	} else if err := checkName(r.name); err != nil {
		b.fail(n.at, n.Name, "repartition topic %q: %w", r.name, err)
	}
	source := &node{at: n.at, clash: b.reparts[r.name] != nil}
	source.Node = processor.Node{Name: r.name, Kind: processor.KindSource, Topic: topic, Bind: bindSource(source, r.keys, r.values, nil)}
	b.add(source)
	if !source.clash {
		b.reparts[r.name] = source
	}
	return source
}

// GroupByKey groups a stream by the key that it has. It is a mistake after an operator that may have changed the key (Map,
// FlatMap, SelectKey, Process), since a key's records then lie in several partitions: use GroupBy, or Through before it.
func GroupByKey[K, V any](s Stream[K, V]) Grouped[K, V] {
	if s.n.rekeyed {
		s.b.fail(caller(), s.n.Name, "GroupByKey after the key may have changed: use GroupBy, or Through before it")
	}
	return Grouped[K, V](s)
}

// KeyUnchanged asserts that the records of a stream still have the keys by which they are partitioned, though an operator
// might have changed them, as a Process that passes keys on. It spares a repartition topic, and is not checked: if it is
// wrong, records of one key meet different tasks.
func KeyUnchanged[K, V any](s Stream[K, V], opts ...Option) Stream[K, V] {
	n := s.b.child("keyunchanged", options(opts), s.n)
	n.rekeyed = false
	n.Bind = passOn[K, V]
	return Stream[K, V]{s.b, n}
}

// copartitioned records a mistake if the keys of a stream may have changed since its topic.
func (n *node) copartitioned(b *Builder, s *node) {
	if s.rekeyed {
		b.fail(n.at, n.Name, "the key of %q may have changed: use Through, or KeyUnchanged, before it", s.Name)
	}
}
