package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/processor"
)

// load fills a workload's input topic, unless it holds the right number of records already.
func load(ctx context.Context, brokers []string, w workload) error {
	held, err := records(brokers, w.Topic)
	if err != nil || held == w.Records {
		return err
	}
	if held > 0 { // what an interrupted load has left
		if err := removeTopics(brokers, w.Topic, []string{w.Topic}); err != nil {
			return err
		}
	}
	slog.Info("loading", "topic", w.Topic, "records", w.Records)
	// A topic that is being deleted cannot be made anew for a moment, hence the loop.
	if err := until(ctx, func() error { return createTopic(ctx, brokers, w.Topic, nil) }); err != nil {
		return err
	}
	l, err := newLoader(brokers, w.Topic)
	if err != nil {
		return err
	}
	defer l.client.Close()
	err = w.each(func(key, value []byte) error { return errors.Join(ctx.Err(), l.add(key, value)) })
	return errors.Join(err, l.send())
}

// records returns how many records a topic holds, 0 if it does not exist.
func records(brokers []string, topic string) (n int, err error) {
	err = admin(brokers, func(client sarama.Client, _ sarama.ClusterAdmin) error {
		topics, err := client.Topics()
		if err != nil {
			return err
		}
		for _, t := range topics {
			if t != topic {
				continue
			}
			all, err := ends(client, topic)
			for _, end := range all {
				n += int(end)
			}
			return err
		}
		return nil
	})
	return n, err
}

// loader writes batches, one for each partition at a time.
type loader struct {
	client  sarama.Client
	topic   string
	batches [partitions]batch
	turn    int32 // of records without a key
}

// loadBatch is the number of records after which a partition's batch is sent.
const loadBatch = 4000

func newLoader(brokers []string, topic string) (*loader, error) {
	client, err := connect(brokers)
	if err != nil {
		return nil, err
	}
	return &loader{client: client, topic: topic}, nil
}

func (l *loader) add(key, value []byte) error {
	p := l.turn
	if len(key) > 0 {
		p = processor.PartitionForKey(key, partitions)
		key = append([]byte(nil), key...)
	} else {
		l.turn = (l.turn + 1) % partitions
	}
	b := &l.batches[p]
	b.add(key, append([]byte(nil), value...), time.Now())
	if len(b.records) < loadBatch {
		return nil
	}
	return l.send()
}

// send writes what has been added.
func (l *loader) send() error {
	for p := range l.batches {
		b := &l.batches[p]
		if len(b.records) == 0 {
			continue
		}
		req := &sarama.ProduceRequest{RequiredAcks: sarama.WaitForAll, Timeout: 30_000, Version: 7}
		req.AddBatch(l.topic, int32(p), b.seal(anonymous))
		leader, err := l.client.Leader(l.topic, int32(p))
		if err != nil {
			return err
		}
		if err := again(func() error { return send(leader, req) }); err != nil {
			return err
		}
		b.clear()
	}
	return nil
}
