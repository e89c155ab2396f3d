package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// patience bounds every wait for a broker.
const patience = 30 * time.Second

// connect returns a client with connections of its own.
func connect(brokers []string) (sarama.Client, error) {
	conf := sarama.NewConfig()
	conf.ClientID = "bench"
	conf.Version = sarama.V3_6_0_0
	conf.Metadata.AllowAutoTopicCreation = false
	conf.Consumer.IsolationLevel = sarama.ReadCommitted
	return sarama.NewClient(brokers, conf)
}

// admin calls fn with an administrator of the cluster.
func admin(brokers []string, fn func(sarama.Client, sarama.ClusterAdmin) error) error {
	client, err := connect(brokers)
	if err != nil {
		return err
	}
	defer client.Close()
	a, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return err
	}
	return fn(client, a)
}

// createTopic creates a topic and returns when all of its partitions are led.
func createTopic(ctx context.Context, brokers []string, name string, config map[string]string) error {
	return admin(brokers, func(client sarama.Client, a sarama.ClusterAdmin) error {
		detail := &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: -1, ConfigEntries: map[string]*string{}}
		for k, v := range config {
			detail.ConfigEntries[k] = &v
		}
		if err := a.CreateTopic(name, detail, false); err != nil && !errors.Is(err, sarama.ErrTopicAlreadyExists) {
			return err
		}
		return until(ctx, func() error { return led(client, name) })
	})
}

// led returns nil when every partition of the topic has a leader that knows of it.
func led(client sarama.Client, topic string) error {
	if err := client.RefreshMetadata(topic); err != nil {
		return err
	}
	_, err := ends(client, topic)
	return err
}

// until calls fn until it returns nil or patience is at its end.
func until(ctx context.Context, fn func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
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

// removeTopics deletes topics and a group, those that exist.
func removeTopics(brokers []string, group string, topics []string) error {
	return admin(brokers, func(_ sarama.Client, a sarama.ClusterAdmin) error {
		var errs []error
		for _, t := range topics {
			if err := a.DeleteTopic(t); err != nil && !errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
				errs = append(errs, fmt.Errorf("delete topic %s: %w", t, err))
			}
		}
		if err := a.DeleteConsumerGroup(group); err != nil && !errors.Is(err, sarama.ErrGroupIDNotFound) {
			errs = append(errs, fmt.Errorf("delete group %s: %w", group, err))
		}
		return errors.Join(errs...)
	})
}

// ends returns the end offset of each partition of a topic.
func ends(client sarama.Client, topic string) ([]int64, error) {
	all := make([]int64, partitions)
	for p := range all {
		end, err := client.GetOffset(topic, int32(p), sarama.OffsetNewest)
		if err != nil {
			return nil, fmt.Errorf("end of %s-%d: %w", topic, p, err)
		}
		all[p] = end
	}
	return all, nil
}
