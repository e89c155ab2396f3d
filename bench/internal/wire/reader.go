package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/IBM/sarama"
)

// Block is what one fetch brought of one partition.
type Block struct {
	Topic      string
	Partition  int32
	From, Next int64 // the positions before and behind, past control records
	batches    []*sarama.RecordBatch
}

// Each calls fn for the records of a block, with the time of each in ms.
func (b *Block) Each(fn func(key, value []byte, ms int64)) {
	for _, batch := range b.batches {
		first := batch.FirstTimestamp.UnixMilli()
		for _, r := range batch.Records {
			if batch.FirstOffset+r.OffsetDelta >= b.From {
				fn(r.Key, r.Value, first+r.TimestampDelta.Milliseconds())
			}
		}
	}
}

// Cursor is a place in a partition.
type Cursor struct {
	topic     string
	partition int32
	next, end int64 // end is endless for a topic that is still being written
}

const endless = -1

func (c *Cursor) done() bool { return c.end != endless && c.next >= c.end }

// Whole returns cursors over all that a topic's partitions hold now.
func (c *Cluster) Whole(topic string) ([]*Cursor, error) {
	ends, err := c.Ends(topic)
	var all []*Cursor
	for p, end := range ends {
		all = append(all, &Cursor{topic: topic, partition: int32(p), end: end})
	}
	return all, err
}

// Onwards returns cursors over a topic from its end on.
func (c *Cluster) Onwards(topic string) ([]*Cursor, error) {
	ends, err := c.Ends(topic)
	var all []*Cursor
	for p, end := range ends {
		all = append(all, &Cursor{topic: topic, partition: int32(p), next: end, end: endless})
	}
	return all, err
}

// Reader reads committed records batch by batch, ahead of whoever takes the blocks.
type Reader struct {
	Blocks chan Block // closed when all cursors are done
	client sarama.Client
	mu     sync.Mutex
	err    error // set before Blocks is closed
}

// Bytes asked for in one fetch, and blocks that are read ahead.
const (
	fetchPartition = 1 << 20
	fetchAll       = 32 << 20
	ahead          = 8
)

// Read starts to read, one goroutine for each leader, until all cursors are done or ctx ends.
func (c *Cluster) Read(ctx context.Context, cursors []*Cursor) (*Reader, error) {
	r := &Reader{client: c.client, Blocks: make(chan Block, ahead)}
	byLeader := map[*sarama.Broker][]*Cursor{}
	for _, cur := range cursors {
		leader, err := c.client.Leader(cur.topic, cur.partition)
		if err != nil {
			return nil, fmt.Errorf("leader of %s-%d: %w", cur.topic, cur.partition, err)
		}
		byLeader[leader] = append(byLeader[leader], cur)
	}
	var loops sync.WaitGroup
	for leader, cursors := range byLeader {
		loops.Go(func() {
			if err := r.loop(ctx, leader, cursors); err != nil {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.err = errors.Join(r.err, err)
			}
		})
	}
	go func() {
		loops.Wait()
		close(r.Blocks)
	}()
	return r, nil
}

func (r *Reader) loop(ctx context.Context, leader *sarama.Broker, cursors []*Cursor) error {
	for {
		req := &sarama.FetchRequest{
			Version: 11, MaxWaitTime: 100, MinBytes: 1, MaxBytes: fetchAll, Isolation: sarama.ReadCommitted, SessionEpoch: -1,
		}
		asked := 0
		for _, c := range cursors {
			if !c.done() {
				req.AddBlock(c.topic, c.partition, c.next, fetchPartition, -1)
				asked++
			}
		}
		if asked == 0 || ctx.Err() != nil {
			return ctx.Err()
		}
		resp, err := leader.Fetch(req)
		if err != nil {
			return fmt.Errorf("fetch: %w", err)
		}
		for _, c := range cursors {
			if err := r.take(ctx, c, resp.GetBlock(c.topic, c.partition)); err != nil {
				return err
			}
		}
	}
}

// take hands on what a response holds for a cursor.
func (r *Reader) take(ctx context.Context, c *Cursor, got *sarama.FetchResponseBlock) error {
	if got == nil {
		return nil
	}
	if got.Err != sarama.ErrNoError {
		return fmt.Errorf("fetch %s-%d at %d: %w", c.topic, c.partition, c.next, got.Err)
	}
	b := Block{Topic: c.topic, Partition: c.partition, From: c.next, Next: c.next}
	drop := aborted(got)
	for _, set := range got.RecordsSet {
		batch := set.RecordBatch
		if batch == nil || batch.PartialTrailingRecord {
			break
		}
		b.Next = batch.LastOffset() + 1
		if !drop(batch) {
			b.batches = append(b.batches, batch)
		}
	}
	if b.Next == c.next {
		return nil
	}
	c.next = b.Next
	select {
	case r.Blocks <- b:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// aborted returns a function that is given the batches of a response in order and picks out markers and aborted batches.
func aborted(got *sarama.FetchResponseBlock) func(*sarama.RecordBatch) bool {
	aborts := slices.SortedFunc(slices.Values(got.AbortedTransactions), func(a, b *sarama.AbortedTransaction) int {
		return cmp.Compare(a.FirstOffset, b.FirstOffset)
	})
	open := map[int64]bool{}
	return func(batch *sarama.RecordBatch) bool {
		for len(aborts) > 0 && aborts[0].FirstOffset <= batch.LastOffset() {
			open[aborts[0].ProducerID] = true
			aborts = aborts[1:]
		}
		if batch.Control { // of an aborted transaction it is the abort's
			delete(open, batch.ProducerID)
			return true
		}
		return batch.IsTransactional && open[batch.ProducerID]
	}
}

// Failure returns why the blocks have ended.
func (r *Reader) Failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}
