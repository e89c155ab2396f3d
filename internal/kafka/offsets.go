package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/processor"
)

// Pauses between tries that are made until they succeed.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = time.Second
)

// Range is what a partition's log holds: offsets from Start up to End, not included. End is the high watermark.
type Range struct{ Start, End int64 }

// Ranges returns what the logs hold. It tries again until it knows all of them, or ctx ends, or a broker's refusal cannot
// be helped by a retry. A partition that stays unknown is an *UnknownTopicError.
func (c *Cluster) Ranges(ctx context.Context, partitions []processor.TopicPartition) (map[processor.TopicPartition]Range, error) {
	all := map[processor.TopicPartition]Range{}
	began := time.Now()
	for wait := firstPause; ; wait = min(2*wait, lastPause) {
		found, failed := c.ranges(partitions)
		for tp, r := range found {
			all[tp] = r
		}
		partitions = partitions[:0:0]
		for tp, err := range failed {
			if err := c.hopeless(tp, err, time.Since(began)); err != nil {
				return nil, err
			}
			partitions = append(partitions, tp)
		}
		if len(partitions) == 0 {
			return all, nil
		}
		if !pause(ctx, wait) || c.ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// hopeless returns the error to give up with when a partition cannot be asked about, nil if it is worth another try.
func (c *Cluster) hopeless(tp processor.TopicPartition, err error, since time.Duration) error {
	code, _ := refusal(err)
	switch code {
	case sarama.ErrTopicAuthorizationFailed, sarama.ErrGroupAuthorizationFailed, sarama.ErrUnsupportedVersion, sarama.ErrInvalidTopic:
		return &PartitionError{TopicPartition: tp, Err: code}
	case sarama.ErrUnknownTopicOrPartition:
		if since >= c.cfg.UnknownTopicAfter {
			return &UnknownTopicError{tp}
		}
	}
	return nil
}

// ranges asks once.
func (c *Cluster) ranges(partitions []processor.TopicPartition) (map[processor.TopicPartition]Range, map[processor.TopicPartition]error) {
	found, failed := map[processor.TopicPartition]Range{}, map[processor.TopicPartition]error{}
	byLeader := map[string][]processor.TopicPartition{}
	for _, tp := range partitions {
		addr, err := c.leader(tp)
		if err != nil {
			failed[tp] = err
			continue
		}
		byLeader[addr] = append(byLeader[addr], tp)
	}
	stale := map[string]bool{}
	for addr, tps := range byLeader {
		c.rangesAt(addr, tps, found, failed)
	}
	for tp := range failed {
		stale[tp.Topic] = true
	}
	for topic := range stale {
		_ = c.control.RefreshMetadata(topic) // the next try finds out
	}
	return found, failed
}

func (c *Cluster) rangesAt(addr string, tps []processor.TopicPartition, found map[processor.TopicPartition]Range, failed map[processor.TopicPartition]error) {
	fail := func(err error) {
		for _, tp := range tps {
			failed[tp] = err
		}
	}
	b, err := c.admin.to(addr)
	if err != nil {
		fail(err)
		return
	}
	var ends [2]*sarama.OffsetResponse
	for i, which := range []int64{sarama.OffsetOldest, sarama.OffsetNewest} {
		if ends[i], err = b.GetAvailableOffsets(listOffsets(c.conf.Version, tps, which)); err != nil {
			c.admin.drop(b)
			fail(err)
			return
		}
	}
	for _, tp := range tps {
		start, err := listed(ends[0], tp)
		end, err2 := listed(ends[1], tp)
		if err := errors.Join(err, err2); err != nil {
			failed[tp] = err
			continue
		}
		found[tp] = Range{start, end}
	}
}

func listOffsets(version sarama.KafkaVersion, tps []processor.TopicPartition, which int64) *sarama.OffsetRequest {
	req := sarama.NewOffsetRequest(version)
	for _, tp := range tps {
		req.AddBlock(tp.Topic, tp.Partition, which, 1)
	}
	return req
}

var errNoAnswer = errors.New("kafka: the answer does not name the partition")

func listed(resp *sarama.OffsetResponse, tp processor.TopicPartition) (int64, error) {
	b := resp.GetBlock(tp.Topic, tp.Partition)
	if b == nil {
		return 0, errNoAnswer
	}
	if b.Err != sarama.ErrNoError {
		return 0, b.Err
	}
	return b.Offset, nil
}

// committed is a position of the group, or why it is not known. Offset is -1 when there is none.
type committed struct {
	offset   int64
	metadata string
	err      error
}

// committedOffsets asks once for stable positions: those that no open transaction is about to change. An error is never
// taken for "none".
func (c *Cluster) committedOffsets(tps []processor.TopicPartition) (map[processor.TopicPartition]committed, error) {
	all := map[processor.TopicPartition]committed{}
	resp, err := c.fetchOffsets(tps)
	if errors.Is(err, sarama.ErrGroupIDNotFound) { // nobody has joined or committed yet
		for _, tp := range tps {
			all[tp] = committed{offset: -1}
		}
		return all, nil
	}
	if err != nil {
		return nil, fmt.Errorf("kafka: committed offsets of group %q: %w", c.cfg.App, err)
	}
	for _, tp := range tps {
		b := resp.GetBlock(tp.Topic, tp.Partition)
		switch {
		case b == nil:
			all[tp] = committed{err: errNoAnswer}
		case b.Err != sarama.ErrNoError:
			all[tp] = committed{err: b.Err}
		default:
			all[tp] = committed{offset: b.Offset, metadata: b.Metadata}
		}
	}
	return all, nil
}

func (c *Cluster) fetchOffsets(tps []processor.TopicPartition) (*sarama.OffsetFetchResponse, error) {
	coordinator, err := c.control.Coordinator(c.cfg.App)
	if err != nil {
		return nil, err
	}
	b, err := c.admin.to(coordinator.Addr())
	if err != nil {
		return nil, err
	}
	partitions := map[string][]int32{}
	for _, tp := range tps {
		partitions[tp.Topic] = append(partitions[tp.Topic], tp.Partition)
	}
	// Version 7 is the first that can ask for stable offsets, and the last before requests about several groups.
	req := sarama.NewOffsetFetchRequest(sarama.V2_5_0_0, c.cfg.App, partitions)
	req.RequireStable = true
	resp, err := b.FetchOffset(req)
	if err != nil {
		c.admin.drop(b)
		_ = c.control.RefreshCoordinator(c.cfg.App) // the next try finds out
		return nil, err
	}
	switch resp.Err {
	case sarama.ErrNoError:
		return resp, nil
	case sarama.ErrNotCoordinatorForConsumer, sarama.ErrConsumerCoordinatorNotAvailable:
		_ = c.control.RefreshCoordinator(c.cfg.App)
	}
	return nil, resp.Err
}
