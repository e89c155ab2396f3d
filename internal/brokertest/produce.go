package brokertest

import (
	"errors"
	"testing"
	"time"

	"github.com/IBM/sarama"
)

// Record is a record of a topic, going in or coming out.
type Record struct {
	// Partition receives the record, when it is produced with ByKey off.
	Partition int32
	// ByKey lets the key choose the partition, as Java's default partitioner does (murmur2).
	ByKey bool
	// Offset is set on records that were read.
	Offset int64
	// Key and Value are nil for absent ones: a nil value is a tombstone.
	Key, Value []byte
	Headers    []Header
	// Timestamp has millisecond precision. Zero means now.
	Timestamp time.Time
}

// Header is a record header.
type Header struct{ Key, Value []byte }

// KV returns a record whose key chooses the partition.
func KV(key, value string) Record {
	return Record{ByKey: true, Key: []byte(key), Value: []byte(value)}
}

// Produce writes the records, in order within each partition, outside of any transaction, and returns when all are
// acknowledged.
func Produce(t testing.TB, brokers []string, topic string, records ...Record) {
	t.Helper()
	if len(records) == 0 {
		return
	}
	cfg := Config()
	cfg.Producer.Partitioner = newChosen
	p, err := sarama.NewSyncProducer(brokers, cfg)
	if err != nil {
		t.Fatalf("brokertest: produce to %s: %v", topic, err)
	}
	defer p.Close()
	if err := p.SendMessages(messages(topic, records)); err != nil {
		t.Fatalf("brokertest: produce to %s: %v", topic, cause(err))
	}
}

// ProduceBatch is Produce of a single batch to partition 0. In the midst of one a timestamp may be before 1970, which sarama
// cannot write of the first record of a batch.
func ProduceBatch(t testing.TB, brokers []string, topic string, records ...Record) {
	t.Helper()
	client, err := sarama.NewClient(brokers, Config())
	if err != nil {
		t.Fatalf("brokertest: produce to %s: %v", topic, err)
	}
	defer client.Close()
	batch := batchOf(records, time.Now())
	Eventually(t, time.Minute, func() (bool, string) {
		leader, err := client.Leader(topic, 0)
		if err != nil {
			return false, err.Error()
		}
		req := &sarama.ProduceRequest{Version: 8, RequiredAcks: sarama.WaitForAll, Timeout: 10_000}
		req.AddBatch(topic, 0, batch)
		resp, err := leader.Produce(req)
		if err != nil {
			t.Fatalf("brokertest: produce to %s: %v", topic, err) // whether it was written is not known
		}
		refused := resp.GetBlock(topic, 0).Err
		return refused == sarama.ErrNoError, refused.Error()
	})
}

func batchOf(records []Record, now time.Time) *sarama.RecordBatch {
	at := func(r *Record) time.Time {
		if r.Timestamp.IsZero() {
			return now
		}
		return r.Timestamp
	}
	batch := &sarama.RecordBatch{
		Version: 2, FirstTimestamp: at(&records[0]), LastOffsetDelta: int32(len(records) - 1), ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1,
	}
	for i := range records {
		r := &records[i]
		record := &sarama.Record{Key: r.Key, Value: r.Value, OffsetDelta: int64(i), TimestampDelta: at(r).Sub(batch.FirstTimestamp)}
		for _, h := range r.Headers {
			record.Headers = append(record.Headers, &sarama.RecordHeader{Key: h.Key, Value: h.Value})
		}
		if batch.Records = append(batch.Records, record); at(r).After(batch.MaxTimestamp) {
			batch.MaxTimestamp = at(r)
		}
	}
	return batch
}

// cause returns why the first of several messages was not sent, which sarama's error does not say.
func cause(err error) error {
	var failed sarama.ProducerErrors
	if errors.As(err, &failed) && len(failed) > 0 {
		return failed[0].Err
	}
	return err
}

func messages(topic string, records []Record) []*sarama.ProducerMessage {
	msgs := make([]*sarama.ProducerMessage, 0, len(records))
	for i := range records {
		r := &records[i]
		m := &sarama.ProducerMessage{Topic: topic, Partition: r.Partition, Timestamp: r.Timestamp, Metadata: r}
		if r.Key != nil {
			m.Key = sarama.ByteEncoder(r.Key)
		}
		if r.Value != nil {
			m.Value = sarama.ByteEncoder(r.Value)
		}
		for _, h := range r.Headers {
			m.Headers = append(m.Headers, sarama.RecordHeader{Key: h.Key, Value: h.Value})
		}
		msgs = append(msgs, m)
	}
	return msgs
}

// chosen takes the record's partition, or asks the key.
type chosen struct{ byKey sarama.Partitioner }

func newChosen(topic string) sarama.Partitioner {
	return chosen{byKey: sarama.NewMurmur2Partitioner(topic)}
}

func (c chosen) Partition(m *sarama.ProducerMessage, n int32) (int32, error) {
	if r := m.Metadata.(*Record); !r.ByKey {
		return r.Partition, nil
	}
	return c.byKey.Partition(m, n)
}

func (chosen) RequiresConsistency() bool { return true }
