package topology

import (
	"slices"

	"github.com/millrace-streams/millrace/processor"
)

// Pair is a key and a value, for FlatMap.
type Pair[K, V any] struct {
	Key   K
	Value V
}

// Map makes of each record one with another key and value. Tombstones are dropped.
func Map[K, V, K2, V2 any](s Stream[K, V], fn func(K, V) (K2, V2), opts ...Option) Stream[K2, V2] {
	n := s.b.child("map", options(opts), s.n)
	n.need(s.b, fn != nil, "the function")
	n.rekeyed = true
	n.Bind = func(b *processor.Binding) (any, error) {
		next := processor.FanOut[K2, V2](b)
		return processor.Emit[K, V](func(r processor.Record[K, V]) error {
			if r.NullValue {
				return nil
			}
			k, v := fn(r.Key, r.Value)
			return next(processor.Record[K2, V2]{Key: k, Value: v, Timestamp: r.Timestamp, Headers: r.Headers})
		}), nil
	}
	return Stream[K2, V2]{s.b, n}
}

// MapValues makes another value of each value. Tombstones pass on.
func MapValues[K, V, V2 any](s Stream[K, V], fn func(V) V2, opts ...Option) Stream[K, V2] {
	n := s.b.child("mapvalues", options(opts), s.n)
	n.need(s.b, fn != nil, "the function")
	n.Bind = func(b *processor.Binding) (any, error) {
		next := processor.FanOut[K, V2](b)
		return processor.Emit[K, V](func(r processor.Record[K, V]) error {
			out := processor.Record[K, V2]{
				Key: r.Key, NullKey: r.NullKey, NullValue: r.NullValue, Timestamp: r.Timestamp, Headers: r.Headers,
			}
			if !r.NullValue {
				out.Value = fn(r.Value)
			}
			return next(out)
		}), nil
	}
	return Stream[K, V2]{s.b, n}
}

// FlatMap makes of each record any number of records, in the order of the slice. Each has its own header slice.
// Tombstones are dropped.
func FlatMap[K, V, K2, V2 any](s Stream[K, V], fn func(K, V) []Pair[K2, V2], opts ...Option) Stream[K2, V2] {
	n := s.b.child("flatmap", options(opts), s.n)
	n.need(s.b, fn != nil, "the function")
	n.rekeyed = true
	n.Bind = func(b *processor.Binding) (any, error) {
		next := processor.FanOut[K2, V2](b)
		return processor.Emit[K, V](func(r processor.Record[K, V]) error {
			if r.NullValue {
				return nil
			}
			for _, p := range fn(r.Key, r.Value) {
				out := processor.Record[K2, V2]{Key: p.Key, Value: p.Value, Timestamp: r.Timestamp, Headers: own(r.Headers)}
				if err := next(out); err != nil {
					return err
				}
			}
			return nil
		}), nil
	}
	return Stream[K2, V2]{s.b, n}
}

// FlatMapValues makes of each record any number of records with its key, in the order of the slice. Each has its own
// header slice. Tombstones are dropped.
func FlatMapValues[K, V, V2 any](s Stream[K, V], fn func(V) []V2, opts ...Option) Stream[K, V2] {
	n := s.b.child("flatmapvalues", options(opts), s.n)
	n.need(s.b, fn != nil, "the function")
	n.Bind = func(b *processor.Binding) (any, error) {
		next := processor.FanOut[K, V2](b)
		return processor.Emit[K, V](func(r processor.Record[K, V]) error {
			if r.NullValue {
				return nil
			}
			for _, v := range fn(r.Value) {
				out := processor.Record[K, V2]{
					Key: r.Key, NullKey: r.NullKey, Value: v, Timestamp: r.Timestamp, Headers: own(r.Headers),
				}
				if err := next(out); err != nil {
					return err
				}
			}
			return nil
		}), nil
	}
	return Stream[K, V2]{s.b, n}
}

// own returns headers that only one of several records has.
func own(headers []processor.Header) []processor.Header {
	if len(headers) == 0 {
		return nil
	}
	return slices.Clone(headers)
}

// Filter keeps the records for which keep is true. Tombstones pass on: a value that was kept may have to be deleted.
func Filter[K, V any](s Stream[K, V], keep func(K, V) bool, opts ...Option) Stream[K, V] {
	n := s.b.child("filter", options(opts), s.n)
	n.need(s.b, keep != nil, "the function")
	n.Bind = func(b *processor.Binding) (any, error) {
		next := processor.FanOut[K, V](b)
		return processor.Emit[K, V](func(r processor.Record[K, V]) error {
			if !r.NullValue && !keep(r.Key, r.Value) {
				return nil
			}
			return next(r)
		}), nil
	}
	return Stream[K, V]{s.b, n}
}

// Peek shows each record to a function and passes it on. A record may be shown again: after a failure it is processed
// again. Tombstones pass on without being shown.
func Peek[K, V any](s Stream[K, V], fn func(K, V), opts ...Option) Stream[K, V] {
	n := s.b.child("peek", options(opts), s.n)
	n.need(s.b, fn != nil, "the function")
	n.Bind = func(b *processor.Binding) (any, error) {
		next := processor.FanOut[K, V](b)
		return processor.Emit[K, V](func(r processor.Record[K, V]) error {
			if !r.NullValue {
				fn(r.Key, r.Value)
			}
			return next(r)
		}), nil
	}
	return Stream[K, V]{s.b, n}
}

// SelectKey gives each record another key. It does not move records between tasks: GroupBy and Through do. Tombstones are
// dropped.
func SelectKey[K, V, K2 any](s Stream[K, V], fn func(K, V) K2, opts ...Option) Stream[K2, V] {
	n := s.b.child("selectkey", options(opts), s.n)
	n.need(s.b, fn != nil, "the function")
	n.rekeyed = true
	n.Bind = func(b *processor.Binding) (any, error) {
		next := processor.FanOut[K2, V](b)
		return processor.Emit[K, V](func(r processor.Record[K, V]) error {
			if r.NullValue {
				return nil
			}
			return next(processor.Record[K2, V]{
				Key: fn(r.Key, r.Value), Value: r.Value, Timestamp: r.Timestamp, Headers: r.Headers,
			})
		}), nil
	}
	return Stream[K2, V]{s.b, n}
}
