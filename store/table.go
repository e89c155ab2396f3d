package store

import "hash/maphash"

// table finds the entries of a write set by their keys. It is open addressing with
// linear probing; growing looks at no entry, and a key that is not there costs one
// look into the table as a rule. A key's hash is the same in all sets, so a look-up
// in several layers, or a move from one to the next, computes it once.
type table struct {
	slots []slot // a power of two, or none
	used  int
}

// slot is free if it has no entry.
type slot struct {
	entry *Entry
	hash  uint32 // of the entry's key
}

const leastSlots = 16

// keySeed is the process's own, so that nobody can choose keys that collide.
var keySeed = maphash.MakeSeed()

func hashOf(key []byte) uint32 { return uint32(maphash.Bytes(keySeed, key)) }

// find returns the entry of the key, or nil.
func (t *table) find(hash uint32, key []byte) *Entry {
	if t.used == 0 {
		return nil
	}
	mask := uint32(len(t.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		s := &t.slots[i]
		if s.entry == nil || s.hash == hash && s.entry.Key == string(key) {
			return s.entry
		}
	}
}

// insert adds an entry whose key is not there.
func (t *table) insert(e *Entry) {
	if 4*(t.used+1) > 3*len(t.slots) {
		t.grow()
	}
	t.place(slot{e, e.hash})
	t.used++
}

func (t *table) place(s slot) {
	mask := uint32(len(t.slots) - 1)
	i := s.hash & mask
	for t.slots[i].entry != nil {
		i = (i + 1) & mask
	}
	t.slots[i] = s
}

func (t *table) grow() {
	old := t.slots
	t.slots = make([]slot, max(leastSlots, 2*len(old)))
	for _, s := range old {
		if s.entry != nil {
			t.place(s)
		}
	}
}

// remove takes an entry out that is there, and moves those up that were put behind
// it for want of its slot.
func (t *table) remove(e *Entry) {
	mask := uint32(len(t.slots) - 1)
	free := e.hash & mask
	for t.slots[free].entry != e {
		free = (free + 1) & mask
	}
	for i := (free + 1) & mask; t.slots[i].entry != nil; i = (i + 1) & mask {
		if home := t.slots[i].hash & mask; (i-home)&mask >= (i-free)&mask {
			t.slots[free] = t.slots[i]
			free = i
		}
	}
	t.slots[free] = slot{}
	t.used--
}

// reset empties the table and keeps its memory.
func (t *table) reset() {
	clear(t.slots)
	t.used = 0
}
