package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/IBM/sarama"
)

// ErrRunning is why an application cannot be reset: a process of it is a member of the group.
var ErrRunning = errors.New("kafka: the application is running")

// Reset deletes the group's offsets, then the topics, and returns when they are gone. What does not exist is left alone. It
// refuses with ErrRunning while the group has members.
func (c *Cluster) Reset(ctx context.Context, topics []string) error {
	admin, err := c.openAdmin()
	if err != nil {
		return err
	}
	defer admin.Close()
	err = admin.DeleteConsumerGroup(c.cfg.App)
	switch {
	case errors.Is(err, sarama.ErrNonEmptyGroup):
		return fmt.Errorf("%w: group %q has members", ErrRunning, c.cfg.App)
	case err != nil && !errors.Is(err, sarama.ErrGroupIDNotFound):
		return fmt.Errorf("kafka: delete the offsets of group %q: %w", c.cfg.App, err)
	}
	for _, topic := range topics {
		if err := admin.DeleteTopic(topic); err != nil && !errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
			return fmt.Errorf("kafka: delete topic %q: %w", topic, err)
		}
	}
	return c.gone(ctx, topics)
}

// gone waits until no broker that answers knows the topics any more.
func (c *Cluster) gone(ctx context.Context, topics []string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startWait, fmt.Errorf("kafka: topics %v are still there", topics))
	defer cancel()
	for wait := firstPause; ; wait = min(2*wait, lastPause) {
		counts, err := c.PartitionCounts(ctx, topics)
		if err != nil || len(counts) == 0 {
			return err
		}
		if !pause(ctx, wait) {
			return context.Cause(ctx)
		}
	}
}
