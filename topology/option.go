package topology

// settings is what options change.
type settings struct {
	name        string
	everyUpdate bool
	partitioner any // func(K, V, int32) int32
}

// Option is an option of any operator.
type Option interface {
	TableOption
	ToOption
	option(*settings)
}

// TableOption is an option of operators that make a table.
type TableOption interface{ tableOption(*settings) }

// ToOption is an option of To.
type ToOption interface{ toOption(*settings) }

type named string

func (n named) option(s *settings)      { s.name = string(n) }
func (n named) tableOption(s *settings) { s.name = string(n) }
func (n named) toOption(s *settings)    { s.name = string(n) }

// Named names a node, for descriptions, errors, metrics and Context.ForwardTo. Without it a node is named after its
// parent and its operator. A name obeys the rules of topic names.
func Named(name string) Option { return named(name) }

type cachingDisabled struct{}

func (cachingDisabled) tableOption(s *settings) { s.everyUpdate = true }

// CachingDisabled makes a table forward each update at once, not the last one per key and commit.
func CachingDisabled() TableOption { return cachingDisabled{} }

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
