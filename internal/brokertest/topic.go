package brokertest

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
)

// Config returns a client configuration that works on every kind of broker: reading committed records from the oldest
// on, quick retries, nothing created by accident. The caller may change it.
func Config() *sarama.Config {
	cfg := sarama.NewConfig()
	cfg.ClientID = "brokertest"
	cfg.Version = sarama.V4_1_0_0
	cfg.Metadata.AllowAutoTopicCreation = false
	cfg.Metadata.Retry.Max = 50
	cfg.Metadata.Retry.Backoff = 100 * time.Millisecond
	cfg.Consumer.IsolationLevel = sarama.ReadCommitted
	cfg.Consumer.Offsets.Initial = sarama.OffsetOldest
	cfg.Producer.RequiredAcks = sarama.WaitForAll
	cfg.Producer.Idempotent = true
	cfg.Producer.Retry.Max = 50
	cfg.Producer.Retry.Backoff = 50 * time.Millisecond
	cfg.Producer.Return.Successes = true
	cfg.Net.MaxOpenRequests = 1
	return cfg
}

// UniqueName returns the prefix with a random end, for groups, transactional ids and application ids. The result is a
// legal topic name when the prefix is one.
func UniqueName(t testing.TB, prefix string) string {
	t.Helper()
	return prefix + "-" + strings.ToLower(rand.Text()[:10])
}

// Topic creates a topic on the process's broker and returns its name, which begins with the given one and is unique.
func Topic(t testing.TB, name string, partitions int32) string {
	t.Helper()
	name = UniqueName(t, name)
	CreateTopic(t, Brokers(t), name, partitions, nil)
	return name
}

// CreateTopic creates a topic with exactly this name and configuration (may be nil), and returns once every partition
// has a leader.
func CreateTopic(t testing.TB, brokers []string, name string, partitions int32, config map[string]string) {
	t.Helper()
	client := open(t, brokers)
	defer client.Close()
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		t.Fatalf("brokertest: %v", err)
	}
	detail := &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1, ConfigEntries: map[string]*string{}}
	for k, v := range config {
		detail.ConfigEntries[k] = &v
	}
	if err := admin.CreateTopic(name, detail, false); err != nil {
		t.Fatalf("brokertest: create topic %s: %v", name, err)
	}
	Eventually(t, 30*time.Second, func() (bool, string) { return led(client, name, partitions) })
}

// led reports whether every partition of the topic has a leader.
func led(client sarama.Client, topic string, partitions int32) (bool, string) {
	if err := client.RefreshMetadata(topic); err != nil {
		return false, err.Error()
	}
	for p := range partitions {
		if _, err := client.Leader(topic, p); err != nil {
			return false, fmt.Sprintf("topic %s-%d: %v", topic, p, err)
		}
	}
	return true, ""
}

// open returns a client; the caller closes it.
func open(t testing.TB, brokers []string) sarama.Client {
	t.Helper()
	client, err := sarama.NewClient(brokers, Config())
	if err != nil {
		t.Fatalf("brokertest: connect to %v: %v", brokers, err)
	}
	return client
}

// answers returns nil when the broker at the address answers a metadata request for its topics.
func answers(addr string) error {
	cfg := Config()
	cfg.Metadata.Retry.Max = 0
	cfg.Net.DialTimeout = time.Second
	client, err := sarama.NewClient([]string{addr}, cfg)
	if err != nil {
		return err
	}
	return client.Close()
}
