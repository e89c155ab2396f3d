package bolt

import (
	"fmt"
	"runtime/debug"

	"go.etcd.io/bbolt"

	"github.com/millrace-streams/millrace/store"
)

var _ store.SharedBackend = (*Backend)(nil)

// Beside implements store.SharedBackend. Each read has a transaction of its own,
// which ends before the read returns: readers wait neither for the worker nor for
// each other, and pages of deleted keys are soon free again.
func (b *Backend) Beside() store.BackendReader { return beside{b} }

type beside struct{ b *Backend }

// Get implements store.BackendReader.
func (r beside) Get(dst, key []byte) (value []byte, ts int64, ok bool, err error) {
	value = dst
	err = r.read(func(c *bbolt.Cursor) error {
		stored := appendKey(make([]byte, 0, len(key)+1), key)
		k, v := c.Seek(stored)
		if string(k) != string(stored) {
			return nil
		}
		var err error
		if ts, v, _, err = unseal(k, v); err != nil {
			return r.b.damaged(err)
		}
		value, ok = append(dst, v...), true
		return nil
	})
	if err != nil {
		return dst, 0, false, err
	}
	return value, ts, ok, nil
}

// Scan implements store.BackendReader.
func (r beside) Scan(dst []store.Pair, within store.Range, limit int) (pairs []store.Pair, err error) {
	pairs = dst
	err = r.read(func(c *bbolt.Cursor) error {
		w := newWalk(c, within)
		end := len(dst) + limit
		for k, v := w.first(); w.inside(k) && len(pairs) < end; k, v = w.next() {
			ts, v, _, err := unseal(k, v)
			if err != nil {
				return r.b.damaged(err)
			}
			pairs = store.AppendPair(pairs, k[1:], v, ts)
		}
		return nil
	})
	if err != nil {
		return dst, err
	}
	return pairs, nil
}

// read calls fn with a transaction of its own.
func (r beside) read(fn func(*bbolt.Cursor) error) (err error) {
	r.b.mu.Lock()
	err = r.b.usable()
	r.b.mu.Unlock()
	if err != nil {
		return err
	}
	defer r.b.caughtWrite(&err, debug.SetPanicOnFault(true)) // mu is not held, as in a write
	tx, err := r.b.h.db.Begin(false)
	if err != nil {
		return fmt.Errorf("bolt: %s: %w", r.b.path, err)
	}
	defer func() { _ = tx.Rollback() }()
	data := tx.Bucket(dataBucket)
	if data == nil {
		return corrupt(r.b.path, errNoBucket)
	}
	return fn(data.Cursor())
}
