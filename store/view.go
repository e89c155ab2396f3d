package store

import (
	"fmt"
	"slices"

	"github.com/millrace-streams/millrace/serde"
)

// view is what all views are made of.
type view[K, V any] struct {
	name   string
	keys   serde.Serde[K]
	values serde.Serde[V]
	source Source
	layers *Layered

	key, value []byte // scratch
	nilKey     func(K) bool
	nilValue   func(V) bool
}

// encodeKey fills the key scratch, which is then not nil.
func (v *view[K, V]) encodeKey(k K) (err error) {
	v.key, err = v.appendKey(v.key[:0], k)
	return err
}

// appendKey appends an encoded key.
func (v *view[K, V]) appendKey(dst []byte, k K) ([]byte, error) {
	if v.nilKey != nil && v.nilKey(k) {
		return dst, v.failed("encode key", ErrNilKey)
	}
	key, err := v.keys.Append(dst, k)
	if err != nil {
		return dst, v.failed("encode key", err)
	}
	return nonNil(key), nil
}

// isNil tells whether a value stands for none.
func (v *view[K, V]) isNil(value V) bool { return v.nilValue != nil && v.nilValue(value) }

// encodeValue fills the value scratch, which is then not nil.
func (v *view[K, V]) encodeValue(value V) error {
	encoded, err := v.values.Append(v.value[:0], value)
	if err != nil {
		return v.failed("encode value", err)
	}
	v.value = nonNil(encoded)
	return nil
}

func (v *view[K, V]) decodeKey(b []byte) (K, error) {
	k, err := v.keys.Decode(b)
	if err != nil {
		err = v.failed("decode key", err)
	}
	return k, err
}

func (v *view[K, V]) decodeValue(b []byte) (V, error) {
	value, err := v.values.Decode(b)
	if err != nil {
		err = v.failed("decode value", err)
	}
	return value, err
}

func (v *view[K, V]) failed(what string, err error) error {
	return fmt.Errorf("store: %s: %s: %w", v.name, what, err)
}

// KeyValueView reads and writes a key-value store by its types. It belongs to
// the goroutine of the task.
type KeyValueView[K, V any] struct {
	view[K, V]
}

// Get returns the value of k; ok is false if there is none.
func (v *KeyValueView[K, V]) Get(k K) (value V, ok bool, err error) {
	value, _, ok, err = v.GetWithTime(k)
	return value, ok, err
}

// GetWithTime is Get with the value's timestamp in ms.
func (v *KeyValueView[K, V]) GetWithTime(k K) (value V, ts int64, ok bool, err error) {
	if err = v.encodeKey(k); err != nil {
		return value, 0, false, err
	}
	v.value, ts, ok, err = v.layers.Get(v.value[:0], v.key)
	if err != nil || !ok {
		return value, 0, false, err
	}
	value, err = v.decodeValue(v.value)
	return value, ts, err == nil, err
}

// Put sets the value of k as of the record being processed.
func (v *KeyValueView[K, V]) Put(k K, value V) error {
	return v.PutAt(k, value, v.source.RecordTime())
}

// PutAt sets the value of k with a timestamp in ms.
func (v *KeyValueView[K, V]) PutAt(k K, value V, ts int64) error {
	if v.isNil(value) {
		return v.deleteAt(k, ts)
	}
	if err := v.encodeKey(k); err != nil {
		return err
	}
	if err := v.encodeValue(value); err != nil {
		return err
	}
	_, err := v.layers.Put(v.key, v.value, ts, nil)
	return err
}

// PutIfAbsent sets the value of k if it has none. Otherwise it changes nothing
// and returns the value that is there.
func (v *KeyValueView[K, V]) PutIfAbsent(k K, value V) (old V, found bool, err error) {
	old, found, err = v.Get(k)
	if err != nil || found {
		return old, found, err
	}
	return old, false, v.Put(k, value)
}

// Delete removes k, which need not be there.
func (v *KeyValueView[K, V]) Delete(k K) error {
	return v.deleteAt(k, v.source.RecordTime())
}

func (v *KeyValueView[K, V]) deleteAt(k K, ts int64) error {
	if err := v.encodeKey(k); err != nil {
		return err
	}
	_, err := v.layers.Delete(v.key, ts, nil)
	return err
}

// Range calls fn for the keys from from to to, both included, in the order of
// their encoded bytes, until fn returns false. If from's bytes lie above to's
// the range is empty, whatever order the types have: signed integers in
// big-endian encoding sort negative numbers above positive ones, so a range
// across zero is empty, as it is in Kafka Streams on RocksDB.
//
// fn may read and write the store, see Layered.Scan.
func (v *KeyValueView[K, V]) Range(from, to K, fn func(K, V) bool) error {
	return v.between(from, to, false, fn)
}

// ReverseRange is Range in descending order; from is still the lower key.
func (v *KeyValueView[K, V]) ReverseRange(from, to K, fn func(K, V) bool) error {
	return v.between(from, to, true, fn)
}

// All calls fn for every key in the order of the encoded bytes.
func (v *KeyValueView[K, V]) All(fn func(K, V) bool) error {
	return v.scan(Range{}, fn)
}

// ReverseAll is All in descending order.
func (v *KeyValueView[K, V]) ReverseAll(fn func(K, V) bool) error {
	return v.scan(Range{Reverse: true}, fn)
}

// PrefixScan calls fn for every key whose encoded bytes begin with prefix, in
// ascending order.
func (v *KeyValueView[K, V]) PrefixScan(prefix []byte, fn func(K, V) bool) error {
	return v.scan(PrefixRange(prefix), fn)
}

func (v *KeyValueView[K, V]) between(from, to K, reverse bool, fn func(K, V) bool) error {
	// fn may use the view, so the bounds cannot be its scratch.
	if err := v.encodeKey(from); err != nil {
		return err
	}
	lower := slices.Clone(v.key)
	if err := v.encodeKey(to); err != nil {
		return err
	}
	above := append(slices.Clone(v.key), 0) // the smallest key above to
	return v.scan(Range{From: lower, To: above, Reverse: reverse}, fn)
}

func (v *KeyValueView[K, V]) scan(r Range, fn func(K, V) bool) error {
	return v.layers.Scan(r, func(p Pair) (bool, error) {
		key, err := v.decodeKey(p.Key)
		if err != nil {
			return false, err
		}
		value, err := v.decodeValue(p.Value)
		if err != nil {
			return false, err
		}
		return fn(key, value), nil
	})
}

// nonNil guards against serdes that return nil for nothing.
func nonNil(b []byte) []byte {
	if b == nil {
		return emptyBytes
	}
	return b
}

// PrefixRange is the range of the keys that begin with prefix.
func PrefixRange(prefix []byte) Range {
	r := Range{From: slices.Clone(prefix)}
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			r.To = slices.Clone(prefix[:i+1])
			r.To[i]++
			return r
		}
	}
	return r // nothing lies above
}
