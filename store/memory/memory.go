// Package memory is a store backend in the process's memory: fast, and gone
// with the process, after which the changelog rebuilds it.
package memory

import (
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/tidwall/btree"

	"github.com/millrace-streams/millrace/store"
)

// Opener opens memory backends. Each Open makes an empty one.
type Opener struct{}

var _ store.Opener = Opener{}

// Open returns an empty backend; dir and name are not used.
func (Opener) Open(dir, name string) (store.Backend, error) { return New(), nil }

// Durable is false: a flush costs little and every start restores.
func (Opener) Durable() bool { return false }

// Remove has nothing to remove.
func (Opener) Remove(dir, name string) error { return nil }

// SetAside has nothing to set aside.
func (Opener) SetAside(dir, name string) (string, error) { return "", nil }

// Backend is an ordered map from key to value and timestamp.
type Backend struct {
	ordering sync.Mutex // held by the scan that puts the keys in order

	mu      sync.RWMutex
	items   map[string]*item
	index   *btree.BTreeG[*item] // nil until the first scan
	ordered bool                 // the index has all items
	offset  int64                // -1: none
	closed  bool
}

type item struct {
	key    string
	value  []byte
	ts     int64
	inline [16]byte // a small value's place
}

var _ store.Backend = (*Backend)(nil)

// New returns an empty backend.
func New() *Backend {
	return &Backend{items: make(map[string]*item), offset: -1}
}

// Get implements store.Backend.
func (b *Backend) Get(dst, key []byte) (value []byte, ts int64, ok bool, err error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.closed {
		return dst, 0, false, errClosed
	}
	it := b.items[string(key)]
	if it == nil {
		return dst, 0, false, nil
	}
	return append(dst, it.value...), it.ts, true, nil
}

// applyRun is how many entries Apply writes before it lets readers in.
const applyRun = 1024

// Apply implements store.Backend. Readers see a batch arrive in runs; whole it
// is for everyone who reads through the layers, whose flushing layer covers it.
func (b *Backend) Apply(batch store.Batch) error {
	for rest := batch.Entries; len(rest) > 0; {
		run := rest[:min(len(rest), applyRun)]
		rest = rest[len(run):]
		if err := b.applySome(run, -1); err != nil {
			return err
		}
	}
	return b.applySome(nil, batch.Offset)
}

func (b *Backend) applySome(entries []*store.Entry, offset int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return errClosed
	}
	for _, e := range entries {
		it := b.items[e.Key]
		switch {
		case e.Deleted:
			b.remove(it)
		case it == nil:
			b.insert(strings.Clone(e.Key), e.Value, e.Timestamp)
		default:
			it.set(e.Value, e.Timestamp)
		}
	}
	if offset >= 0 {
		b.offset = offset
	}
	return nil
}

// Load implements store.Backend.
func (b *Backend) Load(rows iter.Seq[store.Pair], offset int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return errClosed
	}
	for row := range rows {
		it := b.items[string(row.Key)]
		switch {
		case row.Value == nil:
			b.remove(it)
		case it == nil:
			b.insert(string(row.Key), row.Value, row.Timestamp)
		default:
			it.set(row.Value, row.Timestamp)
		}
	}
	b.offset = max(b.offset, offset)
	return nil
}

func (it *item) set(value []byte, ts int64) { it.value, it.ts = append(it.value[:0], value...), ts }

func (b *Backend) insert(key string, value []byte, ts int64) {
	it := &item{key: key}
	it.value = it.inline[:0]
	it.set(value, ts)
	b.items[key] = it
	if b.index != nil {
		b.index.Set(it)
	}
}

// remove removes an item; nil is none.
func (b *Backend) remove(it *item) {
	if it == nil {
		return
	}
	delete(b.items, it.key)
	if b.index != nil {
		b.index.Delete(it)
	}
}

// Offset implements store.Backend.
func (b *Backend) Offset() (int64, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return max(b.offset, 0), b.offset >= 0
}

// Close implements store.Backend.
func (b *Backend) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed, b.items, b.index = true, nil, nil
	return nil
}

var errClosed = fmt.Errorf("memory: %w", store.ErrClosed)
