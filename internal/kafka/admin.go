package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/IBM/sarama"
)

// NewTopic is a topic to create. It gets the broker's default replication factor.
type NewTopic struct {
	Name       string
	Partitions int32
	Config     map[string]string
}

// PartitionCounts returns how many partitions each of the topics has. A topic that does not exist is absent.
func (c *Cluster) PartitionCounts(ctx context.Context, topics []string) (map[string]int32, error) {
	counts := map[string]int32{}
	if len(topics) == 0 {
		return counts, nil
	}
	resp, err := c.describe(ctx, topics)
	if err != nil {
		return nil, err
	}
	for _, t := range resp.Topics {
		switch t.Err {
		case sarama.ErrNoError, sarama.ErrLeaderNotAvailable:
			counts[t.Name] = int32(len(t.Partitions))
		case sarama.ErrUnknownTopicOrPartition:
		default:
			return nil, fmt.Errorf("kafka: topic %q: %w", t.Name, t.Err)
		}
	}
	return counts, nil
}

// describe asks any broker about topics, another one when there is no answer.
func (c *Cluster) describe(ctx context.Context, topics []string) (resp *sarama.MetadataResponse, err error) {
	err = c.answered(ctx, func() error {
		any := c.control.LeastLoadedBroker()
		if any == nil {
			return sarama.ErrOutOfBrokers
		}
		if resp, err = any.GetMetadata(sarama.NewMetadataRequest(c.conf.Version, topics)); err != nil {
			_ = c.control.RefreshMetadata(topics...) // forgets a broker that does not answer
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("kafka: metadata: %w", err)
	}
	return resp, nil
}

// CreateTopics creates what does not exist and returns when all of it can be used. A topic that exists keeps its
// configuration; with another number of partitions it is a *PartitionCountError.
func (c *Cluster) CreateTopics(ctx context.Context, topics []NewTopic) error {
	if len(topics) == 0 {
		return nil
	}
	if err := c.answered(ctx, func() error { return c.createMissing(ctx, topics) }); err != nil {
		return err
	}
	return c.created(ctx, topics)
}

func (c *Cluster) createMissing(ctx context.Context, topics []NewTopic) error {
	admin, err := c.openAdmin()
	if err != nil {
		return err
	}
	defer admin.Close()
	for _, t := range topics {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("kafka: create topic %q: %w", t.Name, err)
		}
		detail := &sarama.TopicDetail{NumPartitions: t.Partitions, ReplicationFactor: -1, ConfigEntries: map[string]*string{}}
		for k, v := range t.Config {
			detail.ConfigEntries[k] = &v
		}
		if err := admin.CreateTopic(t.Name, detail, false); err != nil && !errors.Is(err, sarama.ErrTopicAlreadyExists) {
			return fmt.Errorf("kafka: create topic %q: %w", t.Name, err)
		}
	}
	return nil
}

// openAdmin makes a client of its own for a few calls at the start: the control client asks for chosen topics only, and
// without one it would never learn which broker is the controller.
func (c *Cluster) openAdmin() (sarama.ClusterAdmin, error) {
	conf := *c.conf
	conf.Metadata.Full = true
	admin, err := sarama.NewClusterAdmin(c.cfg.Brokers, &conf)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	return admin, nil
}

// created waits until all topics are known and led, and checks their partition counts.
func (c *Cluster) created(ctx context.Context, topics []NewTopic) error {
	names := make([]string, len(topics))
	for i, t := range topics {
		names[i] = t.Name
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startWait, fmt.Errorf("kafka: topics %v are not ready", names))
	defer cancel()
	for wait := firstPause; ; wait = min(2*wait, lastPause) {
		resp, err := c.describe(ctx, names)
		if err != nil {
			return err
		}
		if counts, led := leaders(resp); led {
			for _, t := range topics {
				if counts[t.Name] != t.Partitions {
					return &PartitionCountError{Topic: t.Name, Want: t.Partitions, Have: counts[t.Name]}
				}
			}
			return c.control.RefreshMetadata(names...)
		}
		if !pause(ctx, wait) {
			return context.Cause(ctx)
		}
	}
}

// leaders returns the partition counts, and whether every partition has a leader.
func leaders(resp *sarama.MetadataResponse) (map[string]int32, bool) {
	counts, led := map[string]int32{}, true
	for _, t := range resp.Topics {
		led = led && t.Err == sarama.ErrNoError
		counts[t.Name] = int32(len(t.Partitions))
		for _, p := range t.Partitions {
			led = led && p.Err == sarama.ErrNoError && p.Leader >= 0
		}
	}
	return counts, led
}
