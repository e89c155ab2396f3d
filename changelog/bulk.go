package changelog

import (
	"cmp"
	"iter"
	"slices"

	"github.com/millrace-streams/millrace/internal/keyorder"
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
	common int // length of what the keys of the sorted part have in common: their numbers are of what follows
	dead   int // bytes of the log that are not listed any more
	size   int // bytes of the log, its unused ends included
}

// staged is one record.
type staged struct {
	number    uint64 // of eight bytes of the key, as it sorts; set by merge
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
	s := staged{chunk: chunk, at: at, key: uint32(len(rec.Key)), value: int32(len(rec.Value)), timestamp: rec.Timestamp}
	if rec.Value == nil {
		s.value = deleted
	}
	b.list = append(b.list, s)
	if fresh := len(b.list) - b.sorted; fresh >= max(mergeLeast, b.sorted) {
		b.merge()
	}
}

// write appends to the log. What is empty takes a byte: the place of a record in the log is its place in time.
func (b *bulk) write(key, value []byte) (chunk, at uint32) {
	n := max(1, len(key)+len(value))
	last := len(b.log) - 1
	if last < 0 || len(b.log[last])+n > cap(b.log[last]) {
		c := make([]byte, 0, max(n, min(largestChunk, max(leastChunk, b.size))))
		b.log = append(b.log, c)
		b.size += cap(c)
		last++
	}
	at = uint32(len(b.log[last]))
	b.log[last] = append(append(b.log[last], key...), value...)[:int(at)+n]
	return uint32(last), at
}

func (b *bulk) keyOf(s *staged) []byte { return b.log[s.chunk][s.at : s.at+s.key] }

// numberKeys gives the records that are new their numbers, and the others new ones if the keys have less in common now.
func (b *bulk) numberKeys() {
	first, common := b.keyOf(&b.list[0]), b.common
	if b.sorted == 0 {
		common = len(first)
	}
	for i := b.sorted; i < len(b.list); i++ {
		common = keyorder.Common(first[:common], b.keyOf(&b.list[i]))
	}
	from := b.sorted
	if common < b.common {
		from = 0
	}
	b.common = common
	for i := range b.list[from:] {
		s := &b.list[from+i]
		s.number = keyorder.Number(b.keyOf(s), common)
	}
}

// compare orders records by key. Most keys differ in their numbers.
func (b *bulk) compare(x, y *staged) int {
	if x.number != y.number {
		return cmp.Compare(x.number, y.number)
	}
	return keyorder.Compare(b.keyOf(x), b.keyOf(y), b.common)
}

// merge leaves the last record of each key, in order.
func (b *bulk) merge() {
	b.numberKeys()
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
