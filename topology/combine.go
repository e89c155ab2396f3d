package topology

import (
	"fmt"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
)

// Partial is a handle on partial aggregates: what one task made of the records of a key between two commits. They are on
// their way to the task that owns the key; Combine makes a table of them.
//
// Aggregating before the repartition topic spares most of what goes through it when keys repeat within a commit interval,
// and keeps a key that comes far more often than others from loading its owner. It costs no state of its own: partial
// aggregates live in memory and leave with the commit that holds the positions of their records. It is what Flink SQL
// calls local-global aggregation.
type Partial[K, A any] struct {
	grouped Grouped[K, A]
	merge   func(row, partial A) A
}

// PreCount counts the records of each new key in the task that reads them. Tombstones are dropped.
func PreCount[K, V, K2 any](s Stream[K, V], r Repartition[K2, int64], key func(K, V) K2, opts ...Option) Partial[K2, int64] {
	n := s.b.child("precount", options(opts), s.n)
	n.need(s.b, key != nil, "the key's function")
	return preAggregate(s, n, r, key,
		func(_ K2, _ V, count int64, _ bool) int64 { return count + 1 },
		func(row, partial int64) int64 { return row + partial })
}

// PreReduce combines the values of each new key in the task that reads them. fn must be associative: it is called on
// values, on what it has made of several, and in any grouping of them. Tombstones are dropped.
func PreReduce[K, V, K2 any](
	s Stream[K, V], r Repartition[K2, V], key func(K, V) K2, fn func(row, value V) V, opts ...Option,
) Partial[K2, V] {
	n := s.b.child("prereduce", options(opts), s.n)
	n.need(s.b, key != nil, "the key's function")
	n.need(s.b, fn != nil, "the function")
	return preAggregate(s, n, r, key, func(_ K2, value, row V, exists bool) V {
		if !exists {
			return value
		}
		return fn(row, value)
	}, fn)
}

// PreAggregate aggregates the values of each new key in the task that reads them, beginning with init's. merge combines two
// aggregates, of which row was made of earlier records of the partition; Combine begins with the first, without init.
// Tombstones are dropped. fn and merge may change the row that they are given and return it.
func PreAggregate[K, V, K2, A any](
	s Stream[K, V], r Repartition[K2, A], key func(K, V) K2,
	init func() A, fn func(key K2, value V, row A) A, merge func(row, partial A) A, opts ...Option,
) Partial[K2, A] {
	n := s.b.child("preaggregate", options(opts), s.n)
	n.need(s.b, key != nil, "the key's function")
	n.need(s.b, init != nil, "the initial value's function")
	n.need(s.b, fn != nil, "the function")
	n.need(s.b, merge != nil, "the merging function")
	return preAggregate(s, n, r, key, func(key K2, value V, row A, exists bool) A {
		if !exists {
			row = init()
		}
		return fn(key, value, row)
	}, merge)
}

// Combine merges partial aggregates into the rows of a table. The row's timestamp is the highest of its records'.
func Combine[K, A any](p Partial[K, A], s *store.KeyValue[K, A], opts ...TableOption) KTable[K, A] {
	n := p.grouped.b.child("combine", tableOptions(opts), p.grouped.n)
	return aggregateBy(p.grouped, n, s, opts, func(_ K, partial, row A, exists bool) A {
		if !exists {
			return partial
		}
		return p.merge(row, partial)
	})
}

func preAggregate[K, V, K2, A any](
	s Stream[K, V], n *node, r Repartition[K2, A], key func(K, V) K2,
	next func(key K2, value V, row A, exists bool) A, merge func(row, partial A) A,
) Partial[K2, A] {
	n.Bind = func(b *processor.Binding) (any, error) {
		o, err := newOutlet(b, r.keys, r.values)
		if err != nil {
			return nil, err
		}
		if b.Task.EveryUpdate() {
			return atOnce(o, key, next), nil
		}
		p := &partials[K2, A]{outlet: o, set: store.NewWriteSet()}
		b.Task.AddCache(p)
		return processor.Emit[K, V](func(in processor.Record[K, V]) error {
			if in.NullValue {
				return nil
			}
			k := key(in.Key, in.Value)
			row, exists, err := p.find(k)
			if err == nil {
				err = p.put(next(k, in.Value, row, exists), in.Timestamp, in.Headers)
			}
			return processor.Failed(o.node, processor.KindProcess, err)
		}), nil
	}
	return Partial[K2, A]{Grouped[K2, A]{s.b, cut(s.b, n, r)}, merge}
}

// atOnce sends an aggregate of its own for each record.
func atOnce[K, V, K2, A any](o *outlet[K2, A], key func(K, V) K2, next func(K2, V, A, bool) A) processor.Emit[K, V] {
	return func(in processor.Record[K, V]) error {
		if in.NullValue {
			return nil
		}
		var none A
		k := key(in.Key, in.Value)
		return o.send(processor.Record[K2, A]{
			Key: k, Value: next(k, in.Value, none, false), Timestamp: in.Timestamp, Headers: in.Headers,
		})
	}
}

// partials holds the aggregates of a task since the last commit, by encoded key, encoded as they are going to be sent: a
// step that fails is undone in bytes, whatever the user's function has done to a row.
type partials[K, A any] struct {
	outlet     *outlet[K, A]
	set        *store.WriteSet
	head       int // the next to forward
	key, value []byte
	time       int64 // of the aggregate that was looked up last
}

// find returns the aggregate of a key, and leaves the encoded key in p.key.
func (p *partials[K, A]) find(k K) (row A, exists bool, err error) {
	if p.key, err = appendTo(p.outlet.keys, p.key, k); err != nil {
		return row, false, fmt.Errorf("encode key: %w", err)
	}
	e := p.set.Get(p.key)
	if e == nil {
		p.time = processor.Unknown
		return row, false, nil
	}
	p.time = e.Timestamp
	if row, err = p.outlet.values.Decode(e.Value); err != nil {
		return row, true, fmt.Errorf("decode a partial aggregate: %w", err)
	}
	return row, true, nil
}

// put writes the aggregate of the key that was looked up last.
func (p *partials[K, A]) put(row A, ts int64, headers []processor.Header) (err error) {
	if p.value, err = appendTo(p.outlet.values, p.value, row); err != nil {
		return fmt.Errorf("encode value: %w", err)
	}
	p.set.Put(p.key, p.value, max(ts, p.time), headers)
	return nil
}

// Held implements processor.Cache.
func (p *partials[K, A]) Held() int { return p.set.Len() - p.head }

// StagedBytes implements processor.Staged.
func (p *partials[K, A]) StagedBytes() int { return p.set.Bytes() }

// Mark implements processor.Cache.
func (p *partials[K, A]) Mark() { p.set.Mark() }

// Rollback implements processor.Cache.
func (p *partials[K, A]) Rollback() { p.set.Rollback() }

// Forward implements processor.Cache.
func (p *partials[K, A]) Forward() error {
	e := p.set.Entries()[p.head]
	p.head++
	out := processor.Output{Topic: p.outlet.topic, Timestamp: e.Timestamp, Headers: e.Headers}
	out.Key, _ = processor.Encode(p.outlet.out, serde.Bytes, e.KeyBytes()) // copies, and cannot fail
	out.Value, _ = processor.Encode(p.outlet.out, serde.Bytes, e.Value)
	if p.head == p.set.Len() {
		p.set.Recycle()
		p.head = 0
	}
	out.Partition = p.outlet.out.Partition(out.Key, p.outlet.partitions)
	return processor.Failed(p.outlet.node, processor.KindProcess, p.outlet.out.Add(out))
}
