package store

// The memory of a large set lies far from the processor, and a look-up waits for it
// at each layer: for the bucket, then for the entry. Whoever knows the keys of
// several look-ups to come has them waited for together: loads that do not depend on
// each other overlap.

const (
	// warmKeys is how many are waited for at once: about as many loads as a core
	// has under way.
	warmKeys = 16

	// warmLeast is the size of a set from which it is of use; smaller ones lie near.
	warmLeast = 4096
)

// Warm makes look-ups of keys faster that follow soon. It is for as many keys as a
// core's own cache holds all that is to be read of, a few dozen. It changes nothing.
func (l *Layered) Warm(keys [][]byte) {
	if l.layout != nil && l.ttl == nil || l.closed {
		return // the keys of its rows are others
	}
	sets := [...]*WriteSet{l.uncommitted, l.committing, l.committed, l.flushing}
	large := false
	for _, w := range sets {
		large = large || w != nil && w.Len() >= warmLeast
	}
	if !large {
		return
	}
	var hashes [warmKeys]uint32
	for len(keys) > 0 {
		n := min(len(keys), warmKeys)
		for i, key := range keys[:n] {
			hashes[i] = hashOf(key)
		}
		for _, w := range sets {
			if w != nil {
				l.warmth += w.table.warm(hashes[:n])
			}
		}
		keys = keys[n:]
	}
}

// warmNext is Warm of the entries that are to be adopted next.
func (w *WriteSet) warmNext(entries []*Entry) {
	if w.Len() < warmLeast {
		return
	}
	var hashes [warmKeys]uint32
	n := min(len(entries), warmKeys)
	for i, e := range entries[:n] {
		hashes[i] = e.hash
	}
	w.warmth += w.table.warm(hashes[:n])
}

// warm reads what find reads, as a rule. What it returns means nothing, but must be
// kept, lest the reading be left out.
func (t *table) warm(hashes []uint32) (read uint64) {
	if t.used == 0 {
		return 0
	}
	mask := uint32(len(t.buckets) - 1)
	for _, h := range hashes {
		read += t.buckets[h&mask].tags
	}
	for _, h := range hashes {
		b := &t.buckets[h&mask]
		if equal := b.alike(tagOf(h) * lowBits); equal != 0 {
			if e := b.slots[slotOf(equal)]; e != nil {
				read += uint64(e.hash)
			}
		}
	}
	return read
}
