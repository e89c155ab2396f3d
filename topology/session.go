package topology

import (
	"fmt"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
)

// CountSessions counts the records of each key in each session. Null values are counted too, as Kafka Streams does; records
// without a key are skipped. When a record joins a session, or joins several into one, the rows of those sessions are
// deleted, in the order of their ends, and then the row of the new session is written. A row's change has the time of its
// session's end.
func CountSessions[K, V any](w SessionStream[K, V], s *store.Session[K, int64], opts ...TableOption) KTable[store.Windowed[K], int64] {
	n := w.g.b.child("countsessions", tableOptions(opts), w.g.n)
	n.blind = true
	count := func(_ K, _ V, row int64, _ bool) int64 { return row + 1 }
	merge := func(_ K, a, b int64) int64 { return a + b }
	return aggregateSessions(w, n, s, opts, windowInput[K, V, int64]{next: count, nulls: true}, merging[K, int64]{fn: merge})
}

// ReduceSessions combines the records of each key in each session: the first value is the row, and then fn makes the next
// row of the row and each further value, and one row of two. Null values are ignored. Keys, merging and timestamps are
// treated as by CountSessions.
func ReduceSessions[K, V any](
	w SessionStream[K, V], fn func(row, value V) V, s *store.Session[K, V], opts ...TableOption,
) KTable[store.Windowed[K], V] {
	n := w.g.b.child("reducesessions", tableOptions(opts), w.g.n)
	n.need(w.g.b, fn != nil, "the function")
	merge := func(_ K, a, b V) V { return fn(a, b) }
	return aggregateSessions(w, n, s, opts, windowInput[K, V, V]{next: reducing[K](fn)}, merging[K, V]{fn: merge})
}

// AggregateSessions makes a row of another type of the records of each key in each session: fn makes the next row of each
// record and the row; merge makes one row of two. A session begins with init's, with which those that it takes in are
// merged one by one, in the order of their ends. The functions may change the rows that they were given and return them; a
// nil pointer or nil slice of bytes deletes the row. Nulls, merging and timestamps are treated as by ReduceSessions.
func AggregateSessions[K, V, A any](
	w SessionStream[K, V], init func() A, fn func(key K, value V, row A) A, merge func(key K, a, b A) A,
	s *store.Session[K, A], opts ...TableOption,
) KTable[store.Windowed[K], A] {
	n := w.g.b.child("aggregatesessions", tableOptions(opts), w.g.n)
	n.need(w.g.b, init != nil, "the initial value's function")
	n.need(w.g.b, fn != nil, "the function")
	n.need(w.g.b, merge != nil, "the merging function")
	in := windowInput[K, V, A]{next: aggregatingFrom(init, fn)}
	return aggregateSessions(w, n, s, opts, in, merging[K, A]{init: init, fn: merge})
}

// merging is how a session takes in others.
type merging[K, A any] struct {
	init func() A // what a session begins with; nil: nothing
	fn   func(key K, a, b A) A
}

// aggregateSessions completes an aggregating node.
func aggregateSessions[K, V, A any](
	w SessionStream[K, V], n *node, s *store.Session[K, A], opts []TableOption, in windowInput[K, V, A], m merging[K, A],
) KTable[store.Windowed[K], A] {
	set := tableOptions(opts)
	sessionTable(w.g.b, n, s, w.windows, set)
	*w.made = append(*w.made, n)
	n.Bind = func(b *processor.Binding) (any, error) {
		table, late := listeners[K, V, store.Windowed[K], A](b)
		a, err := bindSessions(b, n, s, w.windows, set, m, table)
		if err != nil {
			return nil, err
		}
		in := in // tasks are bound by several workers at once
		in.late = late
		return in.bind(a.take), nil
	}
	return KTable[store.Windowed[K], A]{w.g.b, n}
}

