package store

// undoLog remembers what the entries of a set held before the current step.
// Its buffers are re-used by the next step, so that a step in steady state
// allocates nothing. An entry is saved once per step, at its first change;
// entries made in the step need no record: they are cut off the order.
type undoLog struct {
	step    uint64
	saved   []undo
	arena   []byte     // the saved values, one after the other
	headers [][]Header // the saved headers, of entries that had any

	markLen   int // length of the order at Mark
	markBytes int
}

// undo holds no pointer, so that a step costs the garbage collector nothing.
type undo struct {
	timestamp int64
	from, to  int   // the value in the arena
	place     int32 // of the entry in the order
	headers   int32 // of the entry in the log, -1 for none
	local     bool
	echo      bool
	aux       int32
	deleted   bool
}

// maxIdleArena bounds what an undo log keeps from one step to the next.
const maxIdleArena = 1 << 20

// Mark begins a step: Rollback returns to the state of now. A new set is marked.
func (w *WriteSet) Mark() {
	w.step++
	if len(w.saved) > 0 {
		w.forget()
	}
	w.markLen, w.markBytes = len(w.order), w.bytes
}

// Rollback undoes every write since the last Mark: values, timestamps, headers,
// tombstones, Aux, and the places of keys first touched since. The set is then
// as just marked. Entries of such keys must not be used again.
func (w *WriteSet) Rollback() {
	for i := range w.saved {
		w.restore(&w.saved[i])
	}
	for i := w.markLen; i < len(w.order); i++ {
		w.drop(w.order[i])
		w.order[i] = nil
	}
	w.order = w.order[:w.markLen]
	w.bytes = w.markBytes
	w.Mark()
}

// save records e before its first change in this step.
func (w *WriteSet) save(e *Entry) {
	from := len(w.arena)
	w.arena = append(w.arena, e.Value...)
	headers := int32(-1)
	if len(e.Headers) > 0 {
		headers = int32(len(w.headers))
		w.headers = append(w.headers, e.Headers)
	}
	w.saved = append(w.saved, undo{
		place: e.place, from: from, to: len(w.arena),
		timestamp: e.Timestamp, headers: headers, deleted: e.Deleted, aux: e.Aux,
		local: e.Local, echo: e.echo,
	})
	e.step = w.step
}

func (w *WriteSet) restore(u *undo) {
	e := w.order[u.place]
	e.Value = append(e.Value[:0], w.arena[u.from:u.to]...)
	e.Timestamp, e.Deleted, e.Local, e.echo, e.Aux = u.timestamp, u.deleted, u.local, u.echo, u.aux
	e.Headers = nil
	if u.headers >= 0 {
		e.Headers = w.headers[u.headers]
	}
}

// drop removes an entry from the table and the index; the caller cuts the order.
func (w *WriteSet) drop(e *Entry) {
	w.table.remove(e)
	w.recent = nil
	if w.index != nil {
		w.index.Delete(e)
	}
	w.version++
	w.release(e)
}

// forget empties the log but keeps its buffers.
func (u *undoLog) forget() {
	if cap(u.arena) > maxIdleArena {
		u.saved, u.arena, u.headers = nil, nil, nil
		return
	}
	clear(u.headers) // they must not be kept alive
	u.saved, u.arena, u.headers = u.saved[:0], u.arena[:0], u.headers[:0]
}

// recycler makes entries: in slabs, or from entries given back.
type recycler struct {
	free []*Entry
	slab []Entry
}

const (
	slabSize = 31 // fills a block of 4 KiB

	// maxFree and maxFreeValue bound the memory that waits to be used again.
	maxFree      = 1 << 15
	maxFreeValue = 4 << 10
)

// take returns an entry with an empty value and everything else zero.
func (r *recycler) take() *Entry {
	if n := len(r.free); n > 0 {
		e := r.free[n-1]
		r.free[n-1] = nil
		r.free = r.free[:n-1]
		return e
	}
	if len(r.slab) == 0 {
		r.slab = make([]Entry, slabSize)
	}
	e := &r.slab[0]
	r.slab = r.slab[1:]
	e.Value = e.inlineValue[:0]
	return e
}

// release gives an entry back that nothing refers to any more.
func (r *recycler) release(e *Entry) {
	if len(r.free) >= maxFree {
		return
	}
	value := e.Value[:0]
	if cap(value) < inlineSize || cap(value) > maxFreeValue {
		value = e.inlineValue[:0]
	}
	*e = Entry{Value: value}
	r.free = append(r.free, e)
}
