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
		if keys, ok := t.keys.(partitionKeyer); ok {
			o.partOf = keys.PartitionKey
		}
		return processor.Emit[K, V](o.send), nil
	}
}

// partitionKeyer is serde.PartitionKeyer: windowed keys are partitioned by what is in the windows.
type partitionKeyer interface{ PartitionKey(encoded []byte) []byte }

// outlet encodes the records of one sink in one task.
type outlet[K, V any] struct {
	node       string
	topic      string // on the broker
	partitions int32
	out        *processor.Outputs
	keys       serde.Serde[K]
	values     serde.Serde[V]
	choose     func(K, V, int32) int32 // nil: by the key
	partOf     func(key []byte) []byte // the part of the key that chooses the partition; nil: all of it
}

func newOutlet[K, V any](b *processor.Binding, keys serde.Serde[K], values serde.Serde[V]) (*outlet[K, V], error) {
	topic := b.Task.PhysicalTopic(b.Node.Topic)
	n := b.Task.Partitions(topic)
	if n < 1 {
		return nil, fmt.Errorf("topology: topic %q does not exist", topic)
	}
	return &outlet[K, V]{node: b.Node.Name, topic: topic, partitions: n, out: &b.Task.Out, keys: keys, values: values}, nil
}

func (o *outlet[K, V]) send(r processor.Record[K, V]) error {
	key, value, err := o.encode(&r)
	if err != nil {
		return err
	}
	p, err := o.partition(key, &r)
	if err != nil {
		return processor.Failed(o.node, processor.KindProcess, err)
	}
	return o.add(p, key, value, &r)
}

// sendTo sends a record to a partition, or to that of its key if it is negative.
func (o *outlet[K, V]) sendTo(partition int32, r processor.Record[K, V]) error {
	key, value, err := o.encode(&r)
	if err != nil {
		return err
	}
	if partition < 0 {
		partition = o.out.Partition(key, o.partitions)
	}
	if partition >= o.partitions {
		return processor.Failed(o.node, processor.KindProcess,
			fmt.Errorf("topology: partition %d of the %d partitions of %q", partition, o.partitions, o.topic))
	}
	return o.add(partition, key, value, &r)
}

func (o *outlet[K, V]) encode(r *processor.Record[K, V]) (key, value []byte, err error) {
	if !r.NullKey {
		if key, err = processor.Encode(o.out, o.keys, r.Key); err != nil {
			return nil, nil, processor.Failed(o.node, processor.KindProcess, fmt.Errorf("encode key: %w", err))
		}
	}
	if !r.NullValue {
		if value, err = processor.Encode(o.out, o.values, r.Value); err != nil {
			return nil, nil, processor.Failed(o.node, processor.KindProcess, fmt.Errorf("encode value: %w", err))
		}
	}
	return key, value, nil
}

func (o *outlet[K, V]) add(partition int32, key, value []byte, r *processor.Record[K, V]) error {
	return processor.Failed(o.node, processor.KindProcess, o.out.Add(processor.Output{
		Topic: o.topic, Partition: partition, Key: key, Value: value, Timestamp: r.Timestamp, Headers: r.Headers,
	}))
}

func (o *outlet[K, V]) partition(key []byte, r *processor.Record[K, V]) (int32, error) {
	if o.choose == nil && o.partOf != nil && key != nil {
		return o.out.Partition(o.partOf(key), o.partitions), nil
	}
	if o.choose == nil {
		return o.out.Partition(key, o.partitions), nil
	}
	p := o.choose(r.Key, r.Value, o.partitions)
	if p < 0 || p >= o.partitions {
		return 0, fmt.Errorf("topology: the partitioner chose %d of the %d partitions of %q", p, o.partitions, o.topic)
	}
	return p, nil
}
