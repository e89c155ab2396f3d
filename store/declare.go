package store

import (
	"fmt"
	"reflect"

	"github.com/millrace-streams/millrace/serde"
)

// Source is what typed views are opened from: a processor's context, a test
// driver, a running application.
type Source interface {
	// Layered returns the store of that name in the task at hand, or an error
	// if the task has none.
	Layered(name string) (*Layered, error)

	// RecordTime is the timestamp in ms of the record being processed, which
	// writes get that are given none.
	RecordTime() int64
}

// Declaration is a declared store without its types. Its name is the user's: it
// names the changelog and the local data, so changing it loses the state.
type Declaration interface {
	// Name is the store's name, unique in a topology.
	Name() string
	// KeyType and ValueType name the Go types, for error messages.
	KeyType() string
	ValueType() string
}

// KeyValue declares a store that maps keys to values.
type KeyValue[K, V any] struct {
	name   string
	keys   serde.Serde[K]
	values serde.Serde[V]
}

var _ Declaration = (*KeyValue[string, string])(nil)

// NewKeyValue declares a key-value store. A nil pointer or nil byte slice is no
// value: as a key it is refused with ErrNilKey, to put one deletes.
func NewKeyValue[K, V any](name string, keys serde.Serde[K], values serde.Serde[V]) *KeyValue[K, V] {
	return &KeyValue[K, V]{name: name, keys: keys, values: values}
}

// Name is the store's name.
func (s *KeyValue[K, V]) Name() string { return s.name }

// KeyType names the type of the keys.
func (s *KeyValue[K, V]) KeyType() string { return reflect.TypeFor[K]().String() }

// ValueType names the type of the values.
func (s *KeyValue[K, V]) ValueType() string { return reflect.TypeFor[V]().String() }

// KeySerde is the serde of the keys.
func (s *KeyValue[K, V]) KeySerde() serde.Serde[K] { return s.keys }

// ValueSerde is the serde of the values.
func (s *KeyValue[K, V]) ValueSerde() serde.Serde[V] { return s.values }

// View opens the store of the task that src stands for. A view is cheap, keeps
// scratch buffers, and belongs to the goroutine of the task.
func (s *KeyValue[K, V]) View(src Source) (*KeyValueView[K, V], error) {
	l, err := src.Layered(s.name)
	if err != nil {
		return nil, fmt.Errorf("store: open %s: %w", s.name, err)
	}
	return &KeyValueView[K, V]{
		store: s, source: src, layers: l,
		key: make([]byte, 0, 64), value: make([]byte, 0, 64),
		nilKey: nilTest[K](), nilValue: nilTest[V](),
	}, nil
}

// nilTest returns the test whether a value is a nil pointer or a nil byte slice,
// which stand for null, or nil if the type is neither. Serdes do not tell: they
// encode a nil slice as an empty one.
func nilTest[T any]() func(T) bool {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Pointer && t != reflect.TypeFor[[]byte]() {
		return nil
	}
	return func(v T) bool { return reflect.ValueOf(v).IsNil() }
}
