package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/internal/embedded"
)

// partitions of the topics that the example makes.
const partitions = 4

// home is where the example runs: a client of somebody's Kafka, or of the embedded one.
type home struct {
	client sarama.Client
	admin  sarama.ClusterAdmin
}

// openHome starts the embedded broker unless there are brokers, and fills in what the flags left open. cleanUp ends it all.
func openHome(o *options) (h *home, cleanUp func(), err error) {
	var undo []func() error
	undoAll := func() {
		for i := len(undo) - 1; i >= 0; i-- {
			if err := undo[i](); err != nil {
				slog.Warn("clean-up", "error", err)
			}
		}
	}
	if h, err = open(o, &undo); err != nil {
		undoAll()
		return nil, nil, err
	}
	return h, undoAll, nil
}

// open notes in undo how to end what it starts.
func open(o *options, undo *[]func() error) (h *home, err error) {
	if o.stateDir == "" {
		if o.stateDir, err = os.MkdirTemp("", "wordcount-"); err != nil {
			return nil, err
		}
		*undo = append(*undo, func() error { return os.RemoveAll(o.stateDir) })
	}
	if o.brokers == "" {
		broker, err := startEmbedded(o)
		if err != nil {
			return nil, err
		}
		*undo = append(*undo, broker.Close)
	}
	if h, err = connect(strings.Split(o.brokers, ",")); err != nil {
		return nil, err
	}
	*undo = append(*undo, h.admin.Close)
	return h, nil
}

// startEmbedded starts a broker on the state directory. When it had to begin a new log, what the application kept of the
// old one goes too.
func startEmbedded(o *options) (*embedded.Broker, error) {
	broker, err := embedded.Start(embedded.Options{Dir: filepath.Join(o.stateDir, "broker"), Partitions: partitions})
	if err != nil {
		return nil, err
	}
	if fresh, why := broker.Fresh(); fresh {
		if why != "" {
			slog.Warn("the counts start anew", "reason", why)
		}
		if err := os.RemoveAll(filepath.Join(o.stateDir, o.app)); err != nil {
			return nil, errors.Join(err, broker.Close())
		}
	}
	o.brokers = strings.Join(broker.Addrs(), ",")
	slog.Info("embedded broker started", "brokers", o.brokers)
	return broker, nil
}

func connect(brokers []string) (*home, error) {
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V4_1_0_0
	cfg.Metadata.AllowAutoTopicCreation = false
	cfg.Producer.RequiredAcks = sarama.WaitForAll
	cfg.Producer.Idempotent = true
	cfg.Net.MaxOpenRequests = 1
	cfg.Producer.Return.Successes = true
	client, err := sarama.NewClient(brokers, cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to %v: %w", brokers, err)
	}
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &home{client: client, admin: admin}, nil
}

// topics makes the topics that do not exist.
func (h *home) topics(names ...string) error {
	for _, name := range names {
		err := h.admin.CreateTopic(name, &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: -1}, false)
		if err != nil && !errors.Is(err, sarama.ErrTopicAlreadyExists) {
			return fmt.Errorf("create topic %s: %w", name, err)
		}
	}
	return h.ready(names)
}

// ready waits until the topics can be used: a broker learns of a new one a little after it was made.
func (h *home) ready(names []string) error {
	deadline := time.Now().Add(10 * time.Second)
	for {
		topics, err := h.admin.DescribeTopics(names)
		if err != nil {
			return err
		}
		led := true
		for _, t := range topics {
			led = led && t.Err == sarama.ErrNoError && len(t.Partitions) > 0
		}
		if led {
			return h.client.RefreshMetadata(names...)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("topics %v are not ready", names)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
