package store

import (
	"errors"
	"fmt"

	"github.com/millrace-streams/millrace/serde"
)

// ValueStateView is the value of the current key. It belongs to the goroutine of
// the task, and fails with ErrNoKey before SetKey.
type ValueStateView[K, V any] struct {
	view[K, V]
	set bool // v.key is the current key
}

// SetKey makes k the current key.
func (v *ValueStateView[K, V]) SetKey(k K) error {
	err := v.encodeKey(k)
	v.set = err == nil
	return err
}

func (v *ValueStateView[K, V]) current() error {
	if !v.set {
		return fmt.Errorf("%w: %s", ErrNoKey, v.name)
	}
	return nil
}

// Value returns the current key's value; ok is false if it has none.
func (v *ValueStateView[K, V]) Value() (value V, ok bool, err error) {
	if err := v.current(); err != nil {
		return value, false, err
	}
	v.value, _, ok, err = v.layers.Get(v.value[:0], v.key)
	if err != nil || !ok {
		return value, false, err
	}
	value, err = v.decodeValue(v.value)
	return value, err == nil, err
}

// Update sets the current key's value as of the record being processed. A nil
// value clears it.
func (v *ValueStateView[K, V]) Update(value V) error {
	if v.isNil(value) {
		return v.Clear()
	}
	if err := v.current(); err != nil {
		return err
	}
	if err := v.encodeValue(value); err != nil {
		return err
	}
	_, err := v.layers.Put(v.key, v.value, v.source.RecordTime(), nil)
	return err
}

// Clear removes the current key's value.
func (v *ValueStateView[K, V]) Clear() error {
	if err := v.current(); err != nil {
		return err
	}
	_, err := v.layers.Delete(v.key, v.source.RecordTime(), nil)
	return err
}

// MapStateView is the map of the current key. It belongs to the goroutine of the
// task, and fails with ErrNoKey before SetKey.
type MapStateView[K, MK, MV any] struct {
	currentKey[K, MV]
	mapKeys   serde.Serde[MK]
	nilMapKey func(MK) bool
}

// seek fills the key scratch with the row's key.
func (v *MapStateView[K, MK, MV]) seek(mk MK) error {
	if err := v.current(); err != nil {
		return err
	}
	if v.nilMapKey != nil && v.nilMapKey(mk) {
		return v.failed("encode map key", ErrNilKey)
	}
	key, err := v.mapKeys.Append(append(v.key[:0], v.prefix...), mk)
	if err != nil {
		return v.failed("encode map key", err)
	}
	v.key = key
	return nil
}

// Get returns the value of mk in the map; ok is false if there is none.
func (v *MapStateView[K, MK, MV]) Get(mk MK) (value MV, ok bool, err error) {
	if err := v.seek(mk); err != nil {
		return value, false, err
	}
	v.value, _, ok, err = v.layers.Get(v.value[:0], v.key)
	if err != nil || !ok {
		return value, false, err
	}
	value, err = v.decodeValue(v.value)
	return value, err == nil, err
}

// Contains tells whether the map has mk.
func (v *MapStateView[K, MK, MV]) Contains(mk MK) (ok bool, err error) {
	if err := v.seek(mk); err != nil {
		return false, err
	}
	v.value, _, ok, err = v.layers.Get(v.value[:0], v.key)
	return ok, err
}

// Put sets the value of mk in the map as of the record being processed. A nil
// value removes it.
func (v *MapStateView[K, MK, MV]) Put(mk MK, value MV) error {
	if v.isNil(value) {
		return v.Remove(mk)
	}
	if err := v.seek(mk); err != nil {
		return err
	}
	return v.put(value)
}

// Remove removes mk from the map, if it has it.
func (v *MapStateView[K, MK, MV]) Remove(mk MK) error {
	if err := v.seek(mk); err != nil {
		return err
	}
	_, err := v.layers.Delete(v.key, v.source.RecordTime(), nil)
	return err
}

// Each calls fn for the entries of the map in the order of the bytes of the map
// keys, until it returns false. fn may use the view, see Layered.Scan; the map
// gone through stays that of the key that is current now.
func (v *MapStateView[K, MK, MV]) Each(fn func(MK, MV) bool) error {
	return v.scan(false, func(rest []byte, p Pair) (bool, error) {
		mk, err := v.mapKeys.Decode(rest)
		if err != nil {
			return false, v.failed("decode map key", err)
		}
		value, err := v.decodeValue(p.Value)
		if err != nil {
			return false, err
		}
		return fn(mk, value), nil
	})
}

// ListStateView is the list of the current key. It belongs to the goroutine of
// the task, and fails with ErrNoKey before SetKey.
type ListStateView[K, V any] struct {
	currentKey[K, V]
}

// errNilElement is returned for an element that stands for none.
var errNilElement = errors.New("nil is no element")

// Append adds values to the end of the list, as of the record being processed.
func (v *ListStateView[K, V]) Append(values ...V) error {
	next := int64(0)
	err := v.scan(true, func(rest []byte, _ Pair) (bool, error) {
		if len(rest) != 8 {
			return false, v.failed("append", ErrForeignRecord)
		}
		next = timeAt(rest) + 1
		return false, nil
	})
	if err != nil {
		return err
	}
	for _, value := range values {
		if v.isNil(value) {
			return v.failed("append", errNilElement)
		}
		v.key = appendTime(append(v.key[:0], v.prefix...), next)
		next++
		if err := v.put(value); err != nil {
			return err
		}
	}
	return nil
}

// Each calls fn for the elements of the list in order until it returns false. fn
// may use the view, see Layered.Scan; the list gone through stays that of the key
// that is current now.
func (v *ListStateView[K, V]) Each(fn func(V) bool) error {
	return v.scan(false, func(_ []byte, p Pair) (bool, error) {
		value, err := v.decodeValue(p.Value)
		if err != nil {
			return false, err
		}
		return fn(value), nil
	})
}

// Values returns the list; it is the caller's, and nil if it is empty.
func (v *ListStateView[K, V]) Values() (values []V, err error) {
	err = v.Each(func(value V) bool {
		values = append(values, value)
		return true
	})
	return values, err
}

// Update replaces the list.
func (v *ListStateView[K, V]) Update(values []V) error {
	if err := v.Clear(); err != nil {
		return err
	}
	return v.Append(values...)
}
