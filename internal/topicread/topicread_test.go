package topicread_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/internal/topicread"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

// A reader that goes on where it has stopped gets what has come since, of partitions that it does not know all.
func TestCommittedFrom(t *testing.T) {
	brokers := brokertest.Brokers(t)
	topic := brokertest.Topic(t, "numbers", 2)
	for i := range 3 {
		for p := range int32(2) {
			brokertest.Produce(t, brokers, topic, brokertest.Record{Partition: p, Value: fmt.Append(nil, i)})
		}
	}
	client, err := sarama.NewClient(brokers, brokertest.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var got []string
	err = topicread.CommittedFrom(context.Background(), client, topic, map[int32]int64{0: 2}, func(r topicread.Record) error {
		got = append(got, fmt.Sprintf("%d@%d=%s", r.Partition, r.Offset, r.Value))
		return nil
	})
	if want := []string{"0@2=2", "1@0=0", "1@1=1", "1@2=2"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}
