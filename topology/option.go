package topology

import (
	"time"

	"github.com/millrace-streams/millrace/store"
)

// settings is what options change.
type settings struct {
	name        string
	everyUpdate bool
	partitioner any // func(K, V, int32) int32
	rows        any // *store.KeyValue[K, V]
	stores      []store.Declaration
	grace       time.Duration
	buffer      any // *JoinBuffer[K, V]
	closing     closing
}

// Option is an option of any operator.
type Option interface {
	TableOption
	ToOption
	JoinOption
	option(*settings)
}

// TableOption is an option of operators that make a table with a store of its own.
type TableOption interface {
	DerivedOption
	tableOption(*settings)
}

// DerivedOption is an option of operators that make a table of other tables.
type DerivedOption interface{ derivedOption(*settings) }

// JoinOption is an option of the join of a stream with a table.
type JoinOption interface{ joinOption(*settings) }

// ToOption is an option of To.
type ToOption interface{ toOption(*settings) }

type named string

func (n named) option(s *settings)        { s.name = string(n) }
func (n named) tableOption(s *settings)   { s.name = string(n) }
func (n named) derivedOption(s *settings) { s.name = string(n) }
func (n named) joinOption(s *settings)    { s.name = string(n) }
func (n named) toOption(s *settings)      { s.name = string(n) }

// Named names a node, for descriptions, errors, metrics and Context.ForwardTo. Without it a node is named after its
// parent and its operator. A name obeys the rules of topic names.
func Named(name string) Option { return named(name) }

type cachingDisabled struct{}

func (cachingDisabled) tableOption(s *settings)   { s.everyUpdate = true }
func (cachingDisabled) derivedOption(s *settings) { s.everyUpdate = true }

// CachingDisabled makes a table forward each update at once, not the last one per key and commit.
func CachingDisabled() TableOption { return cachingDisabled{} }

type materialized struct{ rows any }

func (m materialized) derivedOption(s *settings) { s.rows = m.rows }

// Materialized keeps the rows of a derived table in a store, where processors, other operators and queries can read them.
// Without it they are computed again whenever they are needed. The types must be those of the table.
func Materialized[K, V any](s *store.KeyValue[K, V]) DerivedOption { return materialized{s} }

type withStores []store.Declaration

func (w withStores) derivedOption(s *settings) { s.stores = append(s.stores, w...) }

// WithStores names the stores that the transformer of TransformTable reaches, and no others, through its context. See Process
// for those of global tables.
func WithStores(stores ...store.Declaration) DerivedOption { return withStores(stores) }

type partitioner struct{ fn any }

func (p partitioner) toOption(s *settings) { s.partitioner = p.fn }

// WithPartitioner chooses the partition of each record that To writes: fn gets key, value and the number n of partitions
// and returns one of 0 to n-1; anything else is an error of the record. A null key or value comes as the zero value. The
// types must be those of the stream. Without it the partition follows from the key as in Kafka's Java client, and records
// without a key go round.
func WithPartitioner[K, V any](fn func(key K, value V, n int32) int32) ToOption {
	if fn == nil {
		return partitioner{}
	}
	return partitioner{fn}
}

func options(opts []Option) (s settings) {
	for _, o := range opts {
		o.option(&s)
	}
	return s
}

func tableOptions(opts []TableOption) (s settings) {
	for _, o := range opts {
		o.tableOption(&s)
	}
	return s
}

func derivedOptions(opts []DerivedOption) (s settings) {
	for _, o := range opts {
		o.derivedOption(&s)
	}
	return s
}

func joinOptions(opts []JoinOption) (s settings) {
	for _, o := range opts {
		o.joinOption(&s)
	}
	return s
}
