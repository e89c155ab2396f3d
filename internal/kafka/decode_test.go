package kafka

import (
	"encoding/binary"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/processor"
)

// batchOf is a batch of n records at an offset.
func batchOf(first int64, n int, pid int64) *sarama.RecordBatch {
	b := &sarama.RecordBatch{Version: 2, FirstOffset: first, LastOffsetDelta: int32(n - 1), FirstTimestamp: time.UnixMilli(100), MaxTimestamp: time.UnixMilli(900), ProducerID: pid, IsTransactional: pid >= 0}
	for i := range n {
		b.Records = append(b.Records, &sarama.Record{OffsetDelta: int64(i), TimestampDelta: time.Duration(i) * time.Millisecond, Value: []byte{byte(first) + byte(i)}})
	}
	return b
}

// marker is the control batch that ends a transaction.
func marker(at, pid int64, commit bool) *sarama.RecordBatch {
	key := make([]byte, 4)
	if commit {
		binary.BigEndian.PutUint16(key[2:], 1)
	}
	return &sarama.RecordBatch{Version: 2, FirstOffset: at, ProducerID: pid, IsTransactional: true, Control: true, Records: []*sarama.Record{{Key: key}}}
}

func block(aborted []*sarama.AbortedTransaction, batches ...*sarama.RecordBatch) *sarama.FetchResponseBlock {
	b := &sarama.FetchResponseBlock{AbortedTransactions: aborted}
	for _, batch := range batches {
		b.RecordsSet = append(b.RecordsSet, &sarama.Records{RecordBatch: batch})
	}
	return b
}

func offsets(records []processor.Raw) []int64 {
	os := []int64{}
	for _, r := range records {
		os = append(os, r.Offset)
	}
	return os
}

func TestDecode(t *testing.T) {
	t.Parallel()
	aborted := func(pairs ...int64) (all []*sarama.AbortedTransaction) {
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, &sarama.AbortedTransaction{ProducerID: pairs[i], FirstOffset: pairs[i+1]})
		}
		return all
	}
	partial := batchOf(2, 5, -1)
	partial.PartialTrailingRecord, partial.Records = true, nil
	for name, c := range map[string]struct {
		block *sarama.FetchResponseBlock
		from  int64
		want  []int64
		next  int64
	}{
		"plain":                               {block(nil, batchOf(0, 2, -1), batchOf(2, 1, -1)), 0, []int64{0, 1, 2}, 3},
		"begins inside a batch":               {block(nil, batchOf(0, 5, -1)), 3, []int64{3, 4}, 5},
		"ends with a marker":                  {block(nil, batchOf(0, 2, 7), marker(2, 7, true)), 0, []int64{0, 1}, 3},
		"only a marker":                       {block(nil, marker(2, 7, true)), 2, []int64{}, 3},
		"aborted":                             {block(aborted(7, 0), batchOf(0, 2, 7), marker(2, 7, false), batchOf(3, 1, 7), marker(4, 7, true)), 0, []int64{3}, 5},
		"aborted, from the middle":            {block(aborted(7, 0), batchOf(0, 2, 7), marker(2, 7, false), batchOf(3, 1, 7)), 1, []int64{3}, 4},
		"interleaved":                         {block(aborted(7, 0), batchOf(0, 1, 7), batchOf(1, 1, 8), batchOf(2, 1, -1), batchOf(3, 1, 7), marker(4, 7, false), marker(5, 8, true)), 0, []int64{1, 2}, 6},
		"aborted twice, listed in disorder":   {block(aborted(7, 4, 7, 0), batchOf(0, 1, 7), marker(1, 7, false), batchOf(2, 1, 7), marker(3, 7, true), batchOf(4, 1, 7), marker(5, 7, false)), 0, []int64{2}, 6},
		"an abort behind what was fetched":    {block(aborted(7, 9), batchOf(0, 2, 7)), 0, []int64{0, 1}, 2},
		"a batch that compaction has thinned": {block(nil, &sarama.RecordBatch{FirstOffset: 0, LastOffsetDelta: 9, Records: []*sarama.Record{{OffsetDelta: 4}}}), 0, []int64{4}, 10},
		"a partial batch at the end":          {block(nil, batchOf(0, 2, -1), partial), 0, []int64{0, 1}, 2},
		"nothing":                             {block(nil), 5, []int64{}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := decode(c.block, c.from, new(spares))
			if err != nil || !reflect.DeepEqual(offsets(r.records), c.want) || r.next != c.next {
				t.Errorf("offsets %v, next %d, error %v; want %v and %d", offsets(r.records), r.next, err, c.want, c.next)
			}
		})
	}
	if r, _ := decode(block(nil, partial), 2, new(spares)); !r.partial || r.next != 2 {
		t.Errorf("a batch larger than the fetch: %+v", r)
	}
}

func TestDecodeTimestamps(t *testing.T) {
	t.Parallel()
	appended, none := batchOf(0, 2, -1), batchOf(0, 1, -1)
	appended.LogAppendTime = true
	none.FirstTimestamp = time.Time{}
	for name, c := range map[string]struct {
		batch *sarama.RecordBatch
		want  int64 // of the last record
	}{"create time": {batchOf(0, 2, -1), 101}, "log append time": {appended, 900}, "none": {none, -1}} {
		r, err := decode(block(nil, c.batch), 0, new(spares))
		if err != nil || r.records[len(r.records)-1].Timestamp != c.want {
			t.Errorf("%s: %v, %v", name, r.records, err)
		}
	}
}

func TestDecodeRefusesOldFormats(t *testing.T) {
	t.Parallel()
	b := &sarama.FetchResponseBlock{RecordsSet: []*sarama.Records{{MsgSet: &sarama.MessageSet{}}}}
	if _, err := decode(b, 0, new(spares)); !errors.Is(err, ErrOldFormat) {
		t.Errorf("error %v", err)
	}
}

// TestEmptyBatches: sarama leaves out the batches that compaction has emptied, and the position behind them is in a field
// that is not exported. Should it be renamed, this test says so.
func TestEmptyBatches(t *testing.T) {
	t.Parallel()
	field, ok := reflect.TypeFor[sarama.FetchResponseBlock]().FieldByName("recordsNextOffset")
	if !ok || field.Type != reflect.TypeFor[*int64]() {
		t.Fatal("sarama.FetchResponseBlock has no field recordsNextOffset of type *int64 any more")
	}
	if got := emptyBatchesEnd(&sarama.FetchResponseBlock{}); got != -1 {
		t.Errorf("without batches: %d", got)
	}
}
