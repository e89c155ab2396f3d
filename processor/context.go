package processor

import (
	"fmt"
	"slices"
	"time"

	"github.com/millrace-streams/millrace/store"
)

// Processor is a user's own node. One is made for each task, and only that task's goroutine calls it. If it also is an
// io.Closer it is closed with its task.
type Processor[KIn, VIn, KOut, VOut any] interface {
	// Init is called once, before the first record. The context stays valid for the life of the task.
	Init(ctx *Context[KOut, VOut]) error
	// Process handles one record. An error undoes the whole step and is handled as the application's ErrorPolicy says.
	Process(r Record[KIn, VIn]) error
}

// Context is what a processor can see and do. It must be used from within Init, Process and punctuations only.
type Context[K, V any] struct {
	task     *Task
	node     *Node
	all      Emit[K, V]
	children map[string]Emit[K, V]
}

// NewContext makes the context of a node that is being bound.
func NewContext[K, V any](b *Binding) *Context[K, V] {
	c := &Context[K, V]{task: b.Task, node: b.Node, all: FanOut[K, V](b), children: map[string]Emit[K, V]{}}
	for i, name := range b.Names {
		c.children[name] = Child[K, V](b, i)
	}
	return c
}

// NewQuietContext makes the context of a node whose user code returns its results: Forward and ForwardTo are ErrForward.
func NewQuietContext[K, V any](b *Binding) *Context[K, V] {
	return &Context[K, V]{task: b.Task, node: b.Node, all: func(Record[K, V]) error { return ErrForward }}
}

// Forward sends a record to all children, in the order of their declaration. What one child changes is not seen by the
// next. A negative timestamp is ErrNegativeTimestamp. Return the error that Forward returns.
func (c *Context[K, V]) Forward(r Record[K, V]) error {
	if r.Timestamp < 0 {
		return fmt.Errorf("%w: forward with %d", ErrNegativeTimestamp, r.Timestamp)
	}
	return c.all(r)
}

// ForwardTo sends a record to the child of the given name alone. An unknown name is ErrUnknownChild.
func (c *Context[K, V]) ForwardTo(child string, r Record[K, V]) error {
	emit, ok := c.children[child]
	if c.children == nil {
		return ErrForward
	}
	if !ok {
		return fmt.Errorf("%w: %q", ErrUnknownChild, child)
	}
	if r.Timestamp < 0 {
		return fmt.Errorf("%w: forward with %d", ErrNegativeTimestamp, r.Timestamp)
	}
	return emit(r)
}

// Task returns the task's id.
func (c *Context[K, V]) Task() TaskID { return c.task.ID }

// Topic returns the topic of the record in work, empty in punctuations and in Init.
func (c *Context[K, V]) Topic() string { return c.task.Origin().Topic }

// Partition returns the partition of the record in work, -1 in punctuations and in Init.
func (c *Context[K, V]) Partition() int32 { return c.task.Origin().Partition }

// Offset returns the offset of the record in work, -1 in punctuations and in Init.
func (c *Context[K, V]) Offset() int64 { return c.task.Origin().Offset }

// RecordTime returns the timestamp of the fetched record in work, or the time of the punctuation, in milliseconds.
func (c *Context[K, V]) RecordTime() int64 { return c.task.recordTime }

// StreamTime returns the highest record timestamp that the task has seen, -1 before the first.
func (c *Context[K, V]) StreamTime() int64 { return c.task.streamTime }

// Now returns the wall clock in milliseconds, as of the turn of the loop in which the call is made.
func (c *Context[K, V]) Now() int64 { return c.task.now }

// Layered opens a store by name, for the typed views: Counts.View(ctx). The store must have been connected to the node. A
// global table has no view: Names.Query(ctx) reads it.
func (c *Context[K, V]) Layered(name string) (*store.Layered, error) {
	if slices.Contains(c.node.Globals, name) {
		return nil, fmt.Errorf("%w: %q, node %q", ErrReadOnly, name, c.node.Name)
	}
	if !slices.Contains(c.node.Stores, name) {
		return nil, fmt.Errorf("%w: store %q, node %q", ErrUnknownStore, name, c.node.Name)
	}
	return c.task.Layered(name)
}

// Queried makes a context a store.QuerySource of global tables: Names.Query(ctx) reads the rows of all partitions, as they are
// at each call. The table's store must have been connected to the node.
func (c *Context[K, V]) Queried(d store.Declaration) (store.Queried, error) {
	if !slices.Contains(c.node.Globals, d.Name()) {
		return store.Queried{}, fmt.Errorf("%w: global table %q, node %q", ErrUnknownStore, d.Name(), c.node.Name)
	}
	return c.task.opt.Queries.Queried(d)
}

// Schedule calls fn whenever interval (at least a millisecond) has passed on the given clock, with the time in
// milliseconds. See PunctuationType for the first call and for gaps.
func (c *Context[K, V]) Schedule(interval time.Duration, clock PunctuationType, fn func(at int64) error) *Punctuation {
	return c.task.schedule(c.node.Name, interval, clock, fn)
}
