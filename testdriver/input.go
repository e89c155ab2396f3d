package testdriver

import (
	"fmt"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/topology"
)

// InputTopic writes to a topic. Its methods return when all that they caused is processed and committed, unless the
// driver is [Manual].
type InputTopic[K, V any] struct {
	d      *Driver
	topic  string
	keys   serde.Serde[K]
	values serde.Serde[V]
}

// Input returns the writing end of a topic.
func Input[K, V any](d *Driver, t topology.Topic[K, V]) *InputTopic[K, V] {
	d.helper()
	d.known(t.Name())
	return &InputTopic[K, V]{d: d, topic: t.Name(), keys: t.KeySerde(), values: t.ValueSerde()}
}

// Send sends a record with the clock's time.
func (in *InputTopic[K, V]) Send(key K, value V) {
	in.d.helper()
	in.SendAt(key, value, in.d.now.UnixMilli())
}

// SendAt sends a record with a timestamp in milliseconds since 1970.
func (in *InputTopic[K, V]) SendAt(key K, value V, timestamp int64) {
	in.d.helper()
	in.SendAll(processor.Record[K, V]{Key: key, Value: value, Timestamp: timestamp})
}

// SendTombstone sends a key with a null value.
func (in *InputTopic[K, V]) SendTombstone(key K) {
	in.d.helper()
	in.SendAll(processor.Record[K, V]{Key: key, NullValue: true, Timestamp: in.d.now.UnixMilli()})
}

// SendNullKey sends a value without a key. Partitions take turns.
func (in *InputTopic[K, V]) SendNullKey(value V) {
	in.d.helper()
	in.SendAll(processor.Record[K, V]{NullKey: true, Value: value, Timestamp: in.d.now.UnixMilli()})
}

// SendAll sends records as they are, timestamps and nulls included, and then processes all of them.
func (in *InputTopic[K, V]) SendAll(records ...processor.Record[K, V]) {
	in.d.helper()
	for _, r := range records {
		raw, err := in.encode(r)
		if err != nil {
			in.d.fail(err)
			return
		}
		in.d.append(in.topic, in.d.choose(in.topic, raw.Key), raw)
	}
	in.d.settle()
}

// SendTo sends a record to a partition of the caller's choice.
func (in *InputTopic[K, V]) SendTo(partition int32, r processor.Record[K, V]) {
	in.d.helper()
	raw, err := in.encode(r)
	if err != nil {
		in.d.fail(err)
		return
	}
	in.SendRaw(partition, raw)
}

// SendRaw sends bytes as they are to a partition. Offset is not looked at.
func (in *InputTopic[K, V]) SendRaw(partition int32, r processor.Raw) {
	in.d.helper()
	in.d.append(in.topic, partition, r)
	in.d.settle()
}

func (in *InputTopic[K, V]) encode(r processor.Record[K, V]) (raw processor.Raw, err error) {
	raw = processor.Raw{Timestamp: r.Timestamp, Headers: r.Headers}
	if !r.NullKey {
		if raw.Key, err = in.keys.Append([]byte{}, r.Key); err != nil {
			return raw, fmt.Errorf("testdriver: topic %q: encode key: %w", in.topic, err)
		}
	}
	if !r.NullValue {
		if raw.Value, err = in.values.Append([]byte{}, r.Value); err != nil {
			return raw, fmt.Errorf("testdriver: topic %q: encode value: %w", in.topic, err)
		}
	}
	return raw, nil
}

// choose returns the partition of a key as Kafka's clients choose it.
func (d *Driver) choose(topic string, key []byte) int32 {
	n := max(d.cluster.Partitions(topic), 1)
	if key != nil {
		return processor.PartitionForKey(key, n)
	}
	p := d.spread[topic]
	d.spread[topic] = (p + 1) % n
	return p
}

// append writes records to a topic.
func (d *Driver) append(topic string, partition int32, records ...processor.Raw) {
	d.helper()
	if _, err := d.cluster.Append(processor.TopicPartition{Topic: topic, Partition: partition}, records...); err != nil {
		d.fail(fmt.Errorf("testdriver: send: %w", err))
	}
}
