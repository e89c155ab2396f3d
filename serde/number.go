package serde

import (
	"encoding/binary"
	"math"
)

// Int32 is the serde of 32-bit integers: 4 bytes, big-endian, as Java's
// IntegerSerializer writes. Other lengths fail with [ErrLength].
var Int32 Serde[int32] = int32Serde{}

type int32Serde struct{}

func (int32Serde) Append(dst []byte, v int32) ([]byte, error) {
	return binary.BigEndian.AppendUint32(dst, uint32(v)), nil
}

func (int32Serde) Decode(data []byte) (int32, error) {
	if len(data) != 4 {
		return 0, wrongLength("int32", data, 4)
	}
	return int32(binary.BigEndian.Uint32(data)), nil
}

// Int64 is the serde of 64-bit integers: 8 bytes, big-endian, as Java's
// LongSerializer writes. Other lengths fail with [ErrLength].
var Int64 Serde[int64] = int64Serde{}

type int64Serde struct{}

func (int64Serde) Append(dst []byte, v int64) ([]byte, error) {
	return binary.BigEndian.AppendUint64(dst, uint64(v)), nil
}

func (int64Serde) Decode(data []byte) (int64, error) {
	if len(data) != 8 {
		return 0, wrongLength("int64", data, 8)
	}
	return int64(binary.BigEndian.Uint64(data)), nil
}

// javaNaN holds the bits that Java's Double.doubleToLongBits gives for every
// NaN. Those of Go's math.NaN are different.
const javaNaN = 0x7ff8000000000000

// Float64 is the serde of 64-bit floating-point numbers: their IEEE 754 bits in
// 8 bytes, big-endian, as Java's DoubleSerializer writes. Every NaN is written
// with the same bits, as in Java. Other lengths fail with [ErrLength].
//
// As a key, -0 and 0 differ: they are equal numbers with different bytes.
var Float64 Serde[float64] = float64Serde{}

type float64Serde struct{}

func (float64Serde) Append(dst []byte, v float64) ([]byte, error) {
	bits := math.Float64bits(v)
	if math.IsNaN(v) {
		bits = javaNaN
	}
	return binary.BigEndian.AppendUint64(dst, bits), nil
}

func (float64Serde) Decode(data []byte) (float64, error) {
	if len(data) != 8 {
		return 0, wrongLength("float64", data, 8)
	}
	return math.Float64frombits(binary.BigEndian.Uint64(data)), nil
}
