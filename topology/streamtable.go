package topology

import (
	"github.com/millrace-streams/millrace/processor"
)

// JoinTable joins each record of a stream with the row that the table has for its key at that moment, and drops it if there
// is none. Changes of the table cause nothing. Of a VersionedTable it is the row at the record's time. Tombstones are dropped,
// records without a key skipped. Time and headers are the record's. The topics of both must have equal partition counts, and be partitioned alike.
func JoinTable[K, V, T, R any](s Stream[K, V], t KTable[K, T], join func(key K, value V, row T) R, opts ...JoinOption) Stream[K, R] {
	fn := func(k K, v V, row T, _ bool) R { return join(k, v, row) }
	return joinTable(s, t, fn, join != nil, false, opts)
}

// LeftJoinTable is JoinTable that keeps each record: exists is false, and row the zero value, if there is no row. That is
// so for a record without a key, too.
func LeftJoinTable[K, V, T, R any](
	s Stream[K, V], t KTable[K, T], join func(key K, value V, row T, exists bool) R, opts ...JoinOption,
) Stream[K, R] {
	return joinTable(s, t, join, join != nil, true, opts)
}

func joinTable[K, V, T, R any](
	s Stream[K, V], t KTable[K, T], fn func(K, V, T, bool) R, ok, left bool, opts []JoinOption,
) Stream[K, R] {
	set := joinOptions(opts)
	n := s.b.child("join", set, s.n)
	n.need(s.b, ok, "the function")
	n.copartitioned(s.b, s.n)
	if t.b != s.b {
		s.b.fail(n.at, n.Name, "the stream and the table belong to different builders")
	}
	rows := viewOf(t, n, false)
	buffer := graceOf[K, V](s.b, n, set, rows.history, rows.asOf != nil)
	n.Bind = func(b *processor.Binding) (any, error) {
		find, err := rows.at(b.Task)
		if err != nil {
			return nil, err
		}
		j := &streamJoiner[K, V, K, T, R]{
			task: b.Task, node: n.Name, left: left, find: find, fn: fn, next: processor.FanOut[K, R](b),
			key: func(r *processor.Record[K, V]) (K, bool) { return r.Key, !r.NullKey },
		}
		if buffer == nil {
			return processor.Emit[K, V](j.process), nil
		}
		d, err := newDelay(b.Task, n.Name, buffer, set.grace, j.join)
		return processor.Emit[K, V](func(r processor.Record[K, V]) error {
			if r.NullValue || r.NullKey {
				return j.process(r)
			}
			return d.process(r)
		}), err
	}
	return Stream[K, R]{s.b, n}
}

// streamJoiner joins records with rows, whose key follows from the record.
type streamJoiner[K, V, K2, T, R any] struct {
	task *processor.Task
	node string
	left bool // keep what has no row
	key  func(*processor.Record[K, V]) (K2, bool)
	find lookupAt[K2, T]
	fn   func(K, V, T, bool) R
	next processor.Emit[K, R]
}

func (j *streamJoiner[K, V, K2, T, R]) process(r processor.Record[K, V]) error {
	if r.NullValue {
		return nil
	}
	return j.join(r)
}

func (j *streamJoiner[K, V, K2, T, R]) join(r processor.Record[K, V]) error {
	var found row[T]
	key, ok := j.key(&r)
	switch {
	case ok:
		var err error
		if found, err = j.find(key, r.Timestamp); err != nil {
			return processor.Failed(j.node, processor.KindProcess, err)
		}
	case !j.left:
		return j.task.NullKey(j.node)
	}
	if !found.exists && !j.left {
		return nil
	}
	return j.next(processor.Record[K, R]{
		Key: r.Key, NullKey: r.NullKey, Value: j.fn(r.Key, r.Value, found.value, found.exists), Timestamp: r.Timestamp, Headers: r.Headers,
	})
}
