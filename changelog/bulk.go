package changelog

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"iter"
	"slices"

	"github.com/millrace-streams/millrace/store"
)

// bulk gathers the records of a changelog until they are loaded, sorted and one per key. It is a log in memory and a list
// of what is where in it, without pointers: neither is there a map to keep, nor has the garbage collector anything to scan.
//
// The list is in order up to sorted. What comes after it is merged now and then, when it has become as much as the rest:
// a changelog of few keys and many records stays small.
type bulk struct {
	log    [][]byte // chunks; no record crosses their borders
	list   []staged
	sorted int
	dead   int // bytes of the log that are not listed any more
	size   int // bytes of the log, its unused ends included
}

// staged is one record.
type staged struct {
	prefix    uint64 // of the key, as it sorts
	chunk, at uint32 // where key and value lie in the log, one after the other
	key       uint32 // length
	value     int32  // length, or deleted
	timestamp int64
}

const (
	deleted    = -1
	stagedSize = 32
	// Chunks double up to a size: standbys that are nearly up to date stage little at a time.
	leastChunk, largestChunk = 1 << 14, 1 << 20
	// mergeLeast is how many records are merged at least.
	mergeLeast = 1 << 16
)

// bytes is the memory that it takes.
func (b *bulk) bytes() int { return b.size + stagedSize*cap(b.list) }

func (b *bulk) empty() bool { return len(b.list) == 0 }

// add copies a record.
func (b *bulk) add(rec *Record) {
	chunk, at := b.write(rec.Key, rec.Value)
	s := staged{prefix: prefixOf(rec.Key), chunk: chunk, at: at, key: uint32(len(rec.Key)), value: int32(len(rec.Value)), timestamp: rec.Timestamp}
	if rec.Value == nil {
		s.value = deleted
	}
	b.list = append(b.list, s)
	if fresh := len(b.list) - b.sorted; fresh >= max(mergeLeast, b.sorted) {
		b.merge()
	}
}

// write appends to the log.
func (b *bulk) write(key, value []byte) (chunk, at uint32) {
	n := len(key) + len(value)
	last := len(b.log) - 1
	if last < 0 || len(b.log[last])+n > cap(b.log[last]) {
		c := make([]byte, 0, max(n, min(largestChunk, max(leastChunk, b.size))))
		b.log = append(b.log, c)
		b.size += cap(c)
		last++
	}
	at = uint32(len(b.log[last]))
	b.log[last] = append(append(b.log[last], key...), value...)
	return uint32(last), at
}

// prefixOf is the first eight bytes of a key as a number that sorts as they do.
func prefixOf(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var first [8]byte
	copy(first[:], key)
	return binary.BigEndian.Uint64(first[:])
}

func (b *bulk) keyOf(s *staged) []byte { return b.log[s.chunk][s.at : s.at+s.key] }

// compare orders records by key.
func (b *bulk) compare(x, y *staged) int {
	if x.prefix != y.prefix {
		return cmp.Compare(x.prefix, y.prefix)
	}
	return bytes.Compare(b.keyOf(x), b.keyOf(y))
}

// merge leaves the last record of each key, in order.
func (b *bulk) merge() {
	fresh := b.list[b.sorted:]
	slices.SortFunc(fresh, func(x, y staged) int {
		if c := b.compare(&x, &y); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(x.chunk, y.chunk), cmp.Compare(x.at, y.at)) // the later one last
	})
	merged := make([]staged, 0, len(b.list))
	keep := func(s *staged) {
		if n := len(merged); n > 0 && b.compare(&merged[n-1], s) == 0 {
			b.dead += merged[n-1].length()
			merged[n-1] = *s
			return
		}
		merged = append(merged, *s)
	}
	old := b.list[:b.sorted]
	for i := range fresh {
		for len(old) > 0 && b.compare(&old[0], &fresh[i]) <= 0 {
			keep(&old[0])
			old = old[1:]
		}
		keep(&fresh[i])
	}
	b.list = append(merged, old...)
	b.sorted = len(b.list)
	if b.dead > b.size/2 {
		b.rewrite()
	}
}

func (s *staged) length() int { return int(s.key) + int(max(0, s.value)) }

// rewrite leaves in the log what is listed.
func (b *bulk) rewrite() {
	old := b.log
	b.log, b.size, b.dead = nil, 0, 0
	for i := range b.list {
		s := &b.list[i]
		s.chunk, s.at = b.write(old[s.chunk][s.at:s.at+uint32(s.length())], nil)
	}
}

// rows goes through the last record of each key, in order. They are valid until more is added.
func (b *bulk) rows() iter.Seq[store.Pair] {
	if b.sorted < len(b.list) {
		b.merge()
	}
	return func(yield func(store.Pair) bool) {
		for i := range b.list {
			s := &b.list[i]
			p := store.Pair{Key: b.keyOf(s), Timestamp: s.timestamp}
			if s.value != deleted {
				from := s.at + s.key
				p.Value = b.log[s.chunk][from : from+uint32(s.value) : from+uint32(s.value)]
			}
			if !yield(p) {
				return
			}
		}
	}
}
