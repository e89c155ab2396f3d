package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"

	"go.etcd.io/bbolt"

	"github.com/millrace-streams/millrace/store"
)

var (
	errNoBucket   = errors.New("a bucket is missing")
	errShortValue = errors.New("a value is too short")

	formatKey = []byte("format")
	nameKey   = []byte("store")
	offsetKey = []byte("offset")
)

const format = 1

// newBackend reads the file's meta bucket, or makes the buckets of a new file.
func newBackend(h handle, path, name string) (*Backend, error) {
	b := &Backend{path: path, h: h, offset: -1}
	err := h.db.View(func(tx *bbolt.Tx) error {
		if k, _ := tx.Cursor().First(); k == nil {
			return errNew
		}
		return b.readMeta(tx, name)
	})
	if errors.Is(err, errNew) {
		err = h.db.Update(func(tx *bbolt.Tx) error { return writeMeta(tx, name) })
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

var errNew = errors.New("bolt: new file")

func writeMeta(tx *bbolt.Tx, name string) error {
	if _, err := tx.CreateBucket(dataBucket); err != nil {
		return fmt.Errorf("bolt: %w", err)
	}
	meta, err := tx.CreateBucket(metaBucket)
	if err != nil {
		return fmt.Errorf("bolt: %w", err)
	}
	return errors.Join(meta.Put(formatKey, []byte{format}), meta.Put(nameKey, []byte(name)))
}

// readMeta checks that the file is what we take it for. A wrong one is treated
// as a damaged one: it is set aside and nothing is lost.
func (b *Backend) readMeta(tx *bbolt.Tx, name string) error {
	meta := tx.Bucket(metaBucket)
	if meta == nil || tx.Bucket(dataBucket) == nil {
		return corrupt(b.path, errNoBucket)
	}
	if f := meta.Get(formatKey); string(f) != string([]byte{format}) {
		return corrupt(b.path, fmt.Errorf("format %v, not %d", f, format))
	}
	if n := meta.Get(nameKey); string(n) != name {
		return corrupt(b.path, fmt.Errorf("holds store %q, not %q", n, name))
	}
	offset := meta.Get(offsetKey)
	switch len(offset) {
	case 0:
	case 8:
		b.offset = int64(binary.BigEndian.Uint64(offset))
	default:
		return corrupt(b.path, errShortValue)
	}
	return nil
}

// Apply implements store.Backend in one bbolt transaction.
func (b *Backend) Apply(batch store.Batch) (err error) {
	b.writing.Lock()
	defer b.writing.Unlock()
	if err := b.beginApply(); err != nil {
		return err
	}
	defer b.endApply()
	defer b.caughtWrite(&err, debug.SetPanicOnFault(true))
	batch.Sort()
	if err := b.write(batch); err != nil {
		return fmt.Errorf("bolt: apply to %s: %w", b.path, err)
	}
	if batch.Offset >= 0 {
		b.mu.Lock()
		b.offset = batch.Offset
		b.mu.Unlock()
	}
	return nil
}

func (b *Backend) beginApply() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.usable(); err != nil {
		return err
	}
	b.applying = true
	b.endShared()
	return nil
}

func (b *Backend) endApply() {
	b.mu.Lock()
	b.applying = false
	b.mu.Unlock()
}

// write is not db.Update: that one, after a panic, scans the damaged file on a
// goroutine where nothing catches the next panic. Tx.Rollback does not.
func (b *Backend) write(batch store.Batch) error {
	tx, err := b.h.db.Begin(true)
	if err != nil {
		return err
	}
	done := false
	defer func() {
		if !done {
			b.stuck = !rolledBack(tx)
		}
	}()
	if err := fill(tx, batch); err != nil {
		return err
	}
	err = tx.Commit()
	done = true // bbolt has rolled back if it failed
	return err
}

// rolledBack reports whether the transaction could be ended.
func rolledBack(tx *bbolt.Tx) (ok bool) {
	defer func() { _ = recover() }()
	return tx.Rollback() == nil
}

func fill(tx *bbolt.Tx, batch store.Batch) error {
	data, meta := tx.Bucket(dataBucket), tx.Bucket(metaBucket)
	if data == nil || meta == nil {
		return fmt.Errorf("%w: %w", store.ErrCorrupt, errNoBucket)
	}
	if appends(data, batch.Entries) {
		data.FillPercent = 0.95 // pages of a bulk load are not going to grow
	}
	var values arena
	var key []byte
	for _, e := range batch.Entries {
		key = appendKey(key[:0], e.KeyBytes())
		if err := put(data, key, e, &values); err != nil {
			return err
		}
	}
	if batch.Offset < 0 {
		return nil
	}
	return meta.Put(offsetKey, binary.BigEndian.AppendUint64(nil, uint64(batch.Offset)))
}

func put(data *bbolt.Bucket, key []byte, e *store.Entry, values *arena) error {
	if e.Deleted {
		return data.Delete(key)
	}
	value := values.take(tsSize + len(e.Value))
	binary.BigEndian.PutUint64(value, uint64(e.Timestamp))
	copy(value[tsSize:], e.Value)
	return data.Put(key, value) // copies the key, keeps the value
}

// appends tells whether all entries lie above what the bucket holds.
func appends(data *bbolt.Bucket, entries []*store.Entry) bool {
	if len(entries) == 0 {
		return false
	}
	last, _ := data.Cursor().Last()
	return last == nil || string(last[1:]) < entries[0].Key
}

// arena hands out pieces of larger allocations.
type arena struct{ rest []byte }

func (a *arena) take(n int) []byte {
	const chunk = 64 << 10
	if n > chunk/4 {
		return make([]byte, n)
	}
	if n > len(a.rest) {
		a.rest = make([]byte, chunk)
	}
	piece := a.rest[:n:n]
	a.rest = a.rest[n:]
	return piece
}
