package wire

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

// Cluster is a connection to brokers. Its methods may be called from several goroutines.
type Cluster struct {
	client sarama.Client
	admin  sarama.ClusterAdmin
}

// Open connects.
func Open(brokers []string) (*Cluster, error) {
	conf := sarama.NewConfig()
	conf.ClientID = "bench"
	conf.Version = sarama.V3_6_0_0
	conf.Metadata.AllowAutoTopicCreation = false
	conf.Consumer.IsolationLevel = sarama.ReadCommitted
	client, err := sarama.NewClient(brokers, conf)
	if err != nil {
		return nil, fmt.Errorf("connect to %v: %w", brokers, err)
	}
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &Cluster{client: client, admin: admin}, nil
}

// Close ends the connections.
func (c *Cluster) Close() error { return c.client.Close() }

// Patience bounds every wait for a broker.
const Patience = 30 * time.Second

// Create creates a topic, unless it exists, and returns when all of its partitions are led. Its records do not age out.
func (c *Cluster) Create(ctx context.Context, topic string, partitions int) error {
	return c.create(ctx, topic, partitions, "retention.ms", "-1")
}

// CreateCompacted creates a topic as changelogs are.
func (c *Cluster) CreateCompacted(ctx context.Context, topic string, partitions int) error {
	return c.create(ctx, topic, partitions, "cleanup.policy", "compact")
}

func (c *Cluster) create(ctx context.Context, topic string, partitions int, setting, value string) error {
	detail := &sarama.TopicDetail{
		NumPartitions: int32(partitions), ReplicationFactor: -1, ConfigEntries: map[string]*string{setting: &value},
	}
	return until(ctx, func() error { // a topic that is being deleted cannot be made anew for a moment
		if err := c.admin.CreateTopic(topic, detail, false); err != nil && !errors.Is(err, sarama.ErrTopicAlreadyExists) {
			return fmt.Errorf("create topic %s: %w", topic, err)
		}
		if err := c.client.RefreshMetadata(topic); err != nil {
			return err
		}
		_, err := c.Ends(topic)
		return err
	})
}

// until calls fn until it returns nil or patience is at its end.
func until(ctx context.Context, fn func() error) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	for {
		err := fn()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Remove deletes topics, those that exist.
func (c *Cluster) Remove(topics ...string) error {
	var errs []error
	for _, t := range topics {
		if err := c.admin.DeleteTopic(t); err != nil && !errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
			errs = append(errs, fmt.Errorf("delete topic %s: %w", t, err))
		}
	}
	return errors.Join(errs...)
}

// RemoveApp deletes the topics whose names begin with the application's id, and its group, unless a member that did not leave
// holds on to it.
func (c *Cluster) RemoveApp(app string) error {
	topics, err := c.topics()
	if err != nil {
		return err
	}
	for _, t := range topics {
		if strings.HasPrefix(t, app+"-") {
			err = errors.Join(err, c.Remove(t))
		}
	}
	gone := c.admin.DeleteConsumerGroup(app)
	if errors.Is(gone, sarama.ErrGroupIDNotFound) || errors.Is(gone, sarama.ErrNonEmptyGroup) {
		gone = nil
	}
	return errors.Join(err, gone)
}

func (c *Cluster) topics() ([]string, error) {
	if err := c.client.RefreshMetadata(); err != nil {
		return nil, err
	}
	return c.client.Topics()
}

// Ends returns the end offset of each partition of a topic.
func (c *Cluster) Ends(topic string) ([]int64, error) {
	partitions, err := c.client.Partitions(topic)
	if err != nil {
		return nil, fmt.Errorf("partitions of %s: %w", topic, err)
	}
	all := make([]int64, len(partitions))
	for p := range all {
		var end int64
		err := again(func() (err error) {
			end, err = c.client.GetOffset(topic, int32(p), sarama.OffsetNewest)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("end of %s-%d: %w", topic, p, err)
		}
		all[p] = end
	}
	return all, nil
}
