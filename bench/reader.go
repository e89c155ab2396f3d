package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/IBM/sarama"
)

// block is what one fetch brought of one partition.
type block struct {
	topic     string
	partition int32
	batches   []*sarama.Records
	from      int64 // the position before
	next      int64 // the position behind, past control records
}

// each calls fn for the records of a block.
func (b *block) each(fn func(*sarama.Record)) {
	for _, set := range b.batches {
		batch := set.RecordBatch
		if batch.Control {
			continue
		}
		for _, r := range batch.Records {
			if batch.FirstOffset+r.OffsetDelta >= b.from {
				fn(r)
			}
		}
	}
}

// cursor is a place in a partition.
type cursor struct {
	topic     string
	partition int32
	next, end int64 // end is endless for a topic that is still being written
}

const endless = -1

func (c *cursor) done() bool { return c.end != endless && c.next >= c.end }

// reader reads partitions batch by batch, ahead of whoever takes the blocks. It does not filter aborted transactions:
// nothing is aborted here.
type reader struct {
	client sarama.Client
	blocks chan block // closed when all cursors are done
	mu     sync.Mutex
	err    error // set before blocks is closed
}

// Bytes asked for in one fetch, and blocks that are read ahead.
const (
	fetchPartition = 1 << 20
	fetchAll       = 32 << 20
	ahead          = 8
)

// read starts to read, one goroutine for each leader, until all cursors are done or ctx ends.
func read(ctx context.Context, client sarama.Client, cursors []*cursor) (*reader, error) {
	r := &reader{client: client, blocks: make(chan block, ahead)}
	byLeader := map[*sarama.Broker][]*cursor{}
	for _, c := range cursors {
		leader, err := client.Leader(c.topic, c.partition)
		if err != nil {
			return nil, fmt.Errorf("leader of %s-%d: %w", c.topic, c.partition, err)
		}
		byLeader[leader] = append(byLeader[leader], c)
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
		close(r.blocks)
	}()
	return r, nil
}

func (r *reader) loop(ctx context.Context, leader *sarama.Broker, cursors []*cursor) error {
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
func (r *reader) take(ctx context.Context, c *cursor, got *sarama.FetchResponseBlock) error {
	if got == nil {
		return nil
	}
	if got.Err != sarama.ErrNoError {
		return fmt.Errorf("fetch %s-%d at %d: %w", c.topic, c.partition, c.next, got.Err)
	}
	b := block{topic: c.topic, partition: c.partition, from: c.next, next: c.next}
	for _, set := range got.RecordsSet {
		batch := set.RecordBatch
		if batch == nil || batch.PartialTrailingRecord {
			break
		}
		b.batches = append(b.batches, set)
		b.next = batch.LastOffset() + 1
	}
	if len(b.batches) == 0 {
		return nil
	}
	c.next = b.next
	select {
	case r.blocks <- b:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// failure returns why the blocks have ended.
func (r *reader) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// fromStart returns cursors over all of a topic's partitions as they are now.
func fromStart(client sarama.Client, topic string) ([]*cursor, error) {
	ends, err := ends(client, topic)
	if err != nil {
		return nil, err
	}
	var all []*cursor
	for p, end := range ends {
		all = append(all, &cursor{topic: topic, partition: int32(p), end: end})
	}
	return all, nil
}
