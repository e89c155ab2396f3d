package oracle_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/internal/topicread"
	"github.com/millrace-streams/millrace/oracle"
	"github.com/millrace-streams/millrace/oracle/scenario"
)

// patience bounds every wait; it says nothing about how long things take.
const patience = 2 * time.Minute

// broker is one test's access to the broker.
type broker struct {
	t        testing.TB
	addrs    []string
	client   sarama.Client
	producer sarama.SyncProducer
}

func openBroker(t testing.TB) *broker {
	t.Helper()
	cfg := brokertest.Config()
	cfg.Producer.Partitioner = sarama.NewMurmur2Partitioner
	cfg.Producer.Retry.Max = int(patience / cfg.Producer.Retry.Backoff) // a new topic may take long to be there
	b := &broker{t: t, addrs: brokertest.Brokers(t)}
	var err error
	if b.client, err = sarama.NewClient(b.addrs, cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.client.Close() })
	if b.producer, err = sarama.NewSyncProducerFromClient(b.client); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.producer.Close() })
	brokertest.Eventually(t, patience, func() (bool, string) { // a new broker makes its own topics first
		_, err := b.client.Coordinator("oracle")
		if err == nil {
			_, err = b.client.TransactionCoordinator("oracle")
		}
		return err == nil, fmt.Sprint(err)
	})
	return b
}

// create makes topics that keep their records whatever the times of these are: scenarios begin in 1970, and some reach far
// into the future. cleanup is a policy by topic, "delete" if there is none.
func (b *broker) create(partitions map[string]int32, cleanup map[string]string) {
	b.t.Helper()
	index := "4096" // that of a new log is zeroed, 10 MB unless told
	never, always := "-1", strconv.FormatInt(math.MaxInt64, 10)
	req := &sarama.CreateTopicsRequest{Version: 2, Timeout: patience, TopicDetails: map[string]*sarama.TopicDetail{}}
	for topic, n := range partitions {
		policy := cmp.Or(cleanup[topic], "delete")
		req.TopicDetails[topic] = &sarama.TopicDetail{NumPartitions: n, ReplicationFactor: 1, ConfigEntries: map[string]*string{
			"cleanup.policy": &policy, "retention.ms": &never, "message.timestamp.after.max.ms": &always, "segment.index.bytes": &index,
			"min.compaction.lag.ms": &always, // else the versions of a store are compacted away: by their times they are old
		}}
	}
	controller, err := b.client.Controller()
	if err != nil {
		b.t.Fatal(err)
	}
	resp, err := controller.CreateTopics(req)
	if err != nil {
		b.t.Fatal(err)
	}
	for topic, e := range resp.TopicErrors {
		if !errors.Is(e.Err, sarama.ErrNoError) {
			b.t.Fatalf("create %s: %v", topic, e)
		}
	}
	names := slices.Sorted(maps.Keys(partitions))
	brokertest.Eventually(b.t, patience, func() (bool, string) {
		if err := b.client.RefreshMetadata(names...); err != nil {
			return false, err.Error()
		}
		for topic, n := range partitions {
			if led, err := b.client.WritablePartitions(topic); err != nil || len(led) != int(n) {
				return false, "topic " + topic + " is not led"
			}
		}
		return true, ""
	})
}

// send writes steps, in order within each topic and key.
func (b *broker) send(steps []numbered) {
	b.t.Helper()
	var messages []*sarama.ProducerMessage
	for _, s := range steps {
		m := &sarama.ProducerMessage{Topic: s.Topic, Timestamp: time.UnixMilli(s.Time), Headers: []sarama.RecordHeader{{
			Key: []byte("step"), Value: []byte(strconv.Itoa(s.number)),
		}}}
		if s.Key != nil {
			m.Key = sarama.ByteEncoder(*s.Key)
		}
		if s.Value != nil {
			m.Value = sarama.ByteEncoder(*s.Value)
		}
		messages = append(messages, m)
	}
	if err := b.producer.SendMessages(messages); err != nil {
		b.t.Fatal(err)
	}
}

// read returns what is committed of a topic, in the order of its partitions.
func (b *broker) read(topic string, text oracle.Text) (rows []scenario.Row) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := topicread.Settled(ctx, b.client, topic); err != nil {
		b.t.Fatal(err)
	}
	err := topicread.Committed(ctx, b.client, topic, func(r topicread.Record) (err error) {
		row := scenario.Row{Topic: topic, Time: r.Timestamp.UnixMilli()}
		row.Key, row.Value, err = text(r.Key, r.Value)
		var from []string
		for _, h := range r.Headers {
			from = append(from, string(h.Value))
		}
		row.Origin = strings.Join(from, ",")
		rows = append(rows, row)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return rows
}
