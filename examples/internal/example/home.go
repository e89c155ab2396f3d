package example

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace"
	"github.com/millrace-streams/millrace/internal/embedded"
)

// Home is where an example runs: somebody's Kafka, or the embedded one, and a folder for its state.
type Home struct {
	config   millrace.Config
	client   sarama.Client
	admin    sarama.ClusterAdmin
	producer sarama.SyncProducer // nil until something is sent
	undo     []func() error
}

// Open checks the flags, starts the embedded broker unless they name brokers, and connects. The caller closes the home.
func Open(o Options) (*Home, error) {
	h := &Home{}
	if err := h.open(o); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// open notes in undo how to end what it starts.
func (h *Home) open(o Options) (err error) {
	if h.config, err = o.config(); err != nil {
		return err
	}
	if h.config.StateDir == "" {
		if h.config.StateDir, err = os.MkdirTemp("", o.name+"-"); err != nil {
			return err
		}
		h.undo = append(h.undo, func() error { return os.RemoveAll(h.config.StateDir) })
	}
	if o.brokers == "" {
		if err := h.startBroker(o.keeps); err != nil {
			return err
		}
	}
	return h.connect()
}

// startBroker starts a broker on the state directory. When it had to begin a new log, what the application kept of the old
// one goes too.
func (h *Home) startBroker(keeps string) error {
	dir, log := h.config.StateDir, h.config.Logger
	broker, err := embedded.Start(embedded.Options{Dir: filepath.Join(dir, "broker"), Logger: log})
	if err != nil {
		return err
	}
	h.undo = append(h.undo, broker.Close)
	if fresh, why := broker.Fresh(); fresh {
		if why != "" {
			log.Warn("the "+keeps+" start anew", "reason", why)
		}
		if err := os.RemoveAll(filepath.Join(dir, h.config.ApplicationID)); err != nil {
			return err
		}
	}
	h.config.Brokers = broker.Addrs()
	log.Info("embedded broker started", "brokers", strings.Join(broker.Addrs(), ","))
	return nil
}

func (h *Home) connect() (err error) {
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V4_1_0_0
	cfg.Metadata.AllowAutoTopicCreation = false
	cfg.Producer.RequiredAcks = sarama.WaitForAll
	cfg.Producer.Idempotent = true
	cfg.Producer.Partitioner = sarama.NewMurmur2Partitioner
	cfg.Net.MaxOpenRequests = 1
	cfg.Producer.Return.Successes = true
	if h.client, err = sarama.NewClient(h.config.Brokers, cfg); err != nil {
		return fmt.Errorf("connect to %v: %w", h.config.Brokers, err)
	}
	if h.admin, err = sarama.NewClusterAdminFromClient(h.client); err != nil {
		return errors.Join(err, h.client.Close())
	}
	h.undo = append(h.undo, h.admin.Close) // and of the client
	return nil
}

// Close ends what Open has started, and removes the folder if it is a temporary one.
func (h *Home) Close() {
	for _, undo := range slices.Backward(h.undo) {
		if err := undo(); err != nil {
			slog.Warn("clean-up", "error", err)
		}
	}
}

// Topics makes the topics that do not exist, with so many partitions.
func (h *Home) Topics(partitions int32, names ...string) error {
	for _, name := range names {
		err := h.admin.CreateTopic(name, &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: -1}, false)
		if err != nil && !errors.Is(err, sarama.ErrTopicAlreadyExists) {
			return fmt.Errorf("create topic %s: %w", name, err)
		}
	}
	return h.ready(names)
}

// ready waits until the topics can be used: a broker learns of a new one a little after it was made.
func (h *Home) ready(names []string) error {
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