// sessionTable makes n the table of sessions that writes the store.
func sessionTable[K, A any](b *Builder, n *node, s *store.Session[K, A], w SessionWindows, set settings) {
	b.inWindows(n, set, w.gap+w.after, w.check())
	if s != nil {
		n.need(b, s.KeySerde() != nil, fmt.Sprintf("the key serde of store %q", s.Name()))
		n.need(b, s.ValueSerde() != nil, fmt.Sprintf("the value serde of store %q", s.Name()))
		need := w.gap + w.after // Kafka Streams' default
		if set.closing.onClose {
			need = w.Store().Retention // or a session could be accepted, and lost
		}
		if err := checkRetention(s.Retention(), need); err != nil {
			b.fail(n.at, n.Name, "store %q does not fit: %w", s.Name(), err)
		}
	}
	b.keep(n, s)
	n.table.view = sessionsView(n, s)
}

// sessionRows are the rows of an aggregation in sessions in one task.
type sessionRows[K, A any] struct {
	windowChanges[K, A]
	view *store.SessionView[K, A]
}

// sessionRowsOf returns the rows of a table's node in a task. It may be called before the node is bound.
func sessionRowsOf[K, A any](task *processor.Task, n *node, s *store.Session[K, A]) (*sessionRows[K, A], error) {
	if t, ok := task.Shared(n).(*sessionRows[K, A]); ok {
		return t, nil
	}
	view, err := s.View(task)
	if err != nil {
		return nil, err
	}
	t := &sessionRows[K, A]{view: view}
	t.windowChanges = windowChanges[K, A]{
		task: task, node: n.Name, store: s.Name(), keys: s.KeySerde(), values: s.ValueSerde(), null: nullTest[A](), ends: true,
	}
	task.Share(n, t)
	return t, nil
}

// find returns the row of a session.
func (t *sessionRows[K, A]) find(w store.Windowed[K]) (r row[A], err error) {
	r.value, r.exists, err = t.view.FetchSession(w.Key, w.Start, w.End)
	r.timestamp = w.End
	return r, err
}

// old returns the row of a session for the listeners, see windowRows.old.
func (t *sessionRows[K, A]) old(w store.Windowed[K], existed bool) (r row[A], err error) {
	if !existed || !t.keepOld {
		return row[A]{exists: existed, timestamp: w.End}, nil
	}
	return t.find(w)
}

// remove deletes the row of a session.
func (t *sessionRows[K, A]) remove(w store.Windowed[K], ts int64, headers []processor.Header) error {
	old, err := t.old(w, true)
	if err != nil {
		return t.failed(err)
	}
	e, err := t.view.RemoveRecord(w, ts, headers)
	if err != nil {
		return t.failed(err)
	}
	return t.changed(windowChange[K, A]{window: w, old: old, time: w.End, headers: headers}, e)
}

// put writes the row of a session, or deletes it if there is no value.
func (t *sessionRows[K, A]) put(w store.Windowed[K], v A, ts int64, headers []processor.Header, old row[A]) (err error) {
	c := windowChange[K, A]{window: w, value: v, exists: t.null == nil || !t.null(v), old: old, time: w.End, headers: headers}
	var e *store.Entry
	switch {
	case c.exists:
		if e, err = t.view.PutRecord(w, v, ts, headers); err == nil && e == nil {
			err = t.lost(w, ts, t.view.Time)
		}
	case old.exists:
		e, err = t.view.RemoveRecord(w, ts, headers)
	case !t.atOnce:
		return nil // that there still is none is told to those who want each update
	}
	if err != nil {
		return t.failed(err)
	}
	return t.changed(c, e)
}

// sessionsView is the view of a table of sessions.
func sessionsView[K, A any](n *node, s *store.Session[K, A]) *view[store.Windowed[K], A] {
	return &view[store.Windowed[K], A]{
		stores: []store.Declaration{s}, tables: []*node{n},
		bind: func(task *processor.Task, known bool) (lookup[store.Windowed[K], A], error) {
			t, err := sessionRowsOf(task, n, s)
			if err != nil {
				return nil, err
			}
			return func(w store.Windowed[K]) (row[A], error) {
				if r, held, err := t.known(w); known && (held || err != nil) {
					return r, err
				}
				return t.find(w)
			}, nil
		},
	}
}
