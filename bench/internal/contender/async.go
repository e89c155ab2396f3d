package contender

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/bench/internal/wire"
	"github.com/millrace-streams/millrace/bench/internal/work"
)

// async is how goka and most applications on sarama are made: a consumer group's messages come through channels, each change
// of a count goes to the changelog and the output through an AsyncProducer at once, and every commit interval the producer's
// transaction takes the positions. Counts are in Go maps; there is no restore.
type async struct {
	job       Job
	say       *Voice
	producer  sarama.AsyncProducer
	changelog string
	messages  chan *sarama.ConsumerMessage
	counts    []map[string]int64 // by partition
	positions map[int32]int64
}

// runAsync does the work in that way.
func runAsync(ctx context.Context, j Job, say *Voice) error {
	a := &async{
		job: j, say: say, messages: make(chan *sarama.ConsumerMessage, 8192), positions: map[int32]int64{},
		changelog: j.App + "-" + work.Store + "-changelog",
	}
	for range j.Workload.Partitions {
		a.counts = append(a.counts, map[string]int64{})
	}
	cluster, err := wire.Open(j.Brokers)
	if err != nil {
		return err
	}
	defer cluster.Close()
	if err := cluster.Create(ctx, a.changelog, j.Workload.Partitions); err != nil {
		return err
	}
	if a.producer, err = sarama.NewAsyncProducer(j.Brokers, a.settings()); err != nil {
		return err
	}
	group, err := sarama.NewConsumerGroup(j.Brokers, j.App, a.settings())
	if err != nil {
		return errors.Join(err, a.producer.Close())
	}
	ctx, stop := context.WithCancelCause(ctx)
	var consuming sync.WaitGroup
	consuming.Go(func() {
		if err := group.Consume(ctx, []string{j.Workload.Topic}, a); err != nil {
			stop(err)
		}
	})
	consuming.Go(func() {
		for err := range a.producer.Errors() {
			stop(err)
		}
	})
	err = a.loop(ctx)
	stop(err)
	err = errors.Join(err, group.Close(), a.producer.Close())
	consuming.Wait()
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return err
}

func (a *async) settings() *sarama.Config {
	c := sarama.NewConfig()
	c.ClientID, c.Version = "bench", sarama.V3_6_0_0
	c.Consumer.IsolationLevel = sarama.ReadCommitted
	c.Consumer.Fetch.Default = 8 << 20
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Offsets.AutoCommit.Enable = false
	c.ChannelBufferSize = 4096
	c.Net.MaxOpenRequests = 1
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Partitioner = sarama.NewMurmur2Partitioner
	c.Producer.Flush.Frequency, c.Producer.Flush.Bytes = 10*time.Millisecond, 1<<19
	c.Producer.Idempotent = true
	c.Producer.Transaction.ID = a.job.App
	c.Producer.Transaction.Retry.Backoff, c.Producer.Transaction.Retry.Max = 5*time.Millisecond, 2000
	return c
}

// Setup is called when partitions are assigned.
func (a *async) Setup(sarama.ConsumerGroupSession) error {
	a.say.Running()
	return nil
}

// Cleanup is called when they are taken away.
func (a *async) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// ConsumeClaim hands on the messages of one partition.
func (a *async) ConsumeClaim(s sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	for m := range c.Messages() {
		select {
		case a.messages <- m:
		case <-s.Context().Done():
			return nil
		}
	}
	return nil
}

// loop works on messages and commits until ctx ends.
func (a *async) loop(ctx context.Context) error {
	tick := time.NewTicker(a.job.Interval)
	defer tick.Stop()
	if err := a.producer.BeginTxn(); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return a.producer.AbortTxn()
		case m := <-a.messages:
			a.take(m)
		case <-tick.C:
			if err := a.commit(); err != nil {
				return fmt.Errorf("commit of %s: %w", a.job.App, err)
			}
		}
	}
}

func (a *async) take(m *sarama.ConsumerMessage) {
	counts, key := a.counts[m.Partition], string(m.Key)
	counts[key]++
	value := sarama.ByteEncoder(binary.BigEndian.AppendUint64(nil, uint64(counts[key])))
	for _, topic := range []string{a.changelog, a.job.Out} {
		a.producer.Input() <- &sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder(key), Value: value}
	}
	a.positions[m.Partition] = m.Offset + 1
}

// commit ends the transaction and begins the next.
func (a *async) commit() error {
	if len(a.positions) == 0 {
		return nil
	}
	topic, offsets := a.job.Workload.Topic, map[string][]*sarama.PartitionOffsetMetadata{}
	for partition, next := range a.positions {
		offsets[topic] = append(offsets[topic], &sarama.PartitionOffsetMetadata{Partition: partition, Offset: next})
	}
	clear(a.positions)
	if err := a.producer.AddOffsetsToTxn(offsets, a.job.App); err != nil {
		return err
	}
	if err := a.producer.CommitTxn(); err != nil {
		return err
	}
	return a.producer.BeginTxn()
}
