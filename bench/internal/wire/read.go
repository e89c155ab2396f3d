package wire

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/bench/internal/work"
	"github.com/millrace-streams/millrace/internal/topicread"
)

// Check reads a run's output as committed and compares it with the table that it must be.
func (c *Cluster) Check(ctx context.Context, topic string, want *work.Table) error {
	if err := topicread.Settled(ctx, c.client, topic); err != nil {
		return fmt.Errorf("read the table: %w", err)
	}
	want.Clear()
	err := topicread.Committed(ctx, c.client, topic, func(r topicread.Record) error {
		if err := want.Add(r.Key, r.Value); err != nil {
			return fmt.Errorf("record %s-%d@%d: %w", topic, r.Partition, r.Offset, err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the table: %w", err)
	}
	return want.Check()
}

var errEnough = errors.New("enough")

// firstTime returns the time of the topic's first record.
func (c *Cluster) firstTime(ctx context.Context, topic string) (at time.Time, err error) {
	err = topicread.Committed(ctx, c.client, topic, func(r topicread.Record) error {
		at = r.Timestamp
		return errEnough
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return at, err
}

// Progress says how far a group is.
type Progress struct {
	cluster *Cluster
	group   string
	asked   map[string][]int32
	inputs  []string // upstream first
}

// Progress returns that of a group that reads these topics, upstream first, of so many partitions each.
func (c *Cluster) Progress(group string, partitions int, inputs ...string) *Progress {
	p := &Progress{cluster: c, group: group, inputs: inputs, asked: map[string][]int32{}}
	for _, t := range inputs {
		for i := range int32(partitions) {
			p.asked[t] = append(p.asked[t], i)
		}
	}
	return p
}

// Done tells whether the group has committed all that its inputs hold. Markers behind the last record need not be passed:
// Kafka Streams passes them with its next commit.
func (p *Progress) Done(ctx context.Context) (bool, error) {
	var committed *sarama.OffsetFetchResponse
	err := again(func() (err error) {
		committed, err = p.cluster.admin.ListConsumerGroupOffsets(p.group, p.asked)
		return err
	})
	if errors.Is(err, sarama.ErrGroupIDNotFound) { // of a group that has committed nothing some brokers know nothing
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("offsets of group %s: %w", p.group, err)
	}
	for _, t := range p.inputs { // the ends of a topic are looked up when what writes to it is through
		ends, err := p.cluster.Ends(t)
		if err != nil {
			return false, err
		}
		for i, end := range ends {
			at := int64(0)
			if block := committed.GetBlock(t, int32(i)); block != nil && block.Err == sarama.ErrNoError {
				at = max(at, block.Offset)
			}
			done, err := p.cluster.onlyMarkers(t, int32(i), at, end)
			if !done || err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// fewMarkers is more than follow the last record.
const fewMarkers = 16

// onlyMarkers tells whether no records but those of control lie in [from, end).
func (c *Cluster) onlyMarkers(topic string, partition int32, from, end int64) (bool, error) {
	if from >= end || end-from > fewMarkers {
		return from >= end, nil
	}
	leader, err := c.client.Leader(topic, partition)
	if err != nil {
		return false, err
	}
	req := &sarama.FetchRequest{Version: 11, MinBytes: 1, MaxBytes: 1 << 20, MaxWaitTime: 100, SessionEpoch: -1}
	req.AddBlock(topic, partition, from, 1<<20, -1)
	resp, err := leader.Fetch(req)
	if err != nil {
		return false, err
	}
	block := resp.GetBlock(topic, partition)
	if block == nil || block.Err != sarama.ErrNoError {
		return false, nil
	}
	for _, set := range block.RecordsSet {
		if b := set.RecordBatch; b != nil && !b.Control && b.LastOffset() >= from {
			return false, nil
		}
	}
	return true, nil
}
