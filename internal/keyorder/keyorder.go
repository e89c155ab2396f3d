// Package keyorder sorts keys by numbers made of their bytes, which spares most comparisons of the keys themselves: those
// of one store mostly differ soon after what all of them have in common.
package keyorder

import (
	"bytes"
	"cmp"
	"encoding/binary"
)

// Numbered is how many bytes of a key its number stands for.
const Numbered = 8

// Common returns the length of what a and b have in common at their beginning.
func Common(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// Number returns the eight bytes of the key behind the first skip ones as a number that sorts as they do. Zeros stand for what
// is not there.
func Number(key []byte, skip int) uint64 {
	key = key[skip:]
	if len(key) >= Numbered {
		return binary.BigEndian.Uint64(key)
	}
	var first [Numbered]byte
	copy(first[:], key)
	return binary.BigEndian.Uint64(first[:])
}

// Compare orders two keys that have their first skip bytes and their numbers in common.
func Compare(a, b []byte, skip int) int {
	rest := skip + Numbered
	if len(a) <= rest || len(b) <= rest {
		return cmp.Compare(len(a), len(b)) // one is the other, or what it begins with, or that and zeros
	}
	return bytes.Compare(a[rest:], b[rest:])
}
