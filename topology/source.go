package topology

import (
	"fmt"
	"slices"
	"time"

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
	if t.ahead != 0 && t.ahead < time.Millisecond {
		b.fail(n.at, n.Name, "topic %q: WithMaxAhead allows %v, it must be a millisecond or more", t.name, t.ahead)
	}
	bind := bindSource(n, t.keys, t.values, t.time)
	n.Bind = func(b *processor.Binding) (any, error) {
		b.MaxAhead = t.ahead
		return bind(b)
	}
	b.add(n)
	return n
}

// bindSource decodes fetched records. Headers are cloned, as what a node does to them must not reach the dead-letter topic.
func bindSource[K, V any](n *node, keys serde.Serde[K], values serde.Serde[V], time EventTime[K, V]) func(*processor.Binding) (any, error) {
	return func(b *processor.Binding) (any, error) {
		d, next := decoder[K, V]{b.Node.Name, intern(keys), values}, processor.FanOut[K, V](b)
		if time != nil {
			b.Timestamp = d.eventTime(time)
		}
		d.values = unlessBlind(n, values)
		return processor.Source(func(raw *processor.Raw) error {
			r, err := d.decode(raw)
			if err != nil {
				return err
			}
			if len(raw.Headers) > 0 {
				r.Headers = slices.Clone(raw.Headers)
			}
			return next(r)
		}), nil
	}
}

// decoder decodes the records of a source.
type decoder[K, V any] struct {
	node   string
	keys   serde.Serde[K]
	values serde.Serde[V]
}

func (d decoder[K, V]) decode(raw *processor.Raw) (r processor.Record[K, V], err error) {
	r = processor.Record[K, V]{Timestamp: raw.Timestamp, NullKey: raw.Key == nil, NullValue: raw.Value == nil}
	if !r.NullKey {
		if r.Key, err = d.keys.Decode(raw.Key); err != nil {
			return r, processor.Failed(d.node, processor.KindDecode, fmt.Errorf("decode key: %w", err))
		}
	}
	if !r.NullValue {
		if r.Value, err = d.values.Decode(raw.Value); err != nil {
			return r, processor.Failed(d.node, processor.KindDecode, fmt.Errorf("decode value: %w", err))
		}
	}
	return r, nil
}

// eventTime asks the extractor. A record that cannot be decoded keeps its time and fails when its turn comes; one for which
// the extractor panics has none, and is a bad record for that.
func (d decoder[K, V]) eventTime(time EventTime[K, V]) func(*processor.Raw, int64) int64 {
	return func(raw *processor.Raw, partitionTime int64) (at int64) {
		defer func() {
			if recover() != nil {
				at = processor.Unknown
			}
		}()
		r, err := d.decode(raw)
		if err != nil {
			return max(raw.Timestamp, 0)
		}
		return time(r.Key, r.Value, raw.Timestamp, partitionTime)
	}
}
