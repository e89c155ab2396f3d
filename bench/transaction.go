package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// producer makes one transaction after the other, on plain calls of the client. It gives up at errors that a run on a
// quiet broker does not meet.
type producer struct {
	client  sarama.Client
	id      string // transactional id, and the group whose offsets are committed
	pid     int64
	epoch   int16
	batches map[place]*queue
	coord   *sarama.Broker // of the transactions
	group   *sarama.Broker // of the group
}

// place is a partition.
type place struct {
	topic     string
	partition int32
}

// queue is what waits for one partition: batches, each below the size that a broker accepts.
type queue struct {
	ready    []*batch
	used     int // of ready
	bytes    int // of the last
	sequence int32
}

// batchBytes bounds a batch; recordBytes stands for what a record takes beside key and value.
const (
	batchBytes  = 900_000
	recordBytes = 16
)

func newProducer(brokers []string, id string) (*producer, error) {
	client, err := connect(brokers)
	if err != nil {
		return nil, err
	}
	p := &producer{client: client, id: id, batches: map[place]*queue{}}
	if p.coord, err = client.TransactionCoordinator(id); err == nil {
		p.group, err = client.Coordinator(id)
	}
	if err == nil {
		err = p.initialise()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("producer %s: %w", id, err), client.Close())
	}
	return p, nil
}

func (p *producer) initialise() error {
	return again(func() error {
		r, err := p.coord.InitProducerID(&sarama.InitProducerIDRequest{
			Version: 4, TransactionalID: &p.id, TransactionTimeout: time.Minute, ProducerID: -1, ProducerEpoch: -1,
		})
		if err != nil {
			return err
		}
		p.pid, p.epoch = r.ProducerID, r.ProducerEpoch
		return code(r.Err)
	})
}

// add puts a record into the next transaction. The slices belong to the producer until that is committed.
func (p *producer) add(to place, key, value []byte, at time.Time) {
	q := p.batches[to]
	if q == nil {
		q = &queue{}
		p.batches[to] = q
	}
	size := len(key) + len(value) + recordBytes
	if q.used == 0 || q.bytes+size > batchBytes {
		if q.used == len(q.ready) {
			q.ready = append(q.ready, &batch{})
		}
		q.used++
		q.bytes = 0
	}
	q.bytes += size
	q.ready[q.used-1].add(key, value, at)
}

// commit makes a transaction of what was added and of the positions, by topic and partition.
func (p *producer) commit(positions map[place]int64) error {
	for _, step := range []func() error{
		p.addPartitions, p.produce, p.addOffsets, func() error { return p.commitOffsets(positions) }, p.end,
	} {
		if err := step(); err != nil {
			return fmt.Errorf("commit of %s: %w", p.id, err)
		}
	}
	return nil
}

func (p *producer) addPartitions() error {
	touched := map[string][]int32{}
	for at, q := range p.batches {
		if q.used > 0 {
			touched[at.topic] = append(touched[at.topic], at.partition)
		}
	}
	if len(touched) == 0 {
		return nil
	}
	return again(func() error {
		r, err := p.coord.AddPartitionsToTxn(&sarama.AddPartitionsToTxnRequest{
			Version: 3, TransactionalID: p.id, ProducerID: p.pid, ProducerEpoch: p.epoch, TopicPartitions: touched,
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
func (p *producer) produce() error {
	for round := 0; ; round++ {
		byLeader := map[*sarama.Broker]*sarama.ProduceRequest{}
		for at, q := range p.batches {
			if round >= q.used {
				continue
			}
			leader, err := p.client.Leader(at.topic, at.partition)
			if err != nil {
				return err
			}
			if byLeader[leader] == nil {
				byLeader[leader] = &sarama.ProduceRequest{TransactionalID: &p.id, RequiredAcks: sarama.WaitForAll, Timeout: 30_000, Version: 7}
			}
			b := q.ready[round]
			byLeader[leader].AddBatch(at.topic, at.partition, b.seal(author{p.pid, p.epoch, q.sequence}))
			q.sequence += int32(len(b.records))
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

func (p *producer) addOffsets() error {
	return again(func() error {
		r, err := p.coord.AddOffsetsToTxn(&sarama.AddOffsetsToTxnRequest{
			Version: 3, TransactionalID: p.id, ProducerID: p.pid, ProducerEpoch: p.epoch, GroupID: p.id,
		})
		if err != nil {
			return err
		}
		return code(r.Err)
	})
}

func (p *producer) commitOffsets(positions map[place]int64) error {
	topics := map[string][]*sarama.PartitionOffsetMetadata{}
	for at, offset := range positions {
		topics[at.topic] = append(topics[at.topic], &sarama.PartitionOffsetMetadata{Partition: at.partition, Offset: offset, LeaderEpoch: -1})
	}
	return again(func() error {
		r, err := p.group.TxnOffsetCommit(&sarama.TxnOffsetCommitRequest{
			Version: 3, TransactionalID: p.id, GroupID: p.id, ProducerID: p.pid, ProducerEpoch: p.epoch, GenerationID: -1, Topics: topics,
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

func (p *producer) end() error {
	return again(func() error {
		r, err := p.coord.EndTxn(&sarama.EndTxnRequest{
			Version: 3, TransactionalID: p.id, ProducerID: p.pid, ProducerEpoch: p.epoch, TransactionResult: true,
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
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
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
