package topology

import (
	"testing"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
)

// bindTime binds a source of the topic and returns what finds its event times.
func bindTime(t *testing.T, topic Topic[string, int64]) func(*processor.Raw, int64) int64 {
	t.Helper()
	b := &processor.Binding{Node: &processor.Node{Name: "in"}}
	if _, err := bindSource(&node{}, topic.keys, topic.values, topic.time)(b); err != nil {
		t.Fatal(err)
	}
	return b.Timestamp
}

func TestEventTime(t *testing.T) {
	in := NewTopic("in", serde.String, serde.Int64)
	if bindTime(t, in) != nil {
		t.Fatal("a topic without an extractor has one")
	}
	five := []byte{0, 0, 0, 0, 0, 0, 0, 5}
	at := bindTime(t, in.WithEventTime(func(key string, value, recordTime, partitionTime int64) int64 {
		if key == "panic" {
			panic("no time")
		}
		return value*1000 + recordTime + partitionTime
	}))
	for _, c := range []struct {
		raw  processor.Raw
		want int64
	}{
		{processor.Raw{Value: five, Timestamp: 3}, 5103},
		{processor.Raw{Timestamp: 3}, 103},                                    // a tombstone comes as the zero value
		{processor.Raw{Value: []byte("short"), Timestamp: 3}, 3},              // undecodable: fails when its turn comes
		{processor.Raw{Value: five, Key: []byte("panic")}, processor.Unknown}, // a bad record
	} {
		if got := at(&c.raw, 100); got != c.want {
			t.Errorf("%+v: got %d, want %d", c.raw, got, c.want)
		}
	}
}

// Field report 38: a negative timestamp may take its partition's time.
func TestFieldReport38PartitionTimeForNegativeTimestamps(t *testing.T) {
	at := bindTime(t, NewTopic("in", serde.String, serde.Int64).WithEventTime(PartitionTimeIfNegative))
	for _, c := range []struct{ record, partition, want int64 }{{7, 100, 7}, {-1, 100, 100}, {-1, processor.Unknown, processor.Unknown}} {
		if got := at(&processor.Raw{Timestamp: c.record}, c.partition); got != c.want {
			t.Errorf("%+v: got %d", c, got)
		}
	}
}
