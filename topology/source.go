package topology

import (
	"fmt"
	"slices"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
)

// From reads a topic. Reading the same topic again, as a stream or a table, uses the same source. A record whose key or
// value cannot be decoded is treated as the application's processor.ErrorPolicy says.
func From[K, V any](b *Builder, t Topic[K, V], opts ...Option) Stream[K, V] {
	return Stream[K, V]{b, read(b, t, options(opts))}
}

// read returns the source of a topic, a new one if there is none.
func read[K, V any](b *Builder, t Topic[K, V], s settings) *node {
	n := &node{at: caller(), Node: processor.Node{Name: s.name, Kind: processor.KindSource, Topic: processor.Topic{Name: t.name}}}
	if n.Name == "" {
		n.Name = t.name
	}
	use := topicUsed(b, n, t)
	switch known := use.source; {
	case known == nil:
		use.source = n
	case s.name != "" && s.name != known.Name:
		b.fail(n.at, n.Name, "topic %q is already read by the node %q at %s", t.name, known.Name, known.at)
		return known
	default:
		return known
	}
	if s.name != "" {
		b.checkNamed(n)
	}
	n.Bind = bindSource(t.keys, t.values)
	b.add(n)
	return n
}

// bindSource decodes fetched records. Headers are cloned, as what a node does to them must not reach the dead-letter topic.
func bindSource[K, V any](keys serde.Serde[K], values serde.Serde[V]) func(*processor.Binding) (any, error) {
	return func(b *processor.Binding) (any, error) {
		name, next := b.Node.Name, processor.FanOut[K, V](b)
		keys := intern(keys)
		return processor.Source(func(raw *processor.Raw) (err error) {
			r := processor.Record[K, V]{Timestamp: raw.Timestamp, NullKey: raw.Key == nil, NullValue: raw.Value == nil}
			if !r.NullKey {
				if r.Key, err = keys.Decode(raw.Key); err != nil {
					return processor.Failed(name, processor.KindDecode, fmt.Errorf("decode key: %w", err))
				}
			}
			if !r.NullValue {
				if r.Value, err = values.Decode(raw.Value); err != nil {
					return processor.Failed(name, processor.KindDecode, fmt.Errorf("decode value: %w", err))
				}
			}
			if len(raw.Headers) > 0 {
				r.Headers = slices.Clone(raw.Headers)
			}
			return next(r)
		}), nil
	}
}
