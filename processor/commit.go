package processor

import (
	"iter"

	"github.com/millrace-streams/millrace/store"
)

// Commit names all that must become durable together, atomically under exactly-once. It is made by [Task.Prepare];
// commits of several tasks are joined with [Commit.Join]. Nothing in it is changed until its outcome is known.
type Commit struct {
	Positions []Position
	Records   [][]Output // in chunks, none of them empty
	Writes    []Writes
}

// Outputs goes through the records, which are the commit's.
func (c *Commit) Outputs() iter.Seq[*Output] {
	return func(yield func(*Output) bool) {
		for _, chunk := range c.Records {
			for i := range chunk {
				if !yield(&chunk[i]) {
					return
				}
			}
		}
	}
}

// Position is how far an input partition was processed: the offset of the next record to read.
type Position struct {
	TopicPartition
	Offset   int64
	Metadata string // kept by the broker beside the offset
}

// Output is an encoded record for a topic. Key and Value are null when nil.
type Output struct {
	Topic     string
	Partition int32
	Key       []byte
	Value     []byte
	Timestamp int64
	Headers   []Header
}

// Writes is the write set of one store, to be mirrored to its changelog partition.
type Writes struct {
	Changelog TopicPartition
	Set       *store.WriteSet
}

// Empty reports whether there is nothing to make durable.
func (c *Commit) Empty() bool {
	return len(c.Positions) == 0 && len(c.Records) == 0 && len(c.Writes) == 0
}

// Reset empties the commit for the next one. The memory of its records goes back to where tasks have it from; see
// [Options.Chunks].
func (c *Commit) Reset(chunks *Chunks) {
	if c.Empty() {
		return
	}
	used := len(c.Records)
	chunks.give(c.Records...)
	chunks.trim(used)
	clear(c.Positions)
	clear(c.Records)
	clear(c.Writes)
	c.Positions, c.Records, c.Writes = c.Positions[:0], c.Records[:0], c.Writes[:0]
}

// Join adds a copy of what another task has to commit.
func (c *Commit) Join(d Commit) {
	c.Positions = append(c.Positions, d.Positions...)
	c.Records = append(c.Records, d.Records...)
	c.Writes = append(c.Writes, d.Writes...)
}
