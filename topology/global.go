package topology

import (
	"fmt"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
)

// Global is a handle on a global table: the rows of all partitions of a topic, at hand in every task. It comes from
// GlobalTable.
type Global[K, V any] struct {
	b *Builder
	s *store.KeyValue[K, V]
}

// GlobalTable reads a topic as a table that every task sees as a whole, so that streams can be joined with it by any key.
// Each process keeps all its rows, reads them anew when it starts and follows the topic at its own pace: there is no order
// between changes of the table and records of streams. Records without a key are skipped.
func GlobalTable[K, V any](b *Builder, t Topic[K, V], s *store.KeyValue[K, V]) Global[K, V] {
	return globalTable(b, t, s, func(_ K, v V) (V, bool) { return v, true }, true)
}

// GlobalTableOf is GlobalTable with rows that fn makes of the topic's records; false is no row. fn must depend on nothing
// but its arguments, as rows are made again at each start.
func GlobalTableOf[K, V, V2 any](b *Builder, t Topic[K, V], s *store.KeyValue[K, V2], fn func(key K, value V) (V2, bool)) Global[K, V2] {
	return globalTable(b, t, s, fn, fn != nil)
}

func globalTable[K, V, V2 any](b *Builder, t Topic[K, V], s *store.KeyValue[K, V2], fn func(K, V) (V2, bool), ok bool) Global[K, V2] {
	n := &node{at: caller()}
	n.Name = t.name
	n.need(b, ok, "the function")
	topicUsed(b, n, t)
	if s == nil {
		b.fail(n.at, n.Name, "the store declaration is nil")
		return Global[K, V2]{b, s}
	}
	n.need(b, s.KeySerde() != nil, fmt.Sprintf("the key serde of store %q", s.Name()))
	n.need(b, s.ValueSerde() != nil, fmt.Sprintf("the value serde of store %q", s.Name()))
	if u := b.stores[s.Name()]; u != nil && u.free {
		b.fail(n.at, n.Name, "store %q is used by the node %q at %s: declare the global table before what reads it", s.Name(), u.users[0].Name, u.at)
	}
	b.use(n, s, true)
	b.stores[s.Name()].global = true
	b.globals = append(b.globals, &processor.GlobalSpec{
		Name: s.Name(), Declaration: s, Topic: processor.Topic{Name: t.name},
		Decode: globalDecode(decoder[K, V]{t.name, t.keys, t.values}, s, fn),
	})
	return Global[K, V2]{b, s}
}

func globalDecode[K, V, V2 any](
	d decoder[K, V], s *store.KeyValue[K, V2], fn func(K, V) (V2, bool),
) func(*processor.Raw) (key, value []byte, err error) {
	null := nullTest[V2]()
	return func(raw *processor.Raw) (key, value []byte, err error) {
		r, err := d.decode(raw)
		if err != nil {
			return nil, nil, err
		}
		if key, err = appendTo(s.KeySerde(), nil, r.Key); err != nil || r.NullValue {
			return key, nil, err
		}
		v, ok := fn(r.Key, r.Value)
		if !ok || null != nil && null(v) {
			return key, nil, nil
		}
		value, err = appendTo(s.ValueSerde(), nil, v)
		return key, value, err
	}
}

// JoinGlobal joins each record of a stream with a row of a global table: key returns the row's key, or false if there is
// none. A record that has no key of a row is skipped, one whose row does not exist dropped, and so are tombstones. The stream
// need not be partitioned in any way.
func JoinGlobal[K, V, GK, GV, R any](
	s Stream[K, V], g Global[GK, GV], key func(K, V) (GK, bool), join func(key K, value V, row GV) R, opts ...Option,
) Stream[K, R] {
	fn := func(k K, v V, row GV, _ bool) R { return join(k, v, row) }
	return joinGlobal(s, g, key, fn, join != nil, false, opts)
}

// LeftJoinGlobal is JoinGlobal that keeps each record: exists is false, and row the zero value, if there is no row.
func LeftJoinGlobal[K, V, GK, GV, R any](
	s Stream[K, V], g Global[GK, GV], key func(K, V) (GK, bool), join func(key K, value V, row GV, exists bool) R, opts ...Option,
) Stream[K, R] {
	return joinGlobal(s, g, key, join, join != nil, true, opts)
}

func joinGlobal[K, V, GK, GV, R any](
	s Stream[K, V], g Global[GK, GV], key func(K, V) (GK, bool), fn func(K, V, GV, bool) R, ok, left bool, opts []Option,
) Stream[K, R] {
	n := s.b.child("join", options(opts), s.n)
	n.need(s.b, ok, "the join's function")
	n.need(s.b, key != nil, "the key's function")
	if g.b != s.b {
		s.b.fail(n.at, n.Name, "the stream and the table belong to different builders")
	}
	if g.s == nil {
		return Stream[K, R]{s.b, n}
	}
	n.Globals = []string{g.s.Name()}
	n.Bind = func(b *processor.Binding) (any, error) {
		rows, err := b.Task.Global(g.s.Name())
		if err != nil {
			return nil, err
		}
		find := &globalReader[GK, GV]{rows: rows, keys: g.s.KeySerde(), values: g.s.ValueSerde()}
		j := &streamJoiner[K, V, GK, GV, R]{
			task: b.Task, node: n.Name, left: left, find: find.get, fn: fn, next: processor.FanOut[K, R](b),
			key: func(r *processor.Record[K, V]) (GK, bool) { return key(r.Key, r.Value) },
		}
		return processor.Emit[K, V](j.process), nil
	}
	return Stream[K, R]{s.b, n}
}

// globalReader looks up rows of a global table for one task.
type globalReader[K, V any] struct {
	rows       processor.GlobalRows
	keys       serde.Serde[K]
	values     serde.Serde[V]
	key, value []byte
}

func (g *globalReader[K, V]) get(k K, _ int64) (found row[V], err error) {
	if g.key, err = appendTo(g.keys, g.key, k); err != nil {
		return found, err
	}
	g.value, found.timestamp, found.exists, err = g.rows.Get(g.value[:0], g.key)
	if err != nil || !found.exists {
		return found, err
	}
	if found.value, err = g.values.Decode(g.value); err != nil {
		err = fmt.Errorf("decode a row of the global table: %w", err)
	}
	return found, err
}
