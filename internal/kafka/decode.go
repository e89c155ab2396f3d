package kafka

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/processor"
)

// recordBytes stands for the memory of a fetched record beside its key and value.
const recordBytes = 100

// abortMarker is the type of a control record that ends an aborted transaction.
const abortMarker = 0

// read is what one fetch brought of one partition.
type read struct {
	records []processor.Raw
	next    int64 // position behind all that was read, control records and aborted ones included
	bytes   int
	partial bool // the log goes on with a batch that is larger than what was asked for
}

// decode takes the committed records at or after from out of a response. Keys and values are parts of the response.
func decode(block *sarama.FetchResponseBlock, from int64, free *spares) (read, error) {
	r := read{next: from}
	aborted := newAborts(block.AbortedTransactions)
	for i, set := range block.RecordsSet {
		batch := set.RecordBatch
		if batch == nil {
			return r, fmt.Errorf("%w at offset %d", ErrOldFormat, r.next)
		}
		if batch.PartialTrailingRecord {
			r.partial = true
			break
		}
		if !aborted.skips(batch) {
			if r.records == nil {
				r.records = free.take(capacity(block.RecordsSet[i:]))
			}
			r.take(batch, from)
		}
		r.next = max(r.next, batch.LastOffset()+1)
	}
	if len(block.RecordsSet) == 0 && !block.Partial {
		r.next = max(r.next, emptyBatchesEnd(block))
	}
	return r, nil
}

func capacity(sets []*sarama.Records) int {
	n := 0
	for _, s := range sets {
		if b := s.RecordBatch; b != nil && !b.Control {
			n += len(b.Records)
		}
	}
	return n
}

// take appends a batch's records, leaving out those before from: a batch is sent whole.
func (r *read) take(batch *sarama.RecordBatch, from int64) {
	first, appended := millis(batch.FirstTimestamp), millis(batch.MaxTimestamp)
	for _, rec := range batch.Records {
		offset := batch.FirstOffset + rec.OffsetDelta
		if offset < from {
			continue
		}
		raw := processor.Raw{Key: rec.Key, Value: rec.Value, Offset: offset, Timestamp: first + rec.TimestampDelta.Milliseconds()}
		if batch.LogAppendTime {
			raw.Timestamp = appended
		}
		if len(rec.Headers) > 0 {
			raw.Headers = headers(rec.Headers)
		}
		r.records = append(r.records, raw)
		r.bytes += len(rec.Key) + len(rec.Value) + recordBytes
	}
}

// millis undoes sarama's reading of a timestamp: what is negative on the wire has become the zero time.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return -1
	}
	return t.UnixMilli()
}

func headers(from []*sarama.RecordHeader) []processor.Header {
	hs := make([]processor.Header, len(from))
	for i, h := range from {
		hs[i] = processor.Header{Key: string(h.Key), Value: h.Value}
	}
	return hs
}

// emptyBatchesEnd returns the position behind batches that compaction has emptied. sarama leaves them out, and tells the
// position only in a field of its own; without it a reader would ask for the same offset for ever.
func emptyBatchesEnd(block *sarama.FetchResponseBlock) int64 {
	f := reflect.ValueOf(block).Elem().FieldByName("recordsNextOffset")
	if !f.IsValid() || f.Kind() != reflect.Pointer || f.IsNil() {
		return -1
	}
	return f.Elem().Int()
}

// aborts follows the aborted transactions of a response along its batches.
type aborts struct {
	ahead []*sarama.AbortedTransaction // by first offset
	open  map[int64]bool               // producers inside an aborted transaction
}

func newAborts(all []*sarama.AbortedTransaction) *aborts {
	a := &aborts{}
	if len(all) > 0 {
		a.ahead = slices.Clone(all)
		slices.SortStableFunc(a.ahead, func(x, y *sarama.AbortedTransaction) int { return int(x.FirstOffset - y.FirstOffset) })
		a.open = map[int64]bool{}
	}
	return a
}

// skips reports whether the batch holds nothing for a reader: control records, or records of an aborted transaction.
func (a *aborts) skips(batch *sarama.RecordBatch) bool {
	for len(a.ahead) > 0 && a.ahead[0].FirstOffset <= batch.LastOffset() {
		a.open[a.ahead[0].ProducerID] = true
		a.ahead = a.ahead[1:]
	}
	if batch.Control {
		if isAbort(batch) {
			delete(a.open, batch.ProducerID)
		}
		return true
	}
	return batch.IsTransactional && a.open[batch.ProducerID]
}

func isAbort(control *sarama.RecordBatch) bool {
	if len(control.Records) == 0 || len(control.Records[0].Key) < 4 {
		return false
	}
	return binary.BigEndian.Uint16(control.Records[0].Key[2:]) == abortMarker
}
