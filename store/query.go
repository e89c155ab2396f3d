package store

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/millrace-streams/millrace/serde"
)

// QuerySource is where stores are queried: a running application, a test driver,
// for global tables a processor's context. It is safe for concurrent use.
type QuerySource interface {
	// Queried returns what the process has of a store at this moment. Besides an
	// *UnavailableError the error may be that the source does not run, or that it
	// has no such store.
	Queried(d Declaration) (Queried, error)
}

// Queried is what a process has of a store.
type Queried struct {
	// Partitions are those that are here, ascending, at least one. The slice must
	// not be changed.
	Partitions []QueriedPartition
	// Owner returns the partition where a key belongs by the rule of Kafka's
	// clients.
	Owner func(key []byte) int32
	// ByKey says that the rows of a key are nowhere else.
	ByKey bool
}

// QueriedPartition reads what is committed of one partition of a store, by the
// keys of the store's layout. It is safe for concurrent use. Every method may
// return an *UnavailableError.
type QueriedPartition interface {
	BackendReader
	// Number is the partition's.
	Number() int32
	// Ready returns the stream time, in ms, of what is committed, or why the
	// partition cannot be queried.
	Ready() (streamTime int64, err error)
}

// Errors to branch on, of what an *UnavailableError stands for.
var (
	// ErrNotReady means that the partition is here, or was a moment ago, but
	// cannot be read: it is worth trying again.
	ErrNotReady = errors.New("store: not ready")

	// ErrNotLocal means that the partition is not here: it is another process's,
	// or nobody's at the moment.
	ErrNotLocal = errors.New("store: not local")
)

// PartitionState says why a partition of a store cannot be queried.
type PartitionState uint8

// The states.
const (
	// NotLocal is a partition that this process does not work on.
	NotLocal PartitionState = iota
	// Restoring is one that is being read from its changelog, or from its topic.
	Restoring
	// Closed is one that was here when the query began, and has moved meanwhile or
	// been closed with the application.
	Closed
)

// String names the state.
func (s PartitionState) String() string {
	switch s {
	case NotLocal:
		return "not local"
	case Restoring:
		return "restoring"
	}
	return "closed"
}

// UnavailableError says why a query cannot be answered here and now. It is
// ErrNotLocal if the state is NotLocal, else ErrNotReady.
type UnavailableError struct {
	Store     string
	Partition int32 // -1: none of the store's is here
	State     PartitionState
}

// Error names store, partition and state, and says what to do.
func (e *UnavailableError) Error() string {
	switch {
	case e.Partition < 0:
		return fmt.Sprintf("store: query %s: no partition is local: ask another process, or again when this one has its tasks", e.Store)
	case e.State == NotLocal:
		return fmt.Sprintf("store: query %s: partition %d is not local: ask the process that works on it", e.Store, e.Partition)
	}
	return fmt.Sprintf("store: query %s: partition %d is %s: try again", e.Store, e.Partition, e.State)
}

// Is makes the error match ErrNotLocal or ErrNotReady.
func (e *UnavailableError) Is(target error) bool {
	if e.State == NotLocal {
		return target == ErrNotLocal
	}
	return target == ErrNotReady
}

// query is what all read-only stores are made of. It opens the store's views,
// of the type W, on private layers over what is committed of a partition: a view
// for each call, so that any number of goroutines can use a query.
type query[K, W any] struct {
	source   QuerySource
	declared Declaration
	keys     serde.Serde[K]
	nilKey   func(K) bool
	view     func(Source) (W, error)
}

func newQuery[K, W any](src QuerySource, d Declaration, keys serde.Serde[K], view func(Source) (W, error)) query[K, W] {
	return query[K, W]{source: src, declared: d, keys: keys, nilKey: nilTest[K](), view: view}
}

// open opens a view of a partition.
func (q *query[K, W]) open(p QueriedPartition) (w W, err error) {
	streamTime, err := p.Ready()
	if err != nil {
		return w, err
	}
	l := LayersOf(q.declared, queriedBackend{p})
	l.Advance(streamTime)
	return q.view(queriedLayers{l})
}

// each calls fn for the partitions that are here, until it returns false. It does
// not begin unless all of them can be read.
func (q *query[K, W]) each(fn func(W) (more bool, err error)) error {
	here, err := q.source.Queried(q.declared)
	if err != nil {
		return err
	}
	views := make([]W, len(here.Partitions))
	for i, p := range here.Partitions {
		if views[i], err = q.open(p); err != nil {
			return err
		}
	}
	for _, w := range views {
		if more, err := fn(w); err != nil || !more {
			return err
		}
	}
	return nil
}

// find calls fn for the partition where a key belongs, and then, as its rows may
// have come to another one, for the others that are here, until fn has found
// something. That nothing is found is an error if the first one is not here.
func (q *query[K, W]) find(k K, fn func(W) (found bool, err error)) error {
	here, err := q.source.Queried(q.declared)
	if err != nil {
		return err
	}
	owner, byKey, err := q.owner(here, k)
	if err != nil {
		return err
	}
	isOwner := func(p QueriedPartition) bool { return p.Number() == owner }
	at := slices.IndexFunc(here.Partitions, isOwner)
	if at >= 0 {
		if found, err := q.in(here.Partitions[at], fn); err != nil || found || byKey {
			return err
		}
	}
	for _, p := range here.Partitions {
		if isOwner(p) || byKey {
			continue
		}
		if found, err := q.in(p, fn); err != nil || found {
			return err
		}
	}
	if at < 0 {
		return &UnavailableError{Store: q.declared.Name(), Partition: owner}
	}
	return nil
}

func (q *query[K, W]) in(p QueriedPartition, fn func(W) (bool, error)) (found bool, err error) {
	w, err := q.open(p)
	if err != nil {
		return false, err
	}
	return fn(w)
}

// owner returns the partition where a key belongs, and whether it can be in no
// other. Of a key of which a part chooses the partition, repartition topics go by
// the whole.
func (q *query[K, W]) owner(here Queried, k K) (partition int32, byKey bool, err error) {
	if q.nilKey != nil && q.nilKey(k) {
		return 0, false, fmt.Errorf("store: query %s: %w", q.declared.Name(), ErrNilKey)
	}
	key, err := q.keys.Append(make([]byte, 0, 64), k)
	if err != nil {
		return 0, false, fmt.Errorf("store: query %s: encode key: %w", q.declared.Name(), err)
	}
	if keyer, ok := q.keys.(serde.PartitionKeyer); ok {
		return here.Owner(keyer.PartitionKey(key)), false, nil
	}
	return here.Owner(key), here.ByKey, nil
}

// queriedLayers is the Source of views for queries, which read only.
type queriedLayers struct{ layers *Layered }

func (s queriedLayers) Layered(string) (*Layered, error) { return s.layers, nil }
func (s queriedLayers) RecordTime() int64                { return noTime }

// queriedBackend makes what is committed of a partition the lowest layer of a
// query's own, which stay empty.
type queriedBackend struct{ QueriedPartition }

var errReadOnly = errors.New("store: a query cannot write")

func (queriedBackend) Apply(Batch) error { return errReadOnly }

func (queriedBackend) Load(iter.Seq[Pair], int64) error { return errReadOnly }

func (queriedBackend) Offset() (int64, bool) { return 0, false }
func (queriedBackend) Close() error          { return nil }
