// Package topicread reads a whole topic as a reader of committed records sees it, and knows when it is through: a plain
// consumer does not say when it has passed the last record, if that record is a marker or belongs to an aborted
// transaction. It is for small jobs at the edge, examples and tests; the runtime reads with internal/kafka.
package topicread

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/IBM/sarama"
)

// Record is a committed record. Key and Value are null when nil.
type Record struct {
	Partition  int32
	Offset     int64
	Key, Value []byte
	Timestamp  time.Time
	Headers    []*sarama.RecordHeader
}

// Committed calls fn for each committed record of the topic, by partition and then offset, from the log's start to its
// last stable offset at the time of the call. It does not wait for transactions that are open. An error of fn ends it.
func Committed(ctx context.Context, client sarama.Client, topic string, fn func(Record) error) error {
	return CommittedFrom(ctx, client, topic, nil, fn)
}

// CommittedFrom is Committed that begins at an offset of each partition. One that is missing in from, or below the log's
// start, stands for the log's start.
func CommittedFrom(ctx context.Context, client sarama.Client, topic string, from map[int32]int64, fn func(Record) error) error {
	partitions, err := client.Partitions(topic)
	if err != nil {
		return fmt.Errorf("topicread: %s: %w", topic, err)
	}
	slices.Sort(partitions)
	for _, p := range partitions {
		r := reader{ctx: ctx, client: client, topic: topic, partition: p, fn: fn}
		if err := r.run(from[p]); err != nil {
			return fmt.Errorf("topicread: %s-%d: %w", topic, p, err)
		}
	}
	return nil
}

// LastStableOffset returns the offset up to which a reader of committed records can read the partition.
func LastStableOffset(ctx context.Context, client sarama.Client, topic string, partition int32) (end int64, err error) {
	r := reader{ctx: ctx, client: client, topic: topic, partition: partition}
	err = r.retry(func() (err error) { end, err = r.offset(sarama.OffsetNewest); return err })
	return end, err
}

// Settled waits until no transaction is open on the topic. Kafka answers a commit before all of its markers are written, so
// what is committed may become visible a little later. It is of use once nobody writes any more.
func Settled(ctx context.Context, client sarama.Client, topic string) error {
	partitions, err := client.Partitions(topic)
	if err != nil {
		return fmt.Errorf("topicread: %s: %w", topic, err)
	}
	for _, p := range partitions {
		r := reader{ctx: ctx, client: client, topic: topic, partition: p}
		if err := r.retry(r.settled); err != nil {
			return fmt.Errorf("topicread: %s-%d: %w", topic, p, err)
		}
	}
	return nil
}

var errOpen = errors.New("a transaction is open")

// settled returns nil when the log is stable up to its end.
func (r *reader) settled() error {
	stable, err := r.offset(sarama.OffsetNewest)
	if err != nil {
		return err
	}
	end, err := r.client.GetOffset(r.topic, r.partition, sarama.OffsetNewest)
	if err != nil {
		return err
	}
	if stable < end {
		return errOpen
	}
	return nil
}

// patience is how long a partition may be out of reach.
const patience = 30 * time.Second

// reader reads one partition by plain fetch requests.
type reader struct {
	ctx       context.Context
	fn        func(Record) error
	client    sarama.Client
	topic     string
	partition int32
	next, end int64
	stopped   error // fn's
}

func (r *reader) run(from int64) error {
	err := r.retry(func() (err error) {
		if r.next, err = r.offset(sarama.OffsetOldest); err == nil {
			r.end, err = r.offset(sarama.OffsetNewest)
		}
		return err
	})
	if err != nil {
		return err
	}
	r.next = max(r.next, from)
	for r.next < r.end && r.stopped == nil {
		if err := r.retry(r.fetch); err != nil {
			return err
		}
	}
	return r.stopped
}

// retry runs the call again while the broker is elsewhere or still loading.
func (r *reader) retry(call func() error) error {
	deadline := time.Now().Add(patience)
	for {
		err := call()
		if err == nil || errors.Is(err, sarama.ErrOffsetOutOfRange) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-r.ctx.Done():
			return r.ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
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
	if r.next == before && r.stopped == nil {
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
	if len(block.RecordsSet) == 0 && !block.Partial {
		r.next = max(r.next, emptyBatchesEnd(block))
	}
	return nil
}

// emptyBatchesEnd returns the position behind batches that compaction has emptied. sarama leaves them out, and tells the
// position only in a field of its own.
func emptyBatchesEnd(block *sarama.FetchResponseBlock) int64 {
	f := reflect.ValueOf(block).Elem().FieldByName("recordsNextOffset")
	if !f.IsValid() || f.Kind() != reflect.Pointer || f.IsNil() {
		return -1
	}
	return f.Elem().Int()
}

func isAbort(batch *sarama.RecordBatch) bool {
	return len(batch.Records) > 0 && len(batch.Records[0].Key) >= 4 && binary.BigEndian.Uint16(batch.Records[0].Key[2:]) == 0
}

func (r *reader) add(batch *sarama.RecordBatch) {
	for _, rec := range batch.Records {
		offset := batch.FirstOffset + rec.OffsetDelta
		if offset < r.next || offset >= r.end || r.stopped != nil {
			continue
		}
		out := Record{Partition: r.partition, Offset: offset, Key: rec.Key, Value: rec.Value,
			Timestamp: batch.FirstTimestamp.Add(rec.TimestampDelta), Headers: rec.Headers}
		if batch.LogAppendTime {
			out.Timestamp = batch.MaxTimestamp
		}
		r.stopped = r.fn(out)
	}
}
