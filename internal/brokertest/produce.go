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
