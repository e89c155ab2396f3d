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

// FromEntry is the record of one write. Its bytes are those of the entry: they
// must not be changed, and are valid as long as the entry's are.
func FromEntry(e *store.Entry) Record {
	r := Record{Key: e.KeyBytes(), Timestamp: e.Timestamp, Headers: e.Headers}
	if !e.Deleted {
		r.Value = e.Value
		if r.Value == nil {
			r.Value = []byte{}
		}
	}
	return r
}

// AppendRecords appends the records of a write set in the order in which its
// keys were first touched. See FromEntry for the bytes.
func AppendRecords(dst []Record, w *store.WriteSet) []Record {
	for _, e := range w.Entries() {
		dst = append(dst, FromEntry(e))
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
