package testdriver

import (
	"fmt"
	"slices"

	"github.com/millrace-streams/millrace/internal/sim"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/topology"
)

// Record is a record that was read, and where it was.
type Record[K, V any] struct {
	processor.Record[K, V]
	Partition int32
	Offset    int64
}

// Pair is the key and the value of a record. Nulls are zero values.
type Pair[K, V any] struct {
	Key   K
	Value V
}

// OutputTopic reads a topic from its beginning, each record once. Records come in the order in which they were committed,
// those of one commit by partition; the records of a partition always keep their order. An open transaction holds back
// what lies behind it.
type OutputTopic[K, V any] struct {
	d      *Driver
	topic  string
	keys   serde.Serde[K]
	values serde.Serde[V]
	next   []int64 // by partition
	unread []entry
}

type entry struct {
	sim.Entry
	partition int32
}

// Output returns a reading end of a topic, placed at the topic's beginning.
func Output[K, V any](d *Driver, t topology.Topic[K, V]) *OutputTopic[K, V] {
	d.helper()
	d.known(t.Name())
	next := make([]int64, d.cluster.Partitions(t.Name()))
	return &OutputTopic[K, V]{d: d, topic: t.Name(), keys: t.KeySerde(), values: t.ValueSerde(), next: next}
}

// Read returns the next record, false if there is none. Bytes that are no key or no value of the topic are a failure, see
// the package comment.
func (o *OutputTopic[K, V]) Read() (Record[K, V], bool) {
	o.d.helper()
	if len(o.unread) == 0 {
		o.unread = o.d.committed(o.topic, o.next)
	}
	if len(o.unread) == 0 {
		return Record[K, V]{}, false
	}
	e := o.unread[0]
	o.unread = o.unread[1:]
	r, err := o.decode(e)
	if err != nil {
		o.d.fail(fmt.Errorf("testdriver: read %s-%d@%d: %w", o.topic, e.partition, e.Offset, err))
	}
	return r, true
}

// ReadAll returns all records that were not read yet.
func (o *OutputTopic[K, V]) ReadAll() []Record[K, V] {
	o.d.helper()
	var records []Record[K, V]
	for r, ok := o.Read(); ok; r, ok = o.Read() {
		records = append(records, r)
	}
	return records
}

// ReadPairs returns the keys and values of all records that were not read yet.
func (o *OutputTopic[K, V]) ReadPairs() []Pair[K, V] {
	o.d.helper()
	var pairs []Pair[K, V]
	for _, r := range o.ReadAll() {
		pairs = append(pairs, Pair[K, V]{r.Key, r.Value})
	}
	return pairs
}

// ReadValues returns the values of all records that were not read yet.
func (o *OutputTopic[K, V]) ReadValues() []V {
	o.d.helper()
	var values []V
	for _, r := range o.ReadAll() {
		values = append(values, r.Value)
	}
	return values
}

// ReadMap reads all records that were not read yet and returns the last value of each key. A key whose last value is null
// is left out; records without a key are too.
func ReadMap[K comparable, V any](o *OutputTopic[K, V]) map[K]V {
	o.d.helper()
	last := map[K]V{}
	for _, r := range o.ReadAll() {
		switch {
		case r.NullKey:
		case r.NullValue:
			delete(last, r.Key)
		default:
			last[r.Key] = r.Value
		}
	}
	return last
}

func (o *OutputTopic[K, V]) decode(e entry) (r Record[K, V], err error) {
	r.Partition, r.Offset, r.Timestamp, r.Headers = e.partition, e.Offset, e.Timestamp, e.Headers
	r.NullKey, r.NullValue = e.Key == nil, e.Value == nil
	if !r.NullKey {
		if r.Key, err = o.keys.Decode(e.Key); err != nil {
			return r, fmt.Errorf("key: %w", err)
		}
	}
	if !r.NullValue {
		if r.Value, err = o.values.Decode(e.Value); err != nil {
			return r, fmt.Errorf("value: %w", err)
		}
	}
	return r, nil
}

// RawRecord is a record of any topic as it lies there.
type RawRecord struct {
	processor.Raw
	Partition int32
}

// Raw returns all committed records of a topic, which is named as on the broker: "app-counts-changelog". They come in the
// order of an OutputTopic.
func (d *Driver) Raw(topic string) []RawRecord {
	d.helper()
	if !d.known(topic) {
		return nil
	}
	var records []RawRecord
	for _, e := range d.committed(topic, make([]int64, d.cluster.Partitions(topic))) {
		records = append(records, RawRecord{e.Raw, e.partition})
	}
	return records
}

// committed returns what can be read behind the given positions, by partition, and moves them on.
func (d *Driver) committed(topic string, next []int64) []entry {
	var found []entry
	for p := range next {
		tp := processor.TopicPartition{Topic: topic, Partition: int32(p)}
		stable := d.cluster.Stable(tp)
		for _, e := range d.cluster.Entries(tp, next[p]) {
			if e.Offset < stable && e.State == sim.Committed {
				found = append(found, entry{e, int32(p)})
			}
		}
		next[p] = stable
	}
	slices.SortStableFunc(found, func(a, b entry) int { return int(a.Order - b.Order) })
	return found
}
