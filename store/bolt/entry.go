package bolt

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

const (
	keyPrefix = 0x01
	crcSize   = 4
	tsSize    = 8
)

var (
	errShortValue = errors.New("a value is too short")
	errChecksum   = errors.New("an entry's checksum is wrong")

	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// appendKey appends the key as it is stored.
func appendKey(dst, key []byte) []byte { return append(append(dst, keyPrefix), key...) }

// seal writes what is stored under a key into stored, which has room for exactly that, and returns the entry's checksum.
func seal(stored, key []byte, ts int64, value []byte) uint32 {
	binary.BigEndian.PutUint64(stored[crcSize:], uint64(ts))
	copy(stored[crcSize+tsSize:], value)
	crc := checksum(key, stored[crcSize:])
	binary.BigEndian.PutUint32(stored, crc)
	return crc
}

// unseal takes apart what is stored under a key.
func unseal(key, stored []byte) (ts int64, value []byte, crc uint32, err error) {
	if len(stored) < crcSize+tsSize {
		return 0, nil, 0, errShortValue
	}
	crc = binary.BigEndian.Uint32(stored)
	if checksum(key, stored[crcSize:]) != crc {
		return 0, nil, 0, errChecksum
	}
	return int64(binary.BigEndian.Uint64(stored[crcSize:])), stored[crcSize+tsSize:], crc, nil
}

// checksum covers an entry's key, timestamp and value.
func checksum(key, rest []byte) uint32 {
	return crc32.Update(crc32.Update(0, castagnoli, key), castagnoli, rest)
}

// contents stands for a set of entries, in whatever order: two sets that differ have the same with a probability of about
// 2^-32. That is how an old image of a page is noticed, whose entries are sound in themselves.
type contents struct {
	count int64
	sum   uint64
}

func (c *contents) add(crc uint32)    { c.count++; c.sum += scatter(crc) }
func (c *contents) remove(crc uint32) { c.count--; c.sum -= scatter(crc) }

// scatter spreads a checksum over 64 bits, so that sums of checksums do not cancel each other: those of similar entries
// differ in the same bits. It is the finalizer of splitmix64.
func scatter(crc uint32) uint64 {
	x := uint64(crc) + 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}
