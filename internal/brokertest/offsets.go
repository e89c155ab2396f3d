package brokertest

import (
	"errors"
	"testing"
	"time"

	"github.com/IBM/sarama"
)

// GroupOffsets returns the offsets that the group has committed for the topic, by partition. Partitions without a
// commit are absent; a group that nobody has used has none.
func GroupOffsets(t testing.TB, brokers []string, group, topic string) map[int32]int64 {
	t.Helper()
	client := open(t, brokers)
	defer client.Close()
	partitions, err := client.Partitions(topic)
	if err != nil {
		t.Fatalf("brokertest: offsets of group %s on %s: %v", group, topic, err)
	}
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		t.Fatalf("brokertest: %v", err)
	}
	var offsets map[int32]int64
	Eventually(t, 30*time.Second, func() (bool, string) {
		resp, err := admin.ListConsumerGroupOffsets(group, map[string][]int32{topic: partitions})
		if errors.Is(err, sarama.ErrGroupIDNotFound) { // Kafka answers with no offsets, the embedded broker with this
			offsets = map[int32]int64{}
			return true, ""
		}
		if err != nil {
			return false, err.Error()
		}
		offsets, err = committed(resp, topic, partitions)
		if err != nil { // a transaction may just be ending, a coordinator loading
			return false, err.Error()
		}
		return true, ""
	})
	return offsets
}

func committed(resp *sarama.OffsetFetchResponse, topic string, partitions []int32) (map[int32]int64, error) {
	offsets := map[int32]int64{}
	if resp.Err != sarama.ErrNoError {
		return nil, resp.Err
	}
	for _, p := range partitions {
		block := resp.GetBlock(topic, p)
		switch {
		case block == nil:
		case block.Err != sarama.ErrNoError:
			return nil, block.Err
		case block.Offset >= 0:
			offsets[p] = block.Offset
		}
	}
	return offsets, nil
}
