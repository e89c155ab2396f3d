package topology

import (
	"encoding/binary"
	"math/bits"
)

// murmur3 is Austin Appleby's MurmurHash3, 128 bits for 64-bit machines, with Kafka Streams' seed 104729, as two big-endian
// numbers. The responses of a foreign-key join carry the hash of the row that they answer.
func murmur3(data []byte) (hash [16]byte) {
	const c1, c2 = 0x87c37b91114253d5, 0x4cf5ad432745937f
	h1, h2, length := uint64(murmur3Seed), uint64(murmur3Seed), uint64(len(data))
	mix1 := func(k uint64) uint64 { return bits.RotateLeft64(k*c1, 31) * c2 }
	mix2 := func(k uint64) uint64 { return bits.RotateLeft64(k*c2, 33) * c1 }
	for ; len(data) >= 16; data = data[16:] {
		h1 ^= mix1(binary.LittleEndian.Uint64(data))
		h1 = (bits.RotateLeft64(h1, 27)+h2)*5 + 0x52dce729
		h2 ^= mix2(binary.LittleEndian.Uint64(data[8:]))
		h2 = (bits.RotateLeft64(h2, 31)+h1)*5 + 0x38495ab5
	}
	var tail [16]byte
	copy(tail[:], data)
	h2 ^= mix2(binary.LittleEndian.Uint64(tail[8:])) // no effect where there is nothing
	h1 ^= mix1(binary.LittleEndian.Uint64(tail[:]))
	h1, h2 = h1^length, h2^length
	h1 += h2
	h2 += h1
	h1, h2 = avalanche(h1), avalanche(h2)
	h1 += h2
	h2 += h1
	binary.BigEndian.PutUint64(hash[:], h1)
	binary.BigEndian.PutUint64(hash[8:], h2)
	return hash
}

const murmur3Seed = 104729

func avalanche(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
