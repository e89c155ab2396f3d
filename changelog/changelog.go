// Package changelog turns the writes of a store into the records of its
// changelog topic and back, byte for byte as Kafka Streams does it. The state of
// a stopped Kafka Streams application can so be taken over, and given back.
//
//	key-value, with a TTL or not   key                        value, or null: deleted
//	window                         key ‖ start ‖ number       value, or null
//	session                        key ‖ end ‖ start          value, or null
//	versioned                      key                        value, or null: a tombstone
//
// with times in 8 bytes and the number in 4, 0 unless duplicates are retained,
// all big-endian. The record's timestamp is the row's, of a version the time from
// which it is valid. The layouts themselves are those of package store.
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

// Records goes through the records that a write set has for the changelog, in the
// order in which its keys were first touched. A store's layout decides what they
// are: a key-value store's entries are records one by one, others have entries of
// which the changelog is not told, and there may be no record at all. The bytes
// are the set's: they must not be changed, and are valid as long as it is.
func Records(w *store.WriteSet) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		w.Mirror(func(m store.Mirrored) bool {
			return yield(Record{Key: m.Key, Value: m.Value, Timestamp: m.Timestamp, Headers: m.Headers})
		})
	}
}

// Count is the most records that Records may come to.
func Count(w *store.WriteSet) int { return w.MirrorLen() }

// AppendRecords appends the records of a write set. See Records.
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
