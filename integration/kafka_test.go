package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/internal/brokertest"
)

// lines produces a value per line, each with the key, spread over the topic's partitions by the key.
func send(t *testing.T, topic, key string, values ...string) {
	t.Helper()
	var records []brokertest.Record
	for _, v := range values {
		records = append(records, brokertest.KV(key, v))
	}
	brokertest.Produce(t, brokertest.Brokers(t), topic, records...)
}

// numbered returns n records with keys k0 to k<keys-1> in turn.
func numbered(n, keys int) []brokertest.Record {
	var records []brokertest.Record
	for i := range n {
		records = append(records, brokertest.KV(fmt.Sprintf("k%d", i%keys), "x"))
	}
	return records
}

// numberedCounts is what the keys of numbered are counted to.
func numberedCounts(n, keys int) map[string]int64 {
	counts := map[string]int64{}
	for i := range n {
		counts[fmt.Sprintf("k%d", i%keys)]++
	}
	return counts
}

func client(t *testing.T, brokers []string) sarama.Client {
	t.Helper()
	c, err := sarama.NewClient(brokers, brokertest.Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func admin(t *testing.T) sarama.ClusterAdmin {
	t.Helper()
	a, err := sarama.NewClusterAdminFromClient(client(t, brokertest.Brokers(t)))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// deleteUpTo moves the start of a partition's log.
func deleteUpTo(t *testing.T, topic string, partition int32, offset int64) {
	t.Helper()
	if err := admin(t).DeleteRecords(topic, map[int32]int64{partition: offset}); err != nil {
		t.Fatal(err)
	}
}

// logRange returns a partition's log start and high watermark.
func logRange(t *testing.T, topic string, partition int32) (start, end int64) {
	t.Helper()
	c := client(t, brokertest.Brokers(t))
	start, err := c.GetOffset(topic, partition, sarama.OffsetOldest)
	if err != nil {
		t.Fatal(err)
	}
	if end, err = c.GetOffset(topic, partition, sarama.OffsetNewest); err != nil {
		t.Fatal(err)
	}
	return start, end
}

// changelog creates the changelog of a store, with one partition, as if the application had run before. Its records may be
// deleted, which Kafka does not allow where a topic is only compacted.
func changelog(t *testing.T, app, store string, records ...brokertest.Record) string {
	t.Helper()
	topic := app + "-" + store + "-changelog"
	brokers := brokertest.Brokers(t)
	brokertest.CreateTopic(t, brokers, topic, 1, map[string]string{"cleanup.policy": "compact,delete"})
	brokertest.Produce(t, brokers, topic, records...)
	return topic
}

// setOffset commits an offset of a group that nobody is a member of, as an operator does.
func setOffset(t *testing.T, group, topic string, partition int32, offset int64) {
	t.Helper()
	c := client(t, brokertest.Brokers(t))
	req := &sarama.OffsetCommitRequest{Version: 7, ConsumerGroup: group, ConsumerGroupGeneration: -1}
	req.AddBlockWithLeaderEpoch(topic, partition, offset, -1, 0, "")
	brokertest.Eventually(t, patience, func() (bool, string) {
		if err := c.RefreshCoordinator(group); err != nil {
			return false, err.Error()
		}
		b, err := c.Coordinator(group)
		if err != nil {
			return false, err.Error()
		}
		resp, err := b.CommitOffset(req)
		if err != nil {
			return false, err.Error()
		}
		refused := resp.Errors[topic][partition]
		return refused == sarama.ErrNoError, refused.Error()
	})
}

// row is a record of a changelog of counts.
func row(key string, n int64) brokertest.Record {
	return brokertest.Record{Key: []byte(key), Value: encoded(n), Timestamp: time.UnixMilli(1000 + n)}
}

func rows(from, n int) []brokertest.Record {
	var all []brokertest.Record
	for i := range n {
		all = append(all, row(fmt.Sprintf("k%d", from+i), int64(from+i)))
	}
	return all
}

// transactions produces in transactions.
type transactions struct {
	t *testing.T
	p sarama.SyncProducer
}

func newTransactions(t *testing.T) transactions {
	t.Helper()
	cfg := brokertest.Config()
	cfg.Producer.Transaction.ID = brokertest.UniqueName(t, "tx")
	cfg.Producer.Transaction.Timeout = 30 * time.Second
	cfg.Producer.Partitioner = sarama.NewManualPartitioner
	p, err := sarama.NewSyncProducer(brokertest.Brokers(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return transactions{t, p}
}

// write sends the records to partition 0 in one transaction.
func (x transactions) write(topic string, commit bool, records ...brokertest.Record) {
	x.t.Helper()
	if err := x.p.BeginTxn(); err != nil {
		x.t.Fatal(err)
	}
	for _, r := range records {
		m := &sarama.ProducerMessage{Topic: topic, Key: sarama.ByteEncoder(r.Key), Value: sarama.ByteEncoder(r.Value), Timestamp: r.Timestamp}
		if _, _, err := x.p.SendMessage(m); err != nil {
			x.t.Fatal(err)
		}
	}
	end := x.p.AbortTxn
	if commit {
		end = x.p.CommitTxn
	}
	if err := end(); err != nil {
		x.t.Fatal(err)
	}
}

// settled reads the committed records of a topic to which nobody writes any more. Kafka answers a commit before all of
// its markers are written: what it holds may become visible a little later.
func settled(t *testing.T, brokers []string, topic string) []brokertest.Record {
	t.Helper()
	c := client(t, brokers)
	partitions, err := c.Partitions(topic)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range partitions {
		brokertest.Eventually(t, patience, func() (bool, string) {
			end, err := c.GetOffset(topic, p, sarama.OffsetNewest)
			stable := brokertest.LastStableOffset(t, brokers, topic, p)
			return err == nil && stable == end, fmt.Sprintf("%s-%d is stable up to %d of %d (%v)", topic, p, stable, end, err)
		})
	}
	return brokertest.ReadCommitted(t, brokers, topic)
}

// topicConfig returns the settings of a topic.
func topicConfig(t *testing.T, topic string) map[string]string {
	t.Helper()
	entries, err := admin(t).DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic})
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{}
	for _, e := range entries {
		settings[e.Name] = e.Value
	}
	return settings
}

// members returns the state of a group and how many members it has.
func members(t *testing.T, group string) (state string, n int) {
	t.Helper()
	found, err := admin(t).DescribeConsumerGroups([]string{group})
	if err != nil {
		t.Fatal(err)
	}
	return found[0].State, len(found[0].Members)
}

// groupLag returns how many offsets of a topic the group has not committed.
func groupLag(t *testing.T, brokers []string, group, topic string) (int64, error) {
	t.Helper()
	c := client(t, brokers)
	defer c.Close()
	partitions, err := c.Partitions(topic)
	if err != nil {
		return 0, err
	}
	at, lag := brokertest.GroupOffsets(t, brokers, group, topic), int64(0)
	for _, p := range partitions {
		end, err := c.GetOffset(topic, p, sarama.OffsetNewest)
		if err != nil {
			return 0, err
		}
		lag += end - at[p]
	}
	return lag, nil
}

// waitCommitted waits until the group has committed the topics, upstream first, up to their ends.
func waitCommitted(t *testing.T, brokers []string, group string, topics []string, alive func() error) {
	t.Helper()
	for _, topic := range topics {
		brokertest.Eventually(t, 3*patience, func() (bool, string) {
			if err := alive(); err != nil {
				t.Fatal(err)
			}
			lag, err := groupLag(t, brokers, group, topic)
			return err == nil && lag == 0, fmt.Sprintf("%s: %d offsets are not committed (%v)", topic, lag, err)
		})
	}
}
