// Package changelog turns the writes of a store into the records of its
// changelog topic and back, byte for byte as Kafka Streams does it: key = key,
// value = value, timestamp = the write's timestamp, delete = null value. The
// state of a stopped Kafka Streams application can so be taken over, and given
// back.
//
// It is pure: the runtime reads and writes the topics.
package changelog

import (
	"fmt"
	"iter"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
)

// Record is one record of a changelog. Its key is never null; a null value means deleted, an empty one does not. The
// offset is where it was read, and not used for writing.
type Record = processor.Raw

// Topic is the name of a store's changelog. The application and the store are
// named by the user.
func Topic(application, storeName string) string {
	return application + "-" + storeName + "-changelog"
}

// TopicConfig is what a key-value store's changelog is created with, beside its
// partitions and replication: compacted for good, and with timestamps that are
// those of the writes.
func TopicConfig() map[string]string {
	return map[string]string{
		"cleanup.policy":         "compact",
		"message.timestamp.type": "CreateTime",
	}
}

// Records returns the records that a write set has for the changelog, in the order in which its keys were first touched.
// Their bytes are those of the set: they must not be changed, and are valid as long as it is. What is only local is left
// out; there may be none at all.
func Records(w *store.WriteSet) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		w.Mirror(func(m store.Mirrored) bool {
			return yield(Record{Key: m.Key, Value: m.Value, Timestamp: m.Timestamp, Headers: m.Headers})
		})
	}
}

// Count is the most records that a write set may have.
func Count(w *store.WriteSet) int { return w.MirrorLen() }

// AppendRecords appends what Records returns.
func AppendRecords(dst []Record, w *store.WriteSet) []Record {
	for r := range Records(w) {
		dst = append(dst, r)
	}
	return dst
}

// NullKeyError tells of a record without a key, which no store has written: the
// topic is not the changelog of this store, or someone else writes to it.
type NullKeyError struct {
	Store  string
	Offset int64
}

// Error names the store and the offset.
func (e *NullKeyError) Error() string {
	return fmt.Sprintf("changelog: store %s: record at offset %d has no key", e.Store, e.Offset)
}
