package store

import (
	"fmt"
	"reflect"
	"strconv"
	"time"

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
	// Layout is how local data stands for the changelog.
	Layout() Layout
	// TopicConfig is what the changelog topic is created with, beside its
	// partitions and replication. The map is the caller's.
	TopicConfig() map[string]string
	// Validate tells what is wrong with the declaration, if anything. Serdes are
	// not checked.
	Validate() error
}

// declared is what all declarations have.
type declared[K, V any] struct {
	name   string
	keys   serde.Serde[K]
	values serde.Serde[V]
}

// Name is the store's name.
func (s *declared[K, V]) Name() string { return s.name }

// KeyType names the type of the keys.
func (s *declared[K, V]) KeyType() string { return reflect.TypeFor[K]().String() }

// ValueType names the type of the values.
func (s *declared[K, V]) ValueType() string { return reflect.TypeFor[V]().String() }

// KeySerde is the serde of the keys.
func (s *declared[K, V]) KeySerde() serde.Serde[K] { return s.keys }

// ValueSerde is the serde of the values.
func (s *declared[K, V]) ValueSerde() serde.Serde[V] { return s.values }

// open returns what all views begin with.
func (s *declared[K, V]) open(src Source) (view[K, V], error) {
	l, err := src.Layered(s.name)
	if err != nil {
		return view[K, V]{}, fmt.Errorf("store: open %s: %w", s.name, err)
	}
	return view[K, V]{
		name: s.name, keys: s.keys, values: s.values, source: src, layers: l,
		key: make([]byte, 0, 64), value: make([]byte, 0, 64),
		nilKey: nilTest[K](), nilValue: nilTest[V](),
	}, nil
}

// KeyValue declares a store that maps keys to values.
type KeyValue[K, V any] struct {
	declared[K, V]
	options options
}

var _ Declaration = (*KeyValue[string, string])(nil)

// NewKeyValue declares a key-value store. A nil pointer or nil byte slice is no
// value: as a key it is refused with ErrNilKey, to put one deletes.
func NewKeyValue[K, V any](name string, keys serde.Serde[K], values serde.Serde[V], opts ...Option) *KeyValue[K, V] {
	return &KeyValue[K, V]{declared[K, V]{name, keys, values}, optionsOf(opts)}
}

// TTL is the time to live of the rows, 0 if they live for ever.
func (s *KeyValue[K, V]) TTL() time.Duration { return s.options.ttl }

// Layout implements Declaration.
func (s *KeyValue[K, V]) Layout() Layout { return s.options.layout() }

// TopicConfig is for a topic that is compacted for good.
func (s *KeyValue[K, V]) TopicConfig() map[string]string { return compacted() }

// Validate refuses a TTL that is not positive or not in whole milliseconds.
func (s *KeyValue[K, V]) Validate() error { return s.options.validate(s.name) }

// View opens the store of the task that src stands for. A view is cheap, keeps
// scratch buffers, and belongs to the goroutine of the task.
func (s *KeyValue[K, V]) View(src Source) (*KeyValueView[K, V], error) {
	v, err := s.open(src)
	if err != nil {
		return nil, err
	}
	return &KeyValueView[K, V]{v}, nil
}

// compacted is the configuration of a changelog that is kept for ever.
func compacted() map[string]string {
	return map[string]string{"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}
}

// expiring is that of one whose records the broker removes, a day later than the
// store does.
func expiring(retention time.Duration) map[string]string {
	return map[string]string{
		"cleanup.policy": "compact,delete", "message.timestamp.type": "CreateTime",
		"retention.ms": dayLater(retention),
	}
}

// versions is that of one whose records are all kept as long as the history and
// a day.
func versions(history time.Duration) map[string]string {
	config := compacted()
	config["min.compaction.lag.ms"] = dayLater(history)
	return config
}

func dayLater(d time.Duration) string {
	const day = 24 * 60 * 60 * 1000
	return strconv.FormatInt(d.Milliseconds()+day, 10)
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
