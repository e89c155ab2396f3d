package topology

import (
	"time"

	"github.com/millrace-streams/millrace/serde"
)

// Topic declares a topic: its name on the broker and how its keys and values are encoded. It is a value, usually of a
// package-level variable, and serves any number of builders, test drivers and clients.
type Topic[K, V any] struct {
	name   string
	keys   serde.Serde[K]
	values serde.Serde[V]
	time   EventTime[K, V] // nil: the record's own timestamp
	ahead  time.Duration   // how far timestamps may lie ahead of the wall clock; 0: as far as they like
}

// NewTopic declares a topic. The name is checked when it is used: 1 to 249 of the characters a-z, A-Z, 0-9, dot, underscore
// and hyphen.
func NewTopic[K, V any](name string, keys serde.Serde[K], values serde.Serde[V]) Topic[K, V] {
	return Topic[K, V]{name: name, keys: keys, values: values}
}

// EventTime finds out when what a record tells of happened, in milliseconds since 1970. recordTime is the record's own
// timestamp, negative if its producer set none; partitionTime the highest event time of its partition so far,
// processor.Unknown before the first. A null key or value comes as the zero value. A negative result makes the record a bad
// one, to be treated as the application's processor.ErrorPolicy says.
type EventTime[K, V any] func(key K, value V, recordTime, partitionTime int64) int64

// WithEventTime returns the topic read with another time than that of its records. It decodes each record twice.
func (t Topic[K, V]) WithEventTime(fn EventTime[K, V]) Topic[K, V] {
	t.time = fn
	return t
}

// WithMaxAhead returns the topic read with a guard against poisonous timestamps: a record whose timestamp lies further ahead
// of the wall clock than d is dropped and counted, or sent to the dead-letter topic if processor.ErrorPolicy sends negative
// timestamps there, and moves neither stream time nor its partition's time. Without the guard, as in Kafka Streams, one record
// that is dated years ahead closes all windows, and the records after it are late.
func (t Topic[K, V]) WithMaxAhead(d time.Duration) Topic[K, V] {
	t.ahead = d
	return t
}

// PartitionTimeIfNegative keeps the timestamps of records, and gives those without one the highest of their partition so
// far; it is Kafka Streams' UsePartitionTimeOnInvalidTimestamp.
func PartitionTimeIfNegative[K, V any](_ K, _ V, recordTime, partitionTime int64) int64 {
	if recordTime < 0 {
		return partitionTime
	}
	return recordTime
}

// Name returns the topic's name.
func (t Topic[K, V]) Name() string { return t.name }

// KeySerde returns the encoding of keys.
func (t Topic[K, V]) KeySerde() serde.Serde[K] { return t.keys }

// ValueSerde returns the encoding of values.
func (t Topic[K, V]) ValueSerde() serde.Serde[V] { return t.values }

// Repartition declares an internal topic through which records go to the task that owns their new key. On the broker it
// is named <app>-<name>-repartition; the application creates it.
type Repartition[K, V any] struct {
	name   string
	suffix string // of the name on the broker, if not "repartition"
	keys   serde.Serde[K]
	values serde.Serde[V]
}

// NewRepartition declares a repartition topic. The name obeys the rules of topic names, and is durable: renaming it in a
// running application leaves behind what the old topic still holds.
func NewRepartition[K, V any](name string, keys serde.Serde[K], values serde.Serde[V]) Repartition[K, V] {
	return Repartition[K, V]{name: name, keys: keys, values: values}
}

// Name returns the name that was declared, without the application's id.
func (r Repartition[K, V]) Name() string { return r.name }

// KeySerde returns the encoding of keys.
func (r Repartition[K, V]) KeySerde() serde.Serde[K] { return r.keys }

// ValueSerde returns the encoding of values.
func (r Repartition[K, V]) ValueSerde() serde.Serde[V] { return r.values }

// Stream is a handle on a sequence of records. It comes from From or from an operator; the zero Stream is of no use.
type Stream[K, V any] struct {
	b *Builder
	n *node
}

// Grouped is a handle on a stream whose records of one key all come to the same task. It comes from GroupBy or GroupByKey.
type Grouped[K, V any] struct {
	b *Builder
	n *node
}

// KTable is a handle on a table: the latest value of each key. The rows of some tables are held in a store; those of the
// others follow from tables above.
type KTable[K, V any] struct {
	b *Builder
	n *node
}
