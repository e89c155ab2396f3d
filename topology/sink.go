package topology

import (
	"fmt"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
)

// To writes a stream to a topic, which must exist when the application starts. Timestamps and headers go along; null keys
// and null values are written as such. The topic must not be one that the stream comes from.
func To[K, V any](s Stream[K, V], t Topic[K, V], opts ...ToOption) {
	var set settings
	for _, o := range opts {
		o.toOption(&set)
	}
	n := s.b.child("to."+t.name, set, s.n)
	n.Kind, n.Topic = processor.KindSink, processor.Topic{Name: t.name}
	topicUsed(s.b, n, t)
	choose, ok := set.partitioner.(func(K, V, int32) int32)
	if set.partitioner != nil && !ok {
		s.b.fail(n.at, n.Name, "the partitioner is a %T, not a %T", set.partitioner, choose)
	}
	n.Bind = func(b *processor.Binding) (any, error) {
		o, err := newOutlet(b, t.keys, t.values)
		if err != nil {
			return nil, err
		}
		o.choose = choose
		return processor.Emit[K, V](o.send), nil
	}
}

// outlet encodes the records of one sink in one task.
type outlet[K, V any] struct {
	node       string
	topic      string // on the broker
	partitions int32
	out        *processor.Outputs
	keys       serde.Serde[K]
	values     serde.Serde[V]
	choose     func(K, V, int32) int32 // nil: by the key
}

func newOutlet[K, V any](b *processor.Binding, keys serde.Serde[K], values serde.Serde[V]) (*outlet[K, V], error) {
	topic := b.Task.PhysicalTopic(b.Node.Topic)
	n := b.Task.Partitions(topic)
	if n < 1 {
		return nil, fmt.Errorf("topology: topic %q does not exist", topic)
	}
	return &outlet[K, V]{node: b.Node.Name, topic: topic, partitions: n, out: &b.Task.Out, keys: keys, values: values}, nil
}

func (o *outlet[K, V]) send(r processor.Record[K, V]) (err error) {
	var key, value []byte
	if !r.NullKey {
		if key, err = processor.Encode(o.out, o.keys, r.Key); err != nil {
			return processor.Failed(o.node, processor.KindProcess, fmt.Errorf("encode key: %w", err))
		}
	}
	if !r.NullValue {
		if value, err = processor.Encode(o.out, o.values, r.Value); err != nil {
			return processor.Failed(o.node, processor.KindProcess, fmt.Errorf("encode value: %w", err))
		}
	}
	p, err := o.partition(key, &r)
	if err != nil {
		return processor.Failed(o.node, processor.KindProcess, err)
	}
	return processor.Failed(o.node, processor.KindProcess, o.out.Add(processor.Output{
		Topic: o.topic, Partition: p, Key: key, Value: value, Timestamp: r.Timestamp, Headers: r.Headers,
	}))
}

func (o *outlet[K, V]) partition(key []byte, r *processor.Record[K, V]) (int32, error) {
	if o.choose == nil {
		return o.out.Partition(key, o.partitions), nil
	}
	p := o.choose(r.Key, r.Value, o.partitions)
	if p < 0 || p >= o.partitions {
		return 0, fmt.Errorf("topology: the partitioner chose %d of the %d partitions of %q", p, o.partitions, o.topic)
	}
	return p, nil
}
