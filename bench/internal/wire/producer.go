package wire

import (
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/bench/internal/work"
)

// Producer writes and commits, on plain calls of the client: one transaction after the other, or at least once.
type Producer struct {
	client  sarama.Client
	id      string // transactional id, and the group whose offsets are committed
	by      author // anonymous for at least once
	batches map[Place]*queue
	coord   *sarama.Broker // of the transactions
	group   *sarama.Broker // of the group
}

// Place is a partition.
type Place struct {
	Topic     string
	Partition int32
}

// queue is what waits for one partition: batches, each below the size that a broker accepts.
type queue struct {
	ready    []*batch
	used     int // of ready
	sequence int32
}

// NewProducer returns a producer with connections of its own, those of the cluster.
func (c *Cluster) NewProducer(id string, g work.Guarantee) (p *Producer, err error) {
	p = &Producer{client: c.client, id: id, by: anonymous, batches: map[Place]*queue{}}
	if p.group, err = c.client.Coordinator(id); err == nil && g == work.ExactlyOnce {
		if p.coord, err = c.client.TransactionCoordinator(id); err == nil {
			err = p.initialise()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("producer %s: %w", id, err)
	}
	return p, nil
}

func (p *Producer) initialise() error {
	return again(func() error {
		r, err := p.coord.InitProducerID(&sarama.InitProducerIDRequest{
			Version: 4, TransactionalID: &p.id, TransactionTimeout: time.Minute, ProducerID: -1, ProducerEpoch: -1,
		})
		if err != nil {
			return err
		}
		p.by = author{id: r.ProducerID, epoch: r.ProducerEpoch}
		return code(r.Err)
	})
}

// Add puts a record into the next commit. The slices belong to the producer until that is made.
func (p *Producer) Add(to Place, key, value []byte, at time.Time) {
	q := p.batches[to]
	if q == nil {
		q = &queue{}
		p.batches[to] = q
	}
	if q.used == 0 || !q.ready[q.used-1].fits(key, value) {
		if q.used == len(q.ready) {
			q.ready = append(q.ready, &batch{})
		}
		q.used++
	}
	q.ready[q.used-1].add(key, value, at)
}

// Commit makes what was added and the positions durable: in one transaction, or the records first.
func (p *Producer) Commit(positions map[Place]int64) error {
	offsets := func() error { return p.commitOffsets(positions) }
	steps := []func() error{p.addPartitions, p.produce, p.addOffsets, offsets, p.end}
	if p.coord == nil {
		steps = []func() error{p.produce, func() error { return p.plainOffsets(positions) }}
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("commit of %s: %w", p.id, err)
		}
	}
	return nil
}

func (p *Producer) addPartitions() error {
	touched := map[string][]int32{}
	for at, q := range p.batches {
		if q.used > 0 {
			touched[at.Topic] = append(touched[at.Topic], at.Partition)
		}
	}
	if len(touched) == 0 {
		return nil
	}
	return again(func() error {
		r, err := p.coord.AddPartitionsToTxn(&sarama.AddPartitionsToTxnRequest{
			Version: 3, TransactionalID: p.id, ProducerID: p.by.id, ProducerEpoch: p.by.epoch, TopicPartitions: touched,
		})
		if err != nil {
			return err
		}
		for _, answers := range r.Errors {
			for _, a := range answers {
				if a.Err != sarama.ErrNoError {
					return a.Err
				}
			}
		}
		return nil
	})
}

// produce writes all batches: in each round one for each partition, so that none can overtake another.
func (p *Producer) produce() error {
	for round := 0; ; round++ {
		byLeader := map[*sarama.Broker]*sarama.ProduceRequest{}
		for at, q := range p.batches {
			if round >= q.used {
				continue
			}
			leader, err := p.client.Leader(at.Topic, at.Partition)
			if err != nil {
				return err
			}
			if byLeader[leader] == nil {
				byLeader[leader] = &sarama.ProduceRequest{RequiredAcks: sarama.WaitForAll, Timeout: 30_000, Version: 7}
				if p.coord != nil {
					byLeader[leader].TransactionalID = &p.id
				}
			}
			b := q.ready[round]
			by := p.by
			if p.coord != nil {
				by.sequence = q.sequence
				q.sequence += int32(len(b.records))
			}
			byLeader[leader].AddBatch(at.Topic, at.Partition, b.seal(by))
		}
		if len(byLeader) == 0 {
			break
		}
		for leader, req := range byLeader {
			if err := again(func() error { return send(leader, req) }); err != nil {
				return err
			}
		}
	}
	for _, q := range p.batches {
		for _, b := range q.ready[:q.used] {
			b.clear()
		}
		q.used = 0
	}
	return nil
}

