package brokertest

import (
	"context"
	"testing"

	"github.com/millrace-streams/millrace/internal/topicread"
)

// ReadCommitted returns the committed records of the topic, by partition and then offset, from the log's start to its
// last stable offset at the time of the call. It does not wait for transactions that are open.
func ReadCommitted(t testing.TB, brokers []string, topic string) []Record {
	t.Helper()
	client := open(t, brokers)
	defer client.Close()
	var all []Record
	err := topicread.Committed(context.Background(), client, topic, func(r topicread.Record) error {
		out := Record{Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value, Timestamp: r.Timestamp}
		for _, h := range r.Headers {
			out.Headers = append(out.Headers, Header{Key: h.Key, Value: h.Value})
		}
		all = append(all, out)
		return nil
	})
	if err != nil {
		t.Fatalf("brokertest: %v", err)
	}
	return all
}

// LastStableOffset returns the offset up to which a reader of committed records can read the partition.
func LastStableOffset(t testing.TB, brokers []string, topic string, partition int32) int64 {
	t.Helper()
	client := open(t, brokers)
	defer client.Close()
	end, err := topicread.LastStableOffset(context.Background(), client, topic, partition)
	if err != nil {
		t.Fatalf("brokertest: last stable offset of %s-%d: %v", topic, partition, err)
	}
	return end
}
