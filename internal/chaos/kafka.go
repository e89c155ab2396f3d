package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/internal/topicread"
)

// kafka is the suite's own access to the broker, past all proxies.
type kafka struct {
	addr   string
	client sarama.Client
	admin  sarama.ClusterAdmin
}

func kafkaConfig() *sarama.Config {
	cfg := sarama.NewConfig()
	cfg.ClientID = "chaos"
	cfg.Version = sarama.V4_1_0_0
	cfg.Metadata.AllowAutoTopicCreation = false
	cfg.Metadata.Retry.Max = 100
	cfg.Metadata.Retry.Backoff = 100 * time.Millisecond
	cfg.Consumer.IsolationLevel = sarama.ReadCommitted
	cfg.Producer.RequiredAcks = sarama.WaitForAll
	cfg.Producer.Idempotent = true
	cfg.Producer.Retry.Max = 300
	cfg.Producer.Retry.Backoff = 100 * time.Millisecond
	cfg.Producer.Return.Successes = true
	cfg.Producer.Partitioner = sarama.NewManualPartitioner
	cfg.Net.MaxOpenRequests = 1
	return cfg
}

func openKafka(addr string) (*kafka, error) {
	client, err := sarama.NewClient([]string{addr}, kafkaConfig())
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", addr, err)
	}
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &kafka{addr, client, admin}, nil
}

func (k *kafka) close() error { return k.admin.Close() } // closes the client too

// create makes a topic and waits for its leaders.
func (k *kafka) create(ctx context.Context, topic string, partitions int32) error {
	if err := k.admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1}, false); err != nil {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}
	return eventually(ctx, 30*time.Second, func() error {
		if err := k.client.RefreshMetadata(topic); err != nil {
			return err
		}
		for p := range partitions {
			if _, err := k.client.Leader(topic, p); err != nil {
				return fmt.Errorf("%s-%d: %w", topic, p, err)
			}
		}
		return nil
	})
}

// producer writes records in order. After an error it is not known what was written, and a new one has to be made.
func (k *kafka) producer() (sarama.SyncProducer, error) {
	return sarama.NewSyncProducer([]string{k.addr}, kafkaConfig())
}

func messages(records []fed) []*sarama.ProducerMessage {
	all := make([]*sarama.ProducerMessage, len(records))
	for i, r := range records {
		all[i] = &sarama.ProducerMessage{Topic: r.topic, Partition: r.partition, Timestamp: r.at}
		if r.Value != "" { // else it is a tombstone
			all[i].Value = sarama.StringEncoder(r.Value)
		}
		if r.Key != "" {
			all[i].Key = sarama.StringEncoder(r.Key)
		}
	}
	return all
}

// read calls fn for each committed record, once no transaction is open on the topic.
func (k *kafka) read(ctx context.Context, topic string, fn func(topicread.Record)) error {
	if err := topicread.Settled(ctx, k.client, topic); err != nil {
		return err
	}
	return topicread.Committed(ctx, k.client, topic, func(r topicread.Record) error {
		fn(r)
		return nil
	})
}

// place is a partition and a position in it.
type place struct {
	topic     string
	partition int32
}

func (p place) String() string { return fmt.Sprintf("%s-%d", p.topic, p.partition) }

// committed returns the positions of a group, by partition. Those without are left out.
func (k *kafka) committed(group string, topics []string) (map[place]int64, error) {
	asked := map[string][]int32{}
	for _, topic := range topics {
		ps, err := k.client.Partitions(topic)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", topic, err)
		}
		asked[topic] = ps
	}
	resp, err := k.admin.ListConsumerGroupOffsets(group, asked)
	if err != nil {
		return nil, fmt.Errorf("offsets of group %s: %w", group, err)
	}
	at := map[place]int64{}
	for topic, blocks := range resp.Blocks {
		for p, b := range blocks {
			if b.Err != sarama.ErrNoError {
				return nil, fmt.Errorf("offset of group %s: %s-%d: %w", group, topic, p, b.Err)
			}
			if b.Offset >= 0 {
				at[place{topic, p}] = b.Offset
			}
		}
	}
	return at, nil
}

// positionsWithin is more than it takes to start an application, or a broker, with nothing else to run on.
const positionsWithin = 3 * time.Minute

// settledPositions returns the positions of a group once its topics are there and its coordinator can tell.
func (k *kafka) settledPositions(ctx context.Context, group string, topics []string) (at map[place]int64, err error) {
	err = eventually(ctx, positionsWithin, func() error {
		at, err = k.committed(group, topics)
		return err
	})
	return at, err
}

// offsets returns the first or last offsets of all partitions of the topics: sarama.OffsetOldest or OffsetNewest.
func (k *kafka) offsets(topics []string, which int64) (map[place]int64, error) {
	all := map[place]int64{}
	for _, topic := range topics {
		ps, err := k.client.Partitions(topic)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", topic, err)
		}
		for _, p := range ps {
			if all[place{topic, p}], err = k.client.GetOffset(topic, p, which); err != nil {
				return nil, fmt.Errorf("offset of %s-%d: %w", topic, p, err)
			}
		}
	}
	return all, nil
}

// eventually calls try until it returns nil, and returns its last error when the time is over.
func eventually(ctx context.Context, limit time.Duration, try func() error) error {
	deadline := time.Now().Add(limit)
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		err := try()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %v: %w", limit, err)
		}
		if !wait(ctx, pause) {
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// wait reports whether the time has passed before ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