// send makes one request. The broker takes a repeated batch for the duplicate that it is.
func send(leader *sarama.Broker, req *sarama.ProduceRequest) error {
	r, err := leader.Produce(req)
	if err != nil {
		return err
	}
	for topic, blocks := range r.Blocks {
		for partition, b := range blocks {
			if b.Err != sarama.ErrNoError && b.Err != sarama.ErrDuplicateSequenceNumber {
				return fmt.Errorf("produce to %s-%d: %w", topic, partition, b.Err)
			}
		}
	}
	return nil
}

func (p *Producer) addOffsets() error {
	return again(func() error {
		r, err := p.coord.AddOffsetsToTxn(&sarama.AddOffsetsToTxnRequest{
			Version: 3, TransactionalID: p.id, ProducerID: p.by.id, ProducerEpoch: p.by.epoch, GroupID: p.id,
		})
		if err != nil {
			return err
		}
		return code(r.Err)
	})
}

func (p *Producer) commitOffsets(positions map[Place]int64) error {
	topics := map[string][]*sarama.PartitionOffsetMetadata{}
	for at, offset := range positions {
		topics[at.Topic] = append(topics[at.Topic], &sarama.PartitionOffsetMetadata{Partition: at.Partition, Offset: offset, LeaderEpoch: -1})
	}
	return again(func() error {
		r, err := p.group.TxnOffsetCommit(&sarama.TxnOffsetCommitRequest{
			Version: 3, TransactionalID: p.id, GroupID: p.id, ProducerID: p.by.id, ProducerEpoch: p.by.epoch, GenerationID: -1, Topics: topics,
		})
		if err != nil {
			return err
		}
		for _, answers := range r.Topics {
			for _, a := range answers {
				if a.Err != sarama.ErrNoError {
					return a.Err
				}
			}
		}
		return nil
	})
}

// plainOffsets commits positions outside of a transaction.
func (p *Producer) plainOffsets(positions map[Place]int64) error {
	req := &sarama.OffsetCommitRequest{Version: 6, ConsumerGroup: p.id, ConsumerGroupGeneration: sarama.GroupGenerationUndefined}
	for at, offset := range positions {
		req.AddBlockWithLeaderEpoch(at.Topic, at.Partition, offset, -1, 0, "")
	}
	return again(func() error {
		r, err := p.group.CommitOffset(req)
		if err != nil {
			return err
		}
		for _, answers := range r.Errors {
			for _, a := range answers {
				if a != sarama.ErrNoError {
					return a
				}
			}
		}
		return nil
	})
}

func (p *Producer) end() error {
	return again(func() error {
		r, err := p.coord.EndTxn(&sarama.EndTxnRequest{
			Version: 3, TransactionalID: p.id, ProducerID: p.by.id, ProducerEpoch: p.by.epoch, TransactionResult: true,
		})
		if err != nil {
			return err
		}
		return code(r.Err)
	})
}

// passing are the refusals of everyday life: the markers of the last transaction are still being written, a coordinator is
// still loading, a topic is too new.
var passing = []error{
	sarama.ErrNotLeaderForPartition, sarama.ErrUnknownTopicOrPartition,
	sarama.ErrConcurrentTransactions, sarama.ErrNotEnoughReplicas, sarama.ErrOffsetsLoadInProgress,
	sarama.ErrConsumerCoordinatorNotAvailable, sarama.ErrNotCoordinatorForConsumer,
}

// again makes a call until it is not refused for a passing reason.
func again(call func() error) error {
	for deadline := time.Now().Add(Patience); ; time.Sleep(time.Millisecond) {
		err := call()
		waits := false
		for _, reason := range passing {
			waits = waits || errors.Is(err, reason)
		}
		if !waits || time.Now().After(deadline) {
			return err
		}
	}
}

// code returns a response's error, nil for none.
func code(e sarama.KError) error {
	if e == sarama.ErrNoError {
		return nil
	}
	return e
}
