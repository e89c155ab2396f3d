package processor

import (
	"slices"

	"github.com/millrace-streams/millrace/store"
)

// Header is one header of a Kafka record. Its bytes must not be changed.
type Header = store.Header

// Record is a typed record on its way through a topology. It is handed on by value: changing a field affects only the
// nodes below. The elements of Headers may be shared with the record that was received, so build a new slice
// ([WithHeader], [WithoutHeader]) rather than assigning to an element.
type Record[K, V any] struct {
	Key       K
	Value     V
	NullKey   bool  // the record has no key; Key is the zero value
	NullValue bool  // the record is a tombstone; Value is the zero value
	Timestamp int64 // event time, milliseconds since 1970 (UTC), never negative
	Headers   []Header
}

// Emit passes a record on to the nodes below. It is what a node is once it is bound to a task.
type Emit[K, V any] func(Record[K, V]) error

// WithHeader returns headers with one more header at the end. The argument is not changed.
func WithHeader(headers []Header, key string, value []byte) []Header {
	return append(slices.Clip(headers), Header{Key: key, Value: value})
}

// WithoutHeader returns headers without those named key. The argument is not changed.
func WithoutHeader(headers []Header, key string) []Header {
	return slices.DeleteFunc(slices.Clone(headers), func(h Header) bool { return h.Key == key })
}

// Change is an update of a table's row: the value before and the value after. A deletion has no New, a first value no Old.
type Change[V any] struct {
	Old, New       V
	HasOld, HasNew bool
	// Outdated says, for a versioned table only, that the change came out of order: Old is the row's latest value, which New
	// does not replace.
	Outdated bool
}

// Raw is a record as it was fetched. Key and Value are null when nil, and empty when of length zero. The task keeps the
// slices until the record is processed and does not change them.
type Raw struct {
	Key, Value []byte
	Headers    []Header
	Timestamp  int64 // milliseconds since 1970; negative when the producer set none
	Offset     int64
}

// FanOut joins the children of a node that is being bound, each an Emit[K, V], into one Emit that calls them in order.
// Every child gets its own header slice, so what one does to it is not seen by the next.
func FanOut[K, V any](b *Binding) Emit[K, V] {
	emits := make([]Emit[K, V], len(b.Children))
	for i := range emits {
		emits[i] = Child[K, V](b, i)
	}
	return fanOut(emits)
}

func fanOut[K, V any](emits []Emit[K, V]) Emit[K, V] {
	switch len(emits) {
	case 0:
		return func(Record[K, V]) error { return nil }
	case 1:
		return emits[0]
	}
	return func(r Record[K, V]) error {
		for _, emit := range emits {
			own := r
			own.Headers = slices.Clone(r.Headers)
			if err := emit(own); err != nil {
				return err
			}
		}
		return nil
	}
}

// Child returns the i-th child of a node that is being bound. The task notes that a step has entered it and left it, so
// that a panic can be told with the name of its node.
func Child[K, V any](b *Binding, i int) Emit[K, V] {
	t, emit := b.Task, b.Children[i].(Emit[K, V])
	to, from := t.spec.index(b.Names[i]), t.spec.index(b.Node.Name)
	return func(r Record[K, V]) error {
		t.node = to
		err := emit(r)
		t.node = from
		return err
	}
}
