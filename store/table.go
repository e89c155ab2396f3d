package store

import (
	"hash/maphash"
	"math/bits"
)

// table finds the entries of a write set by their keys. It is open addressing over
// buckets of a cache line each. A byte for each slot of a bucket, its tag, tells
// most other keys from the one that is looked for, all at a time, as in Abseil's
// Swiss tables; so a key that is not there costs one cache line. A key's hash is the
// same in all sets: a look-up in several layers, or a move from one to the next,
// computes it once.
type table struct {
	buckets []bucket // a power of two, or none
	used    int      // slots with entries
	removed int      // slots tagged so
}

// bucket holds entries whose hash chooses it, or one of those before it that were full.
type bucket struct {
	tags  uint64 // a byte for each slot; the topmost has none
	slots [bucketSlots]*Entry
}

const bucketSlots = 7

// Bytes of tags. That of an entry has its highest bit set.
const (
	free    = 0x00
	removed = 0x01 // free, but entries may lie in the buckets behind
)

const (
	lowBits  = 0x0001010101010101 // the lowest bit of each slot's tag
	highBits = 0x0080808080808080
	tagBits  = 8
)

// tagOf is of bits that do not choose the bucket.
func tagOf(hash uint32) uint64 { return uint64(hash>>25) | 0x80 }

func (b *bucket) tag(slot int, tag uint64) {
	b.tags = b.tags&^(0xff<<(tagBits*slot)) | tag<<(tagBits*slot)
}

// alike marks the tags that are equal to those wanted, and sometimes one behind such a tag.
func (b *bucket) alike(wanted uint64) uint64 {
	other := b.tags ^ wanted
	return (other - lowBits) &^ other & highBits
}

// open reports whether a slot is free, so that nothing lies in the buckets behind
// for want of one.
func (b *bucket) open() bool { return (b.tags-lowBits)&^b.tags&highBits != 0 }

// slotOf returns the slot of the lowest bit in bits of tags.
func slotOf(tags uint64) int { return bits.TrailingZeros64(tags) / tagBits }

const leastBuckets = 2

// keySeed is the process's own, so that nobody can choose keys that collide.
var keySeed = maphash.MakeSeed()

func hashOf(key []byte) uint32 { return uint32(maphash.Bytes(keySeed, key)) }

// find returns the entry of the key, or nil.
func (t *table) find(hash uint32, key []byte) *Entry {
	if t.used == 0 {
		return nil
	}
	mask, wanted := uint32(len(t.buckets)-1), tagOf(hash)*lowBits
	for i := hash & mask; ; i = (i + 1) & mask {
		b := &t.buckets[i]
		for equal := b.alike(wanted); equal != 0; equal &= equal - 1 {
			if e := b.slots[slotOf(equal)]; e != nil && e.hash == hash && e.Key == string(key) {
				return e
			}
		}
		if b.open() {
			return nil
		}
	}
}

// insert adds an entry whose key is not there.
func (t *table) insert(e *Entry) {
	if 4*(t.used+t.removed+1) > 3*bucketSlots*len(t.buckets) {
		t.grow()
	}
	t.place(e)
	t.used++
}

// place puts an entry into the first slot for it that holds none.
func (t *table) place(e *Entry) {
	mask := uint32(len(t.buckets) - 1)
	for i := e.hash & mask; ; i = (i + 1) & mask {
		b := &t.buckets[i]
		if empty := ^b.tags & highBits; empty != 0 {
			slot := slotOf(empty)
			if b.tags>>(tagBits*slot)&0xff == removed {
				t.removed--
			}
			b.slots[slot] = e
			b.tag(slot, tagOf(e.hash))
			return
		}
	}
}

func (t *table) grow() {
	old := t.buckets
	t.buckets, t.removed = make([]bucket, max(leastBuckets, 2*len(old))), 0
	for i := range old {
		for _, e := range old[i].slots {
			if e != nil {
				t.place(e)
			}
		}
	}
}

// remove takes an entry out that is there.
func (t *table) remove(e *Entry) {
	mask := uint32(len(t.buckets) - 1)
	for i := e.hash & mask; ; i = (i + 1) & mask {
		b := &t.buckets[i]
		for slot, other := range b.slots {
			if other == e {
				b.slots[slot] = nil
				t.used--
				if b.open() { // it never was full
					b.tag(slot, free)
				} else {
					b.tag(slot, removed)
					t.removed++
				}
				return
			}
		}
	}
}

// reset empties the table and keeps its memory.
func (t *table) reset() {
	clear(t.buckets)
	t.used, t.removed = 0, 0
}
