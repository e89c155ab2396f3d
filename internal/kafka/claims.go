package kafka

import (
	"errors"

	"github.com/IBM/sarama"
)

// claimClient is the group's client. A claim is a lease and is never read, so where its reading would begin, and whether
// its partition has a leader at the moment, must not be able to end the membership, as it would for a reader.
type claimClient struct{ sarama.Client }

// GetOffset returns a log's bounds as far as they are known.
func (c claimClient) GetOffset(topic string, partition int32, which int64) (int64, error) {
	offset, err := c.Client.GetOffset(topic, partition, which)
	if err != nil {
		return 0, nil //nolint:nilerr // any offset will do
	}
	return offset, nil
}

// LeaderAndEpoch returns the leader of a partition, or some other broker while there is none.
func (c claimClient) LeaderAndEpoch(topic string, partition int32) (*sarama.Broker, int32, error) {
	b, epoch, err := c.Client.LeaderAndEpoch(topic, partition)
	if err != nil {
		if any := c.Client.LeastLoadedBroker(); any != nil {
			return any, -1, nil
		}
	}
	return b, epoch, err
}

// PartitionNotReadable is never so.
func (c claimClient) PartitionNotReadable(string, int32) bool { return false }

// RefreshMetadata asks for the metadata of topics. That a partition has no leader is no reason to stop.
func (c claimClient) RefreshMetadata(topics ...string) error {
	if err := c.Client.RefreshMetadata(topics...); !errors.Is(err, sarama.ErrLeaderNotAvailable) {
		return err
	}
	return nil
}
