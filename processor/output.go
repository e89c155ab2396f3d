package processor

import (
	"unsafe"

	"github.com/millrace-streams/millrace/serde"
)

// arenaChunk is the size of the memory blocks that encoded outputs are laid into, so that a record costs no allocation.
const arenaChunk = 64 << 10

// arenaReserve is the free space below which a new block is begun; a longer value gets memory of its own.
const arenaReserve = 512

// Outputs collects a task's encoded output records between two commits.
type Outputs struct {
	chunks [][]Output // all but the last are full
	spares *Chunks    // where they come from
	count  int
	mark   int
	bytes  int
	limit  int    // the largest record, 0 for any
	arena  []byte // where encodings are laid
	spread int32  // the next partition for records without a key
}

// Encode appends the encoding of v to the outputs' memory and returns it. The slice is valid for as long as it is held.
func Encode[T any](o *Outputs, s serde.Serde[T], v T) ([]byte, error) {
	if cap(o.arena)-len(o.arena) < arenaReserve {
		o.arena = make([]byte, 0, arenaChunk)
	}
	free := o.arena[len(o.arena):]
	b, err := s.Append(free, v)
	if err != nil {
		return nil, err
	}
	if b == nil {
		b = free // an encoding of no bytes is empty, not null
	}
	if unsafe.SliceData(b) == unsafe.SliceData(free) {
		o.arena = o.arena[:len(o.arena)+len(b)]
	}
	return b[:len(b):len(b)], nil
}

// Add appends a record. Its slices must not be changed afterwards. One that the broker would refuse for its size, and with
// it the whole commit, is a *TooLargeError.
func (o *Outputs) Add(out Output) error {
	if size := out.size(); o.limit > 0 && size > o.limit {
		return &TooLargeError{Topic: out.Topic, Size: size, Limit: o.limit}
	}
	o.add(out)
	return nil
}

func (o *Outputs) add(out Output) {
	last := len(o.chunks) - 1
	if last < 0 || len(o.chunks[last]) == cap(o.chunks[last]) {
		o.chunks = append(o.chunks, o.spares.take())
		last++
	}
	o.chunks[last] = append(o.chunks[last], out)
	o.count++
	o.bytes += len(out.Key) + len(out.Value) + recordOverhead
}

// size is the record's part of a batch, but for a few bytes.
func (out *Output) size() int {
	n := len(out.Key) + len(out.Value)
	for _, h := range out.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return n
}

// recordOverhead stands for the memory of a staged record beside its key and value.
const recordOverhead = 100

// Partition chooses the partition of a record: by its key as Kafka's Java client does, in turn when it has none.
func (o *Outputs) Partition(key []byte, partitions int32) int32 {
	if key != nil {
		return PartitionForKey(key, partitions)
	}
	o.spread = (o.spread + 1) % partitions
	return o.spread
}

func (o *Outputs) begin() { o.mark = o.count }

// rollback takes out what was added since begin.
func (o *Outputs) rollback() {
	for ; o.count > o.mark; o.count-- {
		at := len(o.chunks) - 1
		chunk := o.chunks[at]
		last := len(chunk) - 1
		o.bytes -= len(chunk[last].Key) + len(chunk[last].Value) + recordOverhead
		chunk[last] = Output{}
		if o.chunks[at] = chunk[:last]; last == 0 {
			o.spares.give(chunk[:0])
			o.chunks[at] = nil
			o.chunks = o.chunks[:at]
		}
	}
}

// move appends the records to dst, and begins anew.
func (o *Outputs) move(dst [][]Output) [][]Output {
	dst = append(dst, o.chunks...)
	clear(o.chunks)
	o.chunks, o.count, o.mark, o.bytes = o.chunks[:0], 0, 0, 0
	return dst
}
