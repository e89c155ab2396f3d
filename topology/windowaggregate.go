package topology

import (
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
)

// CountWindows counts the records of each key in each window. In time windows, null values are counted too, as Kafka Streams
// does; in sliding windows they are ignored. Records without a key are skipped. A row's timestamp is the highest of its
// records'.
func CountWindows[K, V any](w WindowedStream[K, V], s *store.Window[K, int64], opts ...TableOption) KTable[store.Windowed[K], int64] {
	n := w.g.b.child("countwindows", tableOptions(opts), w.g.n)
	n.blind = true
	count := func(_ K, _ V, row int64, _ bool) int64 { return row + 1 }
	return aggregateWindows(w, n, s, opts, windowInput[K, V, int64]{next: count, nulls: true})
}

// ReduceWindows combines the records of each key in each window: the first value is the row, and then fn makes the next row
// of the row and each further value. Null values are ignored. Keys and timestamps are treated as by CountWindows.
func ReduceWindows[K, V any](
	w WindowedStream[K, V], fn func(row, value V) V, s *store.Window[K, V], opts ...TableOption,
) KTable[store.Windowed[K], V] {
	n := w.g.b.child("reducewindows", tableOptions(opts), w.g.n)
	n.need(w.g.b, fn != nil, "the function")
	return aggregateWindows(w, n, s, opts, windowInput[K, V, V]{next: reducing[K](fn)})
}

// AggregateWindows makes a row of another type of the records of each key in each window: fn makes the next row of each
// record and the row, which is init's for the first. fn may change the row that it was given and return it; a nil pointer or
// nil slice of bytes deletes the row. Nulls and timestamps are treated as by ReduceWindows.
func AggregateWindows[K, V, A any](
	w WindowedStream[K, V], init func() A, fn func(key K, value V, row A) A, s *store.Window[K, A], opts ...TableOption,
) KTable[store.Windowed[K], A] {
	n := w.g.b.child("aggregatewindows", tableOptions(opts), w.g.n)
	n.need(w.g.b, init != nil, "the initial value's function")
	n.need(w.g.b, fn != nil, "the function")
	return aggregateWindows(w, n, s, opts, windowInput[K, V, A]{next: aggregatingFrom(init, fn)})
}

// reducing is a reducer as what an aggregation does.
func reducing[K, V any](fn func(row, value V) V) func(K, V, V, bool) V {
	return func(_ K, value, row V, exists bool) V {
		if !exists {
			return value
		}
		return fn(row, value)
	}
}

// aggregatingFrom is an initial value and an aggregator as what an aggregation does.
func aggregatingFrom[K, V, A any](init func() A, fn func(K, V, A) A) func(K, V, A, bool) A {
	return func(key K, value V, row A, exists bool) A {
		if !exists {
			row = init()
		}
		return fn(key, value, row)
	}
}

// aggregateWindows completes an aggregating node.
func aggregateWindows[K, V, A any](
	w WindowedStream[K, V], n *node, s *store.Window[K, A], opts []TableOption, in windowInput[K, V, A],
) KTable[store.Windowed[K], A] {
	set := tableOptions(opts)
	windowTable(w.g.b, n, s, w.windows, set)
	*w.made = append(*w.made, n)
	n.Bind = func(b *processor.Binding) (any, error) {
		table, late := listeners[K, V, store.Windowed[K], A](b)
		a, err := bindWindows(b, n, s, w.windows, set, table)
		if err != nil {
			return nil, err
		}
		in := in // tasks are bound by several workers at once
		in.late = late
		return in.bind(a.take), nil
	}
	return KTable[store.Windowed[K], A]{w.g.b, n}
}

// windowTable makes n the table of windows that writes the store.
func windowTable[K, A any](b *Builder, n *node, s *store.Window[K, A], w Windowing, set settings) {
	n.need(b, w != nil, "the windows")
	if w != nil {
		b.inWindows(n, set, w.grace(), w.check())
		keepWindows(b, n, s, w)
	}
	n.table.view = windowsView(n, s)
}

// windowRecord is a record on its way into windows, without the type of its value.
type windowRecord[K, A any] struct {
	key                K
	nullKey, nullValue bool
	timestamp          int64
	headers            []processor.Header
	update             func(row A, exists bool) A // what it makes of a row
}

