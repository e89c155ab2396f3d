package brokertest

import (
	"errors"
	"testing"
	"time"

	"github.com/IBM/sarama"
)

// GroupOffsets returns the stable offsets that the group has committed for the topic, by partition. Partitions without a
// commit are absent; a group that nobody has used has none.
func GroupOffsets(t testing.TB, brokers []string, group, topic string) map[int32]int64 {
	t.Helper()
	client := open(t, brokers)
	defer client.Close()
	partitions, err := client.Partitions(topic)
	if err != nil {
		t.Fatalf("brokertest: offsets of group %s on %s: %v", group, topic, err)
	}
	var offsets map[int32]int64
	Eventually(t, 30*time.Second, func() (bool, string) {
		resp, err := stableOffsets(client, group, topic, partitions)
		if errors.Is(err, sarama.ErrGroupIDNotFound) { // Kafka answers with no offsets, the embedded broker with this
			offsets = map[int32]int64{}
			return true, ""
		}
		if err == nil {
			offsets, err = committed(resp, topic, partitions)
		}
		if err != nil { // a transaction may just be ending, a coordinator loading
			return false, err.Error()
		}
		return true, ""
	})
	return offsets
}

// stableOffsets asks for the offsets that no transaction is about to change: a commit that has been answered takes effect a
// little later.
func stableOffsets(client sarama.Client, group, topic string, partitions []int32) (*sarama.OffsetFetchResponse, error) {
	if err := client.RefreshCoordinator(group); err != nil {
		return nil, err
	}
	coordinator, err := client.Coordinator(group)
	if err != nil {
		return nil, err
	}
	req := sarama.NewOffsetFetchRequest(sarama.V2_5_0_0, group, map[string][]int32{topic: partitions})
	req.RequireStable = true
	resp, err := coordinator.FetchOffset(req)
	if err == nil && resp.Err != sarama.ErrNoError {
		err = resp.Err
	}
	return resp, err
}

func committed(resp *sarama.OffsetFetchResponse, topic string, partitions []int32) (map[int32]int64, error) {
	offsets := map[int32]int64{}
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
