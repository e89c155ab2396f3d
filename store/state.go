package store

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"time"

	"github.com/millrace-streams/millrace/serde"
)

// ValueState, MapState and ListState declare what Flink calls keyed state: a
// value, a map or a list for each key. Their views are set to one key at a time.
// All three are key-value stores to the changelog, and take WithTTL: it is then
// each value, each entry of a map and each element of a list that expires.

// state is what their declarations have in common.
type state struct{ options options }

// TTL is the time to live of the rows, 0 if they live for ever.
func (s *state) TTL() time.Duration { return s.options.ttl }

// Layout implements Declaration.
func (s *state) Layout() Layout { return s.options.layout() }

// TopicConfig is for a topic that is compacted for good.
func (s *state) TopicConfig() map[string]string { return compacted() }

// ValueState declares a state of one value for each key.
type ValueState[K, V any] struct {
	declared[K, V]
	state
}

var _ Declaration = (*ValueState[string, string])(nil)

// NewValueState declares a value state. Its changelog has the keys and values as
// they are. Nil keys and values are as in NewKeyValue.
func NewValueState[K, V any](name string, keys serde.Serde[K], values serde.Serde[V], opts ...Option) *ValueState[K, V] {
	return &ValueState[K, V]{declared[K, V]{name, keys, values}, state{optionsOf(opts)}}
}

// Validate refuses a TTL that is not positive or not in whole milliseconds.
func (s *ValueState[K, V]) Validate() error { return s.options.validate(s.name) }

// View opens the state of the task that src stands for. See KeyValue.View.
func (s *ValueState[K, V]) View(src Source) (*ValueStateView[K, V], error) {
	v, err := s.open(src)
	if err != nil {
		return nil, err
	}
	return &ValueStateView[K, V]{view: v}, nil
}

// MapState declares a state of a map for each key.
type MapState[K, MK, MV any] struct {
	declared[K, MV]
	state
	mapKeys serde.Serde[MK]
}

var _ Declaration = (*MapState[string, string, string])(nil)

// NewMapState declares a map state. Each entry of a map is a row: the key's
// length in 4 bytes, big-endian, ‖ key ‖ map key. A nil map key is refused, to
// put a nil value removes.
func NewMapState[K, MK, MV any](
	name string, keys serde.Serde[K], mapKeys serde.Serde[MK], values serde.Serde[MV], opts ...Option,
) *MapState[K, MK, MV] {
	return &MapState[K, MK, MV]{declared[K, MV]{name, keys, values}, state{optionsOf(opts)}, mapKeys}
}

// MapKeySerde is the serde of the keys in the maps.
func (s *MapState[K, MK, MV]) MapKeySerde() serde.Serde[MK] { return s.mapKeys }

// ValueType names the type of the maps.
func (s *MapState[K, MK, MV]) ValueType() string {
	return "map[" + reflect.TypeFor[MK]().String() + "]" + reflect.TypeFor[MV]().String()
}

// Validate refuses a TTL that is not positive or not in whole milliseconds.
func (s *MapState[K, MK, MV]) Validate() error { return s.options.validate(s.name) }

// View opens the state of the task that src stands for. See KeyValue.View.
func (s *MapState[K, MK, MV]) View(src Source) (*MapStateView[K, MK, MV], error) {
	v, err := s.open(src)
	if err != nil {
		return nil, err
	}
	return &MapStateView[K, MK, MV]{
		currentKey: currentKey[K, MV]{view: v}, mapKeys: s.mapKeys, nilMapKey: nilTest[MK](),
	}, nil
}

// ListState declares a state of a list for each key.
type ListState[K, V any] struct {
	declared[K, V]
	state
}

var _ Declaration = (*ListState[string, string])(nil)

// NewListState declares a list state. Each element is a row: the key's length in
// 4 bytes, big-endian, ‖ key ‖ place in the list in 8 bytes. A nil element is no
// value and is refused.
func NewListState[K, V any](name string, keys serde.Serde[K], values serde.Serde[V], opts ...Option) *ListState[K, V] {
	return &ListState[K, V]{declared[K, V]{name, keys, values}, state{optionsOf(opts)}}
}

// ValueType names the type of the lists.
func (s *ListState[K, V]) ValueType() string { return "[]" + reflect.TypeFor[V]().String() }

// Validate refuses a TTL that is not positive or not in whole milliseconds.
func (s *ListState[K, V]) Validate() error { return s.options.validate(s.name) }

// View opens the state of the task that src stands for. See KeyValue.View.
func (s *ListState[K, V]) View(src Source) (*ListStateView[K, V], error) {
	v, err := s.open(src)
	if err != nil {
		return nil, err
	}
	return &ListStateView[K, V]{currentKey[K, V]{view: v}}, nil
}

// currentKey is a view that is set to a key, with many rows to it.
type currentKey[K, V any] struct {
	view[K, V]
	prefix []byte // of the current key's rows, nil before SetKey
}

// SetKey makes k the current key.
func (v *currentKey[K, V]) SetKey(k K) error {
	prefix, err := v.appendKey(append(v.prefix[:0], 0, 0, 0, 0), k)
	if err != nil {
		v.prefix = nil
		return err
	}
	binary.BigEndian.PutUint32(prefix, uint32(len(prefix)-4))
	v.prefix = prefix
	return nil
}

// current fails before SetKey.
func (v *currentKey[K, V]) current() error {
	if v.prefix == nil {
		return fmt.Errorf("%w: %s", ErrNoKey, v.name)
	}
	return nil
}

// scan calls fn for the current key's rows with what follows the prefix.
func (v *currentKey[K, V]) scan(reverse bool, fn func(rest []byte, p Pair) (bool, error)) error {
	if err := v.current(); err != nil {
		return err
	}
	r := PrefixRange(v.prefix)
	r.Reverse = reverse
	return v.layers.Scan(r, func(p Pair) (bool, error) { return fn(p.Key[len(r.From):], p) })
}

// Empty tells whether the current key has no rows.
func (v *currentKey[K, V]) Empty() (bool, error) {
	empty := true
	err := v.scan(false, func([]byte, Pair) (bool, error) {
		empty = false
		return false, nil
	})
	return empty, err
}

// Clear removes all rows of the current key.
func (v *currentKey[K, V]) Clear() error {
	return v.scan(false, func(_ []byte, p Pair) (bool, error) {
		_, err := v.layers.Delete(p.Key, v.source.RecordTime(), nil)
		return true, err
	})
}

// put writes the row whose key is in v.key. It must have a value.
func (v *currentKey[K, V]) put(value V) error {
	if err := v.encodeValue(value); err != nil {
		return err
	}
	_, err := v.layers.Put(v.key, v.value, v.source.RecordTime(), nil)
	return err
}