// windowInput turns records into those for windows.
type windowInput[K, V, A any] struct {
	next  func(key K, value V, row A, exists bool) A
	nulls bool                 // null values count, where the windows allow it
	late  processor.Emit[K, V] // nil: nobody listens
}

// bind returns the bound node that hands its records to take, which tells whether a record was too late for every window.
func (in windowInput[K, V, A]) bind(take func(*windowRecord[K, A]) (late bool, err error)) processor.Emit[K, V] {
	var value V
	r := new(windowRecord[K, A])
	r.update = func(row A, exists bool) A { return in.next(r.key, value, row, exists) }
	return func(record processor.Record[K, V]) error {
		if record.NullValue && !in.nulls && !record.NullKey {
			return nil
		}
		r.key, r.nullKey, r.nullValue = record.Key, record.NullKey, record.NullValue
		r.timestamp, r.headers, value = record.Timestamp, record.Headers, record.Value
		late, err := take(r)
		if err != nil || !late || in.late == nil {
			return err
		}
		return in.late(record)
	}
}

// windowAggregation is an aggregation in time or sliding windows in one task.
type windowAggregation[K, A any] struct {
	*windowRows[K, A]
	grace   int64
	advance int64           // 0: sliding windows
	seen    *processor.Kept // stream time
	emitted *processor.Kept // up to which closing time results were forwarded; nil without EmitOnClose
	idle    *idleClose      // nil without WallClockClose
}

func bindWindows[K, A any](
	b *processor.Binding, n *node, s *store.Window[K, A], w Windowing, set settings, next processor.Emit[store.Windowed[K], processor.Change[A]],
) (*windowAggregation[K, A], error) {
	a, err := newWindowAggregation(b, n, s, w, "")
	if err != nil {
		return nil, err
	}
	a.bind(n, next, set)
	if set.closing.onClose {
		a.emitted = b.Task.Keep(s.Name())
	}
	a.idle = newIdleClose(b, set, a.closeAll)
	return a, nil
}

// newWindowAggregation returns the aggregation of one of the streams that are aggregated in the table of n.
func newWindowAggregation[K, A any](
	b *processor.Binding, n *node, s *store.Window[K, A], w Windowing, stream string,
) (*windowAggregation[K, A], error) {
	t, err := windowRowsOf(b.Task, n, s)
	if err != nil {
		return nil, err
	}
	a := &windowAggregation[K, A]{windowRows: t, grace: w.grace().Milliseconds(), seen: streamTimeOf(b.Task, s.Name()+stream)}
	if w, ok := w.(TimeWindows); ok {
		a.advance = w.advance.Milliseconds()
	}
	return a, nil
}

// streamTimeOf returns the stream time that a node has seen.
func streamTimeOf(task *processor.Task, name string) *processor.Kept {
	return task.Keep(name + "@stream-time")
}

// take is the node.
func (a *windowAggregation[K, A]) take(r *windowRecord[K, A]) (late bool, err error) {
	if r.nullKey {
		return false, a.task.NullKey(a.node)
	}
	if a.advance == 0 {
		return a.takeSliding(r)
	}
	a.idle.touch()
	a.seen.Advance(r.timestamp)
	closeTime := a.seen.Value() - a.grace
	late = true
	for start := a.first(r.timestamp); start <= r.timestamp; start += a.advance {
		if start+a.size <= closeTime {
			a.tooLate(r, start)
			continue
		}
		late = false
		if err := a.updateTime(r, start); err != nil {
			return false, err
		}
	}
	return late, a.emitClosed(closeTime)
}

// first returns the start of the first window that a timestamp falls into.
func (a *windowAggregation[K, A]) first(ts int64) int64 {
	return max(0, ts-a.size+a.advance) / a.advance * a.advance
}

func (a *windowAggregation[K, A]) updateTime(r *windowRecord[K, A], start int64) error {
	found, err := a.find(r.key, start)
	if err != nil {
		return a.failed(err)
	}
	old, err := a.old(r.key, start, found.exists)
	if err != nil {
		return a.failed(err)
	}
	return a.put(r.key, start, r.update(found.value, found.exists), max(r.timestamp, found.timestamp), r.headers, old)
}

// tooLate reports that a window of the record is closed.
func (a *windowAggregation[K, A]) tooLate(r *windowRecord[K, A], start int64) {
	a.task.Late(processor.Late{Node: a.node, Timestamp: r.timestamp, Start: start, End: start + a.size, StreamTime: a.seen.Value()})
}
