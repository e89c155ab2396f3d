package brokertest_test

import (
	"maps"
	"os"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/millrace-streams/millrace/internal/brokertest"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

// transaction sends the records, and the offset of group for input-0, in one transaction.
func transaction(t *testing.T, p sarama.SyncProducer, topic string, values []string, offsets map[string][]*sarama.PartitionOffsetMetadata, group string, commit bool) {
	t.Helper()
	if err := p.BeginTxn(); err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		if _, _, err := p.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(v)}); err != nil {
			t.Fatal(err)
		}
	}
	if offsets != nil {
		if err := p.AddOffsetsToTxn(offsets, group); err != nil {
			t.Fatal(err)
		}
	}
	end := p.AbortTxn
	if commit {
		end = p.CommitTxn
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
}

func transactional(t *testing.T, brokers []string) sarama.SyncProducer {
	t.Helper()
	cfg := brokertest.Config()
	cfg.Producer.Transaction.ID = brokertest.UniqueName(t, "tx")
	cfg.Producer.Transaction.Timeout = 30 * time.Second
	p, err := sarama.NewSyncProducer(brokers, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func values(records []brokertest.Record) []string {
	var vs []string
	for _, r := range records {
		vs = append(vs, string(r.Value))
	}
	return vs
}

func equal(t *testing.T, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}

func TestReadCommittedSeesCommittedTransactionsOnly(t *testing.T) {
	t.Parallel()
	brokers := brokertest.Brokers(t)
	topic := brokertest.Topic(t, "out", 1)
	p := transactional(t, brokers)
	transaction(t, p, topic, []string{"a", "b"}, nil, "", true)
	transaction(t, p, topic, []string{"lost"}, nil, "", false)
	transaction(t, p, topic, []string{"c"}, nil, "", true)
	brokertest.Produce(t, brokers, topic, brokertest.Record{Value: []byte("plain")})

	end := int64(8) // 5 records and 3 markers; on a real broker the last marker may follow its answer
	brokertest.Eventually(t, 30*time.Second, func() (bool, string) {
		return brokertest.LastStableOffset(t, brokers, topic, 0) == end, "the log is not stable up to its end"
	})
	equal(t, values(brokertest.ReadCommitted(t, brokers, topic)), []string{"a", "b", "c", "plain"})

	if err := p.BeginTxn(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("open")}); err != nil {
		t.Fatal(err)
	}
	brokertest.Produce(t, brokers, topic, brokertest.Record{Value: []byte("behind")})
	equal(t, values(brokertest.ReadCommitted(t, brokers, topic)), []string{"a", "b", "c", "plain"})
	if err := p.AbortTxn(); err != nil {
		t.Fatal(err)
	}
}

func TestGroupOffsetsOfTransactions(t *testing.T) {
	t.Parallel()
	brokers := brokertest.Brokers(t)
	in, out := brokertest.Topic(t, "in", 2), brokertest.Topic(t, "out", 1)
	group := brokertest.UniqueName(t, "group")
	if got := brokertest.GroupOffsets(t, brokers, group, in); len(got) != 0 {
		t.Fatalf("an unknown group has offsets %v", got)
	}
	p := transactional(t, brokers)
	at := func(offset int64) map[string][]*sarama.PartitionOffsetMetadata {
		return map[string][]*sarama.PartitionOffsetMetadata{in: {{Partition: 1, Offset: offset}}}
	}
	transaction(t, p, out, []string{"a"}, at(7), group, true)
	transaction(t, p, out, []string{"b"}, at(9), group, false)
	want := map[int32]int64{1: 7}
	brokertest.Eventually(t, 30*time.Second, func() (bool, string) {
		return maps.Equal(brokertest.GroupOffsets(t, brokers, group, in), want), "the committed offset is not visible"
	})
}

func TestProduceKeepsEverything(t *testing.T) {
	t.Parallel()
	brokers := brokertest.Brokers(t)
	topic := brokertest.Topic(t, "all", 3)
	at := time.UnixMilli(1234)
	brokertest.Produce(t, brokers, topic,
		brokertest.Record{Partition: 2, Key: []byte("k"), Timestamp: at, Headers: []brokertest.Header{{Key: []byte("h"), Value: []byte("v")}}},
		brokertest.KV("21", "by key"))
	got := brokertest.ReadCommitted(t, brokers, topic)
	if len(got) != 2 {
		t.Fatalf("got %d records", len(got))
	}
	var first brokertest.Record
	for _, r := range got {
		if string(r.Key) == "k" {
			first = r
		} else if murmur2 := (int32(-973932308) & 0x7fffffff) % 3; r.Partition != murmur2 {
			t.Errorf("key 21 went to partition %d, Java sends it to %d", r.Partition, murmur2)
		}
	}
	if first.Partition != 2 || first.Value != nil || !first.Timestamp.Equal(at) || len(first.Headers) != 1 || string(first.Headers[0].Value) != "v" {
		t.Errorf("got %+v", first)
	}
}

func TestKindSaysWhatBrokersChose(t *testing.T) {
	t.Parallel()
	kind := brokertest.Kind(t)
	t.Logf("broker: %s %v", kind, brokertest.Brokers(t))
	if named := os.Getenv("MILLRACE_BROKERS"); (kind == brokertest.KindReal) != (named != "") {
		t.Errorf("kind %s with MILLRACE_BROKERS=%q", kind, named)
	}
}
