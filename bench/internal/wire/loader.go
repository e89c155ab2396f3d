package wire

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/bench/internal/work"
	"github.com/millrace-streams/millrace/processor"
)

// Loader writes records to a topic, in large batches.
type Loader struct {
	cluster *Cluster
	topic   string
	batches []batch // by partition
	turn    int32   // of records without a key
}

// NewLoader returns a loader of a topic with so many partitions.
func NewLoader(c *Cluster, topic string, partitions int) *Loader {
	return &Loader{cluster: c, topic: topic, batches: make([]batch, partitions)}
}

// Add puts a record into the next batch of its key's partition, without a key of each partition in turn. It copies.
func (l *Loader) Add(key, value []byte, at time.Time) error {
	p := l.turn
	if len(key) > 0 {
		p = processor.PartitionForKey(key, int32(len(l.batches)))
	} else {
		l.turn = (l.turn + 1) % int32(len(l.batches))
	}
	if !l.batches[p].fits(key, value) {
		if err := l.Send(); err != nil {
			return err
		}
	}
	l.batches[p].add(bytes.Clone(key), bytes.Clone(value), at)
	return nil
}

// Send writes what has been added and returns when the brokers have it.
func (l *Loader) Send() error {
	requests := map[*sarama.Broker]*sarama.ProduceRequest{}
	for p := range l.batches {
		b := &l.batches[p]
		if len(b.records) == 0 {
			continue
		}
		leader, err := l.cluster.client.Leader(l.topic, int32(p))
		if err != nil {
			return err
		}
		if requests[leader] == nil {
			requests[leader] = &sarama.ProduceRequest{RequiredAcks: sarama.WaitForAll, Timeout: 30_000, Version: 7}
		}
		requests[leader].AddBatch(l.topic, int32(p), b.seal(anonymous))
	}
	for leader, req := range requests {
		if err := again(func() error { return send(leader, req) }); err != nil {
			return err
		}
	}
	for p := range l.batches {
		l.batches[p].clear()
	}
	return nil
}

// Load fills the topics that a workload reads, unless they hold the right number of records already, and returns the time
// that its first record counts from.
func Load(ctx context.Context, c *Cluster, w work.Workload) (base time.Time, err error) {
	if w.Table != "" {
		if err := c.fill(ctx, w.Table, w, w.Distinct, time.Now().Add(-time.Hour), w.Rows); err != nil {
			return base, err
		}
	}
	if err := c.fill(ctx, w.Topic, w, w.Records, time.Now().Truncate(work.Window).Add(-work.Span), w.Inputs); err != nil {
		return base, err
	}
	return c.firstTime(ctx, w.Topic)
}

// fill writes records to a topic that does not hold them yet.
func (c *Cluster) fill(ctx context.Context, topic string, w work.Workload, records int, base time.Time, all func(func(work.Input) error) error) error {
	held, err := c.records(topic)
	if err != nil || held == records {
		return err
	}
	if held > 0 { // what an interrupted load has left
		if err := c.Remove(topic); err != nil {
			return err
		}
	}
	slog.Info("loading", "topic", topic, "records", records)
	if err := c.Create(ctx, topic, w.Partitions); err != nil {
		return err
	}
	l := NewLoader(c, topic, w.Partitions)
	err = all(func(in work.Input) error { return errors.Join(ctx.Err(), l.Add(in.Key, in.Value, base.Add(in.After))) })
	return errors.Join(err, l.Send())
}

// records returns how many records a topic holds, 0 if it does not exist.
func (c *Cluster) records(topic string) (n int, err error) {
	topics, err := c.topics()
	if err != nil {
		return 0, err
	}
	for _, t := range topics {
		if t != topic {
			continue
		}
		all, err := c.Ends(topic)
		if err != nil {
			return 0, err
		}
		for _, end := range all {
			n += int(end)
		}
	}
	return n, nil
}
