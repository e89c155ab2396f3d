package kafka

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
)

// transactions writes values in transactions of one producer; those whose name begins with "abort" are aborted.
func transactions(t *testing.T, brokers []string, topic string, all ...[]string) {
	t.Helper()
	cfg := brokertest.Config()
	cfg.Producer.Transaction.ID = brokertest.UniqueName(t, "tx")
	p, err := sarama.NewSyncProducer(brokers, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, values := range all {
		must(t, p.BeginTxn())
		for _, v := range values {
			_, _, err := p.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(v)})
			must(t, err)
		}
		if strings.HasPrefix(values[0], "abort") {
			must(t, p.AbortTxn())
		} else {
			must(t, p.CommitTxn())
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// reader returns a port that has no leases to think of.
func reader(t *testing.T, change func(*Config)) *Port {
	t.Helper()
	cfg := options(brokertest.Brokers(t), brokertest.UniqueName(t, "app"), "p")
	if change != nil {
		change(&cfg)
	}
	return newPort(open(t, cfg), 0)
}

func produce(t *testing.T, topic string, n int, size int) {
	t.Helper()
	var records []brokertest.Record
	for i := range n {
		records = append(records, brokertest.Record{Key: []byte(fmt.Sprint(i)), Value: make([]byte, size)})
	}
	brokertest.Produce(t, brokertest.Brokers(t), topic, records...)
}

// fill writes n records to each of the topic's partitions.
func fill(t *testing.T, topic string, partitions int32, n int) {
	t.Helper()
	var records []brokertest.Record
	for p := range partitions {
		for range n {
			records = append(records, brokertest.Record{Partition: p, Value: []byte("v")})
		}
	}
	brokertest.Produce(t, brokertest.Brokers(t), topic, records...)
}

func TestPositionsPassMarkersAndAbortedRecords(t *testing.T) {
	t.Parallel()
	topic := brokertest.Topic(t, "in", 1)
	transactions(t, brokertest.Brokers(t), topic, []string{"a", "b"}, []string{"abort"}, []string{"c"}, []string{"abort again", "and more"})
	var got []string
	for _, r := range fetched(t, reader(t, nil), processor.TopicPartition{Topic: topic}, 0, 10) { // 6 records, 4 markers
		got = append(got, string(r.Value))
	}
	if fmt.Sprint(got) != "[a b c]" {
		t.Errorf("read %v", got)
	}
}

func TestNothingOfAFormerReadingIsDelivered(t *testing.T) {
	t.Parallel()
	topic := brokertest.Topic(t, "in", 1)
	produce(t, topic, 100, 10)
	p, tp := reader(t, nil), processor.TopicPartition{Topic: topic}
	queued := func() {
		brokertest.Eventually(t, patience, func() (bool, string) {
			p.mu.Lock()
			defer p.mu.Unlock()
			return len(p.inbox.Fetched) > 0, "nothing is fetched"
		})
	}
	p.Fetch(tp, 0)
	queued()
	p.Fetch(tp, 60)
	until(t, p, "records of the new reading", func(e runtime.Events) bool {
		for _, f := range e.Fetched {
			if len(f.Records) > 0 && f.Records[0].Offset != 60 {
				t.Fatalf("the new reading begins at %d", f.Records[0].Offset)
			}
		}
		return len(e.Fetched) > 0
	})
	p.Fetch(tp, 0)
	queued()
	p.StopFetch(tp)
	if e := p.Poll(0); len(e.Fetched) > 0 {
		t.Errorf("read after the end: %+v", e.Fetched)
	}
}

func TestReadingWaitsForItsReader(t *testing.T) {
	t.Parallel()
	topic := brokertest.Topic(t, "in", 1)
	for range 20 {
		produce(t, topic, 10, 1000) // batches of their own
	}
	p, tp := reader(t, func(c *Config) { c.MaxFetchBytes, c.BufferBytes = 1000, 30_000 }), processor.TopicPartition{Topic: topic}
	p.Fetch(tp, 0)
	held, next := 0, int64(0)
	take := func(e runtime.Events) {
		for _, f := range e.Fetched {
			held, next = held+f.Bytes, f.Next
		}
	}
	until(t, p, "a full buffer", func(e runtime.Events) bool { take(e); return p.subs[tp].full() })
	take(p.Poll(0))
	if held < 30_000 || held > 60_000 || next >= 200 {
		t.Errorf("held back at %d bytes, offset %d", held, next)
	}
	if s := p.subs[tp]; int64(held) != s.held.Load() {
		t.Errorf("delivered %d bytes, counted %d", held, s.held.Load())
	}
	until(t, p, "the rest", func(e runtime.Events) bool {
		take(e)
		p.Consumed(tp, held)
		held = 0
		return next == 200
	})
}

func TestARecordLargerThanAFetch(t *testing.T) {
	t.Parallel()
	topic := brokertest.Topic(t, "in", 2)
	records := []brokertest.Record{{Value: make([]byte, 200_000)}, {Partition: 1, Value: make([]byte, 200_000)}}
	brokertest.Produce(t, brokertest.Brokers(t), topic, records...)
	p := reader(t, func(c *Config) { c.MaxFetchBytes = 100 })
	for partition := range int32(2) {
		got := fetched(t, p, processor.TopicPartition{Topic: topic, Partition: partition}, 0, 1)
		if len(got) != 1 || len(got[0].Value) != 200_000 {
			t.Errorf("partition %d: %d records", partition, len(got))
		}
	}
}

// deleteRecords moves the start of a log.
func deleteRecords(t *testing.T, brokers []string, topic string, start int64) {
	t.Helper()
	admin, err := sarama.NewClusterAdmin(brokers, brokertest.Config())
	must(t, err)
	defer admin.Close()
	must(t, admin.DeleteRecords(topic, map[int32]int64{0: start}))
}

func TestOffsetsThatTheLogDoesNotHold(t *testing.T) {
	t.Parallel()
	topic := brokertest.Topic(t, "in", 1)
	produce(t, topic, 10, 10)
	deleteRecords(t, brokertest.Brokers(t), topic, 4)
	p, tp := reader(t, nil), processor.TopicPartition{Topic: topic}
	for _, offset := range []int64{3, 11} {
		p.Fetch(tp, offset)
		until(t, p, "the failure", func(e runtime.Events) bool {
			if len(e.Failed) == 0 {
				return false
			}
			var out *OffsetOutOfRangeError
			if !errors.As(e.Failed[0].Err, &out) || *out != (OffsetOutOfRangeError{tp, offset, 4, 10}) || e.Failed[0].Offset != offset {
				t.Errorf("failed with %+v", e.Failed[0])
			}
			return true
		})
	}
	if got := fetched(t, p, tp, 4, 10); len(got) != 6 {
		t.Errorf("%d records from the log's start", len(got))
	}
}

func TestAnUnknownTopicIsGivenUp(t *testing.T) {
	t.Parallel()
	p := reader(t, func(c *Config) { c.UnknownTopicAfter = 300 * time.Millisecond })
	tp := processor.TopicPartition{Topic: brokertest.UniqueName(t, "nowhere")}
	p.Fetch(tp, 0)
	until(t, p, "the failure", func(e runtime.Events) bool {
		if len(e.Failed) == 0 {
			return false
		}
		var unknown *UnknownTopicError
		if !errors.As(e.Failed[0].Err, &unknown) || unknown.TopicPartition != tp {
			t.Errorf("failed with %v", e.Failed[0].Err)
		}
		return true
	})
	if _, err := p.cluster.Ranges(t.Context(), []processor.TopicPartition{tp}); !errors.As(err, new(*UnknownTopicError)) {
		t.Errorf("ranges: %v", err)
	}
}

func TestTwoWorkersReadOnePartition(t *testing.T) {
	t.Parallel()
	topic := brokertest.Topic(t, "in", 1)
	produce(t, topic, 100, 10)
	a := reader(t, nil)
	b, tp := newPort(a.cluster, 1), processor.TopicPartition{Topic: topic}
	a.Fetch(tp, 0)
	if got := fetched(t, b, tp, 50, 100); len(got) != 50 {
		t.Errorf("the second reader gets %d records", len(got))
	}
	n := 0
	until(t, a, "the first reader's records", func(e runtime.Events) bool {
		for _, f := range e.Fetched {
			n += len(f.Records)
		}
		return n == 100
	})
}

func TestAdmin(t *testing.T) {
	t.Parallel()
	c := reader(t, nil).cluster
	name, other := brokertest.UniqueName(t, "new"), brokertest.UniqueName(t, "missing")
	wanted := []NewTopic{{Name: name, Partitions: 3, Config: map[string]string{"cleanup.policy": "compact"}}}
	for range 2 { // what exists is fine
		must(t, c.CreateTopics(t.Context(), wanted))
	}
	counts, err := c.PartitionCounts(t.Context(), []string{name, other})
	if err != nil || len(counts) != 1 || counts[name] != 3 {
		t.Errorf("counts %v, error %v", counts, err)
	}
	wanted[0].Partitions = 4
	var wrong *PartitionCountError
	if err := c.CreateTopics(t.Context(), wanted); !errors.As(err, &wrong) || wrong.Have != 3 || wrong.Want != 4 {
		t.Errorf("another partition count: %v", err)
	}
	must(t, c.CheckSettings(wanted))
	if _, err := Open(t.Context(), Config{App: "a", Brokers: c.cfg.Brokers, Compression: "squeeze"}); err == nil {
		t.Error("an unknown compression is accepted")
	}
}
