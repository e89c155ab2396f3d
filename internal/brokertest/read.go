package brokertest

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/IBM/sarama"
)

// ReadCommitted returns the committed records of the topic, by partition and then offset, from the log's start to its
// last stable offset at the time of the call. It does not wait for transactions that are open.
func ReadCommitted(t testing.TB, brokers []string, topic string) []Record {
	t.Helper()
	client := open(t, brokers)
	defer client.Close()
	partitions, err := client.Partitions(topic)
	if err != nil {
		t.Fatalf("brokertest: read %s: %v", topic, err)
	}
	slices.Sort(partitions)
	var all []Record
	for _, p := range partitions {
		r := reader{client: client, topic: topic, partition: p}
		if err := r.run(); err != nil {
			t.Fatalf("brokertest: read %s-%d: %v", topic, p, err)
		}
		all = append(all, r.records...)
	}
	return all
}

// LastStableOffset returns the offset up to which a reader of committed records can read the partition.
func LastStableOffset(t testing.TB, brokers []string, topic string, partition int32) int64 {
	t.Helper()
	client := open(t, brokers)
	defer client.Close()
	r := reader{client: client, topic: topic, partition: partition}
	var end int64
	if err := r.retry(func() (err error) { end, err = r.offset(sarama.OffsetNewest); return err }); err != nil {
		t.Fatalf("brokertest: last stable offset of %s-%d: %v", topic, partition, err)
	}
	return end
}

// reader reads one partition by plain fetch requests: a consumer would not say when it is past the last record, if that
// record is a marker or belongs to an aborted transaction.
type reader struct {
	client    sarama.Client
	topic     string
	partition int32

	next, end int64
	records   []Record
}

func (r *reader) run() error {
	err := r.retry(func() (err error) {
		if r.next, err = r.offset(sarama.OffsetOldest); err == nil {
			r.end, err = r.offset(sarama.OffsetNewest)
		}
		return err
	})
	if err != nil {
		return err
	}
	for r.next < r.end {
		if err := r.retry(r.fetch); err != nil {
			return err
		}
	}
	return nil
}

// retry runs the call again while the broker is elsewhere or still loading.
func (r *reader) retry(call func() error) error {
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := call()
		if err == nil || errors.Is(err, sarama.ErrOffsetOutOfRange) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
		_ = r.client.RefreshMetadata(r.topic) // the next call reports what is wrong
	}
}

func (r *reader) offset(which int64) (int64, error) {
	leader, err := r.client.Leader(r.topic, r.partition)
	if err != nil {
		return 0, err
	}
	req := &sarama.OffsetRequest{Version: 2, IsolationLevel: sarama.ReadCommitted}
	req.AddBlock(r.topic, r.partition, which, 1)
	resp, err := leader.GetAvailableOffsets(req)
	if err != nil {
		return 0, err
	}
	block := resp.GetBlock(r.topic, r.partition)
	if block == nil {
		return 0, errors.New("no answer for the partition")
	}
	if block.Err != sarama.ErrNoError {
		return 0, block.Err
	}
	return block.Offset, nil
}

// fetch reads one response and moves next past it.
func (r *reader) fetch() error {
	leader, err := r.client.Leader(r.topic, r.partition)
	if err != nil {
		return err
	}
	req := &sarama.FetchRequest{Version: 11, MinBytes: 1, MaxBytes: 16 << 20, MaxWaitTime: 500,
		Isolation: sarama.ReadCommitted, SessionEpoch: -1}
	req.AddBlock(r.topic, r.partition, r.next, 16<<20, -1)
	resp, err := leader.Fetch(req)
	if err != nil {
		return err
	}
	block := resp.GetBlock(r.topic, r.partition)
	if block == nil {
		return errors.New("no answer for the partition")
	}
	if block.Err != sarama.ErrNoError {
		return block.Err
	}
	before := r.next
	if err := r.take(block); err != nil {
		return err
	}
	if r.next == before {
		return fmt.Errorf("nothing at offset %d before the end %d", r.next, r.end)
	}
	return nil
}

// take appends the committed records of a response. A batch belongs to an aborted transaction when its producer has an
// abort listed at or before it and the abort's marker is yet to come.
func (r *reader) take(block *sarama.FetchResponseBlock) error {
	aborts := slices.Clone(block.AbortedTransactions)
	slices.SortFunc(aborts, func(a, b *sarama.AbortedTransaction) int { return cmp.Compare(a.FirstOffset, b.FirstOffset) })
	aborting := map[int64]bool{}
	for _, set := range block.RecordsSet {
		batch := set.RecordBatch
		if batch == nil {
			return errors.New("a message set of an old format")
		}
		if batch.PartialTrailingRecord {
			return nil
		}
		for len(aborts) > 0 && aborts[0].FirstOffset <= batch.LastOffset() {
			aborting[aborts[0].ProducerID] = true
			aborts = aborts[1:]
		}
		switch {
		case batch.Control:
			if isAbort(batch) {
				delete(aborting, batch.ProducerID)
			}
		case batch.IsTransactional && aborting[batch.ProducerID]:
		default:
			r.add(batch)
		}
		r.next = max(r.next, batch.LastOffset()+1)
	}
	return nil
}

func isAbort(batch *sarama.RecordBatch) bool {
	return len(batch.Records) > 0 && len(batch.Records[0].Key) >= 4 && binary.BigEndian.Uint16(batch.Records[0].Key[2:]) == 0
}

func (r *reader) add(batch *sarama.RecordBatch) {
	for _, rec := range batch.Records {
		offset := batch.FirstOffset + rec.OffsetDelta
		if offset < r.next || offset >= r.end {
			continue
		}
		out := Record{Partition: r.partition, Offset: offset, Key: rec.Key, Value: rec.Value,
			Timestamp: batch.FirstTimestamp.Add(rec.TimestampDelta)}
		if batch.LogAppendTime {
			out.Timestamp = batch.MaxTimestamp
		}
		for _, h := range rec.Headers {
			out.Headers = append(out.Headers, Header{Key: h.Key, Value: h.Value})
		}
		r.records = append(r.records, out)
	}
}
