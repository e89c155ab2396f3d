package wire

import (
	"time"

	"github.com/IBM/sarama"
)

// batch collects records for one partition.
type batch struct {
	slab    []sarama.Record
	records []*sarama.Record
	bytes   int
	first   time.Time // of the first record
	last    time.Time // the latest
}

// slabRecords is how many records are allocated at once.
const slabRecords = 4096

// batchBytes bounds a batch; recordBytes stands for what a record takes beside key and value.
const (
	batchBytes  = 900_000
	recordBytes = 16
)

// fits tells whether a record can be added.
func (b *batch) fits(key, value []byte) bool {
	return len(b.records) == 0 || b.bytes+len(key)+len(value)+recordBytes <= batchBytes
}

// add appends a record; key and value belong to the batch until it is written.
func (b *batch) add(key, value []byte, at time.Time) {
	if len(b.records) == 0 {
		b.first, b.last = at, at
	}
	if len(b.slab) == cap(b.slab) {
		b.slab = make([]sarama.Record, 0, slabRecords)
	}
	b.slab = append(b.slab, sarama.Record{
		Key: key, Value: value, OffsetDelta: int64(len(b.records)), TimestampDelta: at.Sub(b.first),
	})
	b.records = append(b.records, &b.slab[len(b.slab)-1])
	b.bytes += len(key) + len(value) + recordBytes
	if at.After(b.last) {
		b.last = at
	}
}

// author is what a batch says about its producer.
type author struct {
	id       int64
	epoch    int16
	sequence int32
}

// anonymous is a producer without an id.
var anonymous = author{id: -1, epoch: -1, sequence: -1}

// seal returns the batch as it goes on the wire.
func (b *batch) seal(by author) *sarama.RecordBatch {
	return &sarama.RecordBatch{
		Version: 2, FirstTimestamp: b.first, MaxTimestamp: b.last, LastOffsetDelta: int32(len(b.records) - 1), Records: b.records,
		ProducerID: by.id, ProducerEpoch: by.epoch, FirstSequence: by.sequence, IsTransactional: by.id >= 0,
	}
}

// clear empties the batch, keeping its memory. It must have been written.
func (b *batch) clear() {
	b.records, b.slab, b.bytes = b.records[:0], b.slab[:0], 0
}
