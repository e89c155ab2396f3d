package runtime

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
)

// Stores are the stores that the workers of a process have open, for readers on other goroutines. It is a
// store.QuerySource.
type Stores struct {
	declared map[string]declaredStore

	mu   sync.RWMutex
	open map[string]store.Queried // by name; what is in it is replaced, never changed
}

// declaredStore is a store as the topology has it.
type declaredStore struct {
	store.Declaration
	byKey bool
}

// NewStores returns the stores of a topology, none of which is open.
func NewStores(specs []*processor.Spec, globals []*processor.GlobalSpec) *Stores {
	s := &Stores{declared: map[string]declaredStore{}, open: map[string]store.Queried{}}
	for _, spec := range specs {
		for _, d := range spec.Stores {
			s.declared[d.Name] = declaredStore{d.Declaration, d.ByKey}
		}
	}
	for _, g := range globals {
		s.declared[g.Name] = declaredStore{g.Declaration, true}
	}
	return s
}

// Queried implements store.QuerySource. A store that the topology does not have, or has of another kind or type, is
// processor.ErrUnknownStore.
func (s *Stores) Queried(d store.Declaration) (store.Queried, error) {
	var known declaredStore
	if s != nil {
		known = s.declared[d.Name()]
	}
	if known.Declaration == nil {
		return store.Queried{}, fmt.Errorf("%w: the topology has no store %q", processor.ErrUnknownStore, d.Name())
	}
	if !alike(known.Declaration, d) {
		return store.Queried{}, fmt.Errorf("%w: the topology has %q as %s of %s and %s, not %s of %s and %s", processor.ErrUnknownStore, d.Name(),
			store.LocalName(known), known.KeyType(), known.ValueType(), store.LocalName(d), d.KeyType(), d.ValueType())
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	q, ok := s.open[d.Name()]
	if !ok {
		return store.Queried{}, &store.UnavailableError{Store: d.Name(), Partition: -1}
	}
	return q, nil
}

// alike compares what makes a view read the right rows.
func alike(a, b store.Declaration) bool {
	if reflect.TypeOf(b).Comparable() && a == b {
		return true
	}
	return store.LocalName(a) == store.LocalName(b) && a.KeyType() == b.KeyType() && a.ValueType() == b.ValueType()
}

// add makes a partition of a store known, which has so many in all.
func (s *Stores) add(p *sharedStore, count int32) {
	if s == nil {
		return
	}
	s.change(p.name, func(q *store.Queried) {
		q.ByKey = s.declared[p.name].byKey
		q.Owner = func(key []byte) int32 { return processor.PartitionForKey(key, count) }
		q.Partitions = append(q.Partitions, p)
		slices.SortFunc(q.Partitions, func(a, b store.QueriedPartition) int { return cmp.Compare(a.Number(), b.Number()) })
	})
}

func (s *Stores) remove(p *sharedStore) {
	if s == nil {
		return
	}
	s.change(p.name, func(q *store.Queried) {
		q.Partitions = slices.DeleteFunc(q.Partitions, func(o store.QueriedPartition) bool { return o == p })
	})
}

func (s *Stores) change(name string, fn func(*store.Queried)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.open[name]
	q.Partitions = slices.Clone(q.Partitions)
	if fn(&q); len(q.Partitions) == 0 {
		delete(s.open, name)
	} else {
		s.open[name] = q
	}
}

// sharedStore is an open store that its worker shares with readers. The worker takes the lock where it changes the
// committed layers, a few times for each commit; readers take it for a get, or for a piece of a scan.
type sharedStore struct {
	name      string
	partition int32

	mu         sync.RWMutex
	layers     *store.Layered
	reader     *store.Reader
	refusal    error // why it cannot be read, nil if it can
	streamTime int64 // of what is committed, in ms
}

var _ store.QueriedPartition = (*sharedStore)(nil)

func share(name string, partition int32, layers *store.Layered) *sharedStore {
	s := &sharedStore{name: name, partition: partition, layers: layers, reader: layers.Reader(), streamTime: processor.Unknown}
	s.refusal = s.unavailable(store.Restoring)
	return s
}

func (s *sharedStore) unavailable(state store.PartitionState) error {
	return &store.UnavailableError{Store: s.name, Partition: s.partition, State: state}
}

// Number implements store.QueriedPartition.
func (s *sharedStore) Number() int32 { return s.partition }

// Ready implements store.QueriedPartition.
func (s *sharedStore) Ready() (streamTime int64, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.refusal != nil {
		return 0, s.refusal
	}
	return max(s.streamTime, s.reader.RestoredTime()), nil
}

// Get implements store.BackendReader.
func (s *sharedStore) Get(dst, key []byte) (value []byte, ts int64, ok bool, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.refusal != nil {
		return dst, 0, false, s.refusal
	}
	return s.reader.Get(dst, key)
}

// Scan implements store.BackendReader. It lets go of the store between the pieces.
func (s *sharedStore) Scan(dst []store.Pair, r store.Range, limit int) ([]store.Pair, error) {
	end := len(dst) + limit
	for more := true; more && len(dst) < end; {
		var err error
		if dst, r, more, err = s.piece(dst, r, end-len(dst)); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// catalogued is how many keys are put in order while the worker may have to wait.
const catalogued = 1024

// piece reads a piece of a range, or prepares for it.
func (s *sharedStore) piece(dst []store.Pair, r store.Range, limit int) ([]store.Pair, store.Range, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusal != nil {
		return dst, r, false, s.refusal
	}
	if !s.reader.Catalog(catalogued) {
		return dst, r, true, nil
	}
	return s.reader.Scan(dst, r, limit)
}

// serve opens the store to readers, as of a stream time.
func (s *sharedStore) serve(streamTime int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusal, s.streamTime = nil, streamTime
}

// committed tells the layers that a commit has succeeded, see store.Layered.
func (s *sharedStore) committed(offset, streamTime int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.layers.Committed(offset)
	s.streamTime = streamTime
}

// beginFlush and endFlush are those of store.Layered.
func (s *sharedStore) beginFlush() (store.Batch, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.layers.BeginFlush()
}

func (s *sharedStore) endFlush(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.layers.EndFlush(err)
}

// withdraw ends the reading of a task's stores.
func (w *Worker) withdraw(t *task) {
	for _, s := range t.stores {
		w.cfg.Stores.remove(s.shared)
		s.shared.close()
	}
}

// close ends the reading: the layers are the worker's alone again.
func (s *sharedStore) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusal = s.unavailable(store.Closed)
}
