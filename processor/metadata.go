package processor

import (
	"encoding/base64"
	"encoding/binary"
)

// Unknown is the time of a partition or a task that has seen no record.
const Unknown = -1

// EncodePartitionTime returns the metadata string that is committed beside a position, so that stream time survives a
// restart: Kafka Streams' TopicPartitionMetadata, Base64 of a byte 2, the partition's time as a big-endian int64, and an
// int32 0, the number of processors' own entries.
func EncodePartitionTime(time int64) string {
	b := binary.BigEndian.AppendUint64([]byte{2}, uint64(time))
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(b, 0))
}

// DecodePartitionTime reads what EncodePartitionTime, or Kafka Streams since 2.5, has written. Anything else is Unknown.
func DecodePartitionTime(metadata string) int64 {
	b, err := base64.StdEncoding.DecodeString(metadata)
	if err != nil || len(b) < 9 || b[0] < 1 || b[0] > 2 {
		return Unknown
	}
	return max(int64(binary.BigEndian.Uint64(b[1:])), Unknown)
}
