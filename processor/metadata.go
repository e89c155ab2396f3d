package processor

import (
	"encoding/base64"
	"encoding/binary"
)

// Unknown is the time of a partition or a task that has seen no record.
const Unknown = -1

// EncodePartitionTime returns the metadata string that is committed beside a position, so that stream time survives a
// restart: Kafka Streams' TopicPartitionMetadata, Base64 of a byte 2, the partition's time as a big-endian int64, an int32,
// the number of entries of processors, and these: an int32, the length of the name, the name, and an int64. There are none
// here; a task adds what its nodes keep, see [Task.Keep].
func EncodePartitionTime(time int64) string { return encodeMetadata(time, 0, nil, nil) }

func encodeMetadata(time, commits int64, kept []*Kept, marks []Mark) string {
	b := binary.BigEndian.AppendUint64(append(make([]byte, 0, 128), 2), uint64(time))
	n := uint32(0)
	b = binary.BigEndian.AppendUint32(b, n)
	add := func(name string, value int64) {
		n++
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(name))), name...)
		b = binary.BigEndian.AppendUint64(b, uint64(value))
	}
	for _, k := range kept {
		if k.value != Unknown {
			add(k.name, k.value)
		}
	}
	for _, m := range marks {
		add(m.Name, m.Value)
	}
	if n > 0 {
		add(commitCount, commits)
	}
	binary.BigEndian.PutUint32(b[9:], n)
	return base64.StdEncoding.EncodeToString(b)
}

// DecodePartitionTime reads what EncodePartitionTime, or Kafka Streams since 2.5, has written. Anything else is Unknown.
func DecodePartitionTime(metadata string) int64 {
	b, err := base64.StdEncoding.DecodeString(metadata)
	if err != nil || len(b) < 9 || b[0] < 1 || b[0] > 2 {
		return Unknown
	}
	return max(int64(binary.BigEndian.Uint64(b[1:])), Unknown)
}

// keptEntry is a processor's entry in the metadata.
type keptEntry struct {
	name  string
	value int64
}

// decodeKept returns the processors' entries, as far as they can be read.
func decodeKept(metadata string) (entries []keptEntry) {
	b, err := base64.StdEncoding.DecodeString(metadata)
	if err != nil || len(b) < 13 || b[0] != 2 {
		return nil
	}
	n := binary.BigEndian.Uint32(b[9:])
	for b = b[13:]; n > 0 && len(b) >= 4; n-- {
		length := int(binary.BigEndian.Uint32(b))
		if b = b[4:]; length < 0 || len(b) < length+8 {
			return entries
		}
		entries = append(entries, keptEntry{string(b[:length]), int64(binary.BigEndian.Uint64(b[length:]))})
		b = b[length+8:]
	}
	return entries
}
