package serde

import "encoding/binary"

// OrderedInt32 is the serde of 32-bit integers whose bytes order as the numbers
// do, negative ones below positive ones: 4 bytes, big-endian, with the sign bit
// flipped. Stores order keys by their bytes, so this is for keys that are to be
// scanned by ranges.
//
// These are not the bytes that Java's IntegerSerializer writes; [Int32] writes
// those. Other lengths fail with [ErrLength].
var OrderedInt32 Serde[int32] = orderedInt32{}

type orderedInt32 struct{}

const (
	sign32 = 1 << 31
	sign64 = 1 << 63
)

func (orderedInt32) Append(dst []byte, v int32) ([]byte, error) {
	return binary.BigEndian.AppendUint32(dst, uint32(v)^sign32), nil
}

func (orderedInt32) Decode(data []byte) (int32, error) {
	if len(data) != 4 {
		return 0, wrongLength("ordered int32", data, 4)
	}
	return int32(binary.BigEndian.Uint32(data) ^ sign32), nil
}

// OrderedInt64 is [OrderedInt32] for 64-bit integers, in 8 bytes. These are not
// the bytes that Java's LongSerializer writes; [Int64] writes those.
var OrderedInt64 Serde[int64] = orderedInt64{}

type orderedInt64 struct{}

func (orderedInt64) Append(dst []byte, v int64) ([]byte, error) {
	return binary.BigEndian.AppendUint64(dst, uint64(v)^sign64), nil
}

func (orderedInt64) Decode(data []byte) (int64, error) {
	if len(data) != 8 {
		return 0, wrongLength("ordered int64", data, 8)
	}
	return int64(binary.BigEndian.Uint64(data) ^ sign64), nil
}

// PartitionKeyer is a [Serde] of keys of which only a part chooses the partition:
// a key in a window goes where the key itself goes.
type PartitionKeyer interface {
	// PartitionKey returns that part of an encoded key, without a copy.
	PartitionKey(key []byte) []byte
}
