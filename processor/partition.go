package processor

// PartitionForKey returns the partition that Kafka's Java producer chooses for a key: murmur2 with the seed 0x9747b28c,
// made positive, modulo the number of partitions.
func PartitionForKey(key []byte, partitions int32) int32 {
	return int32(murmur2(key)&0x7fffffff) % partitions
}

// murmur2 is Austin Appleby's MurmurHash2, 32 bits, in the variant of Kafka's clients.
func murmur2(data []byte) uint32 {
	const m, r, seed = 0x5bd1e995, 24, 0x9747b28c
	h := uint32(seed) ^ uint32(len(data))
	for ; len(data) >= 4; data = data[4:] {
		k := uint32(data[0]) | uint32(data[1])<<8 | uint32(data[2])<<16 | uint32(data[3])<<24
		k *= m
		k ^= k >> r
		k *= m
		h = h*m ^ k
	}
	switch len(data) {
	case 3:
		h ^= uint32(data[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(data[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(data[0])) * m
	}
	h ^= h >> 13
	h *= m
	return h ^ h>>15
}
