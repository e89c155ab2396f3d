package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/millrace-streams/millrace/store"
)

// handle is an open bbolt database and the file below it, which bbolt hides.
type handle struct {
	db   *bbolt.DB
	file *os.File
}

// open checks the file, opens it, and makes sure that the path still leads to it.
func (o Options) open(path, name string) (*Backend, error) {
	deadline := time.Now().Add(o.LockTimeout)
	for compact := o.CompactFree > 0; ; {
		usage, err := o.verify(path, name, deadline)
		if err != nil {
			return nil, err
		}
		h, err := o.lock(path, deadline, false)
		if err != nil {
			return nil, err
		}
		if !h.isAt(path) {
			h.close() // removed or replaced while we waited
			continue
		}
		b, err := o.backend(h, path, name)
		if err != nil {
			h.close()
			return nil, err
		}
		if compact && usage.worthCompacting(o) {
			compact = false
			o.compact(h, path)
			h.close()
			continue
		}
		return b, nil
	}
}

// backend reads what the file says of itself, or makes the buckets of a new one,
// and does what a process that died has left to be done.
func (o Options) backend(h handle, path, name string) (b *Backend, err error) {
	b = &Backend{path: path, name: name, opt: o, h: h}
	defer b.caughtWrite(&err, debug.SetPanicOnFault(true))
	if b.state, err = readMeta(h.db, name); errors.Is(err, errNew) {
		b.state = state{offset: -1}
		err = h.db.Update(func(tx *bbolt.Tx) error { return writeMeta(tx, name, b.state) })
		if err != nil {
			return nil, fmt.Errorf("bolt: %s: %w", path, err)
		}
	}
	if err != nil {
		return nil, corrupt(path, err)
	}
	if err := b.redo(); err != nil {
		return nil, fmt.Errorf("bolt: %s: finish a batch: %w", path, err)
	}
	return b, removeBeside(path)
}

const (
	// mappedAhead is address space, not memory or disk. A larger file is mapped
	// in powers of two.
	mappedAhead = 64 << 20
	// growBy is what a file gets beyond its need when it grows.
	growBy = 1 << 20
)

// lock opens the file through bbolt, which locks it: for others altogether, or
// if readOnly against writers. The deadline is for the lock.
func (o Options) lock(path string, deadline time.Time, readOnly bool) (h handle, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = corrupt(path, fmt.Errorf("panic in open: %v", r))
		}
		if err != nil && h.file != nil {
			_ = h.file.Close() // as a rule bbolt has closed it already
		}
	}()
	h.db, err = bbolt.Open(path, 0o600, &bbolt.Options{
		// With less than bbolt's interval of 50 ms it would not try even once.
		Timeout:        max(time.Until(deadline), 51*time.Millisecond),
		NoSync:         o.NoSync,
		NoGrowSync:     o.NoSync,
		NoFreelistSync: true,
		NoStatistics:   true,
		// Each remapping copies all nodes of the write transaction that needs it.
		InitialMmapSize: mappedAhead,
		FreelistType:    bbolt.FreelistMapType,
		ReadOnly:        readOnly,
		OpenFile: func(path string, flag int, mode os.FileMode) (*os.File, error) {
			f, err := os.OpenFile(path, flag, mode)
			h.file = f
			return f, err
		},
	})
	if err != nil {
		return h, openError(path, err)
	}
	h.db.AllocSize = growBy
	return h, nil
}

// openError sorts bbolt's errors: the lock, the system, and damage for the rest.
func openError(path string, err error) error {
	var inPath *fs.PathError
	var errno syscall.Errno
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return fmt.Errorf("bolt: %w: %s is in use by another process or task", store.ErrLocked, path)
	case errors.As(err, &inPath), errors.As(err, &errno):
		return fmt.Errorf("bolt: open %s: %w", path, err)
	}
	return corrupt(path, err)
}

func corrupt(path string, cause error) error {
	return fmt.Errorf("bolt: %w: %s: %w", store.ErrCorrupt, path, cause)
}

// isAt tells whether the path still leads to the open file.
func (h handle) isAt(path string) bool {
	opened, err := h.file.Stat()
	if err != nil {
		return false
	}
	found, err := os.Stat(path)
	return err == nil && os.SameFile(opened, found)
}

func (h handle) close() { _ = h.db.Close() }

// verify checks the file if there is one, while no writer has it open.
func (o Options) verify(path, name string, deadline time.Time) (usage, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && info.Size() == 0) {
		return usage{}, nil // bbolt will make it
	}
	if err != nil {
		return usage{}, fmt.Errorf("bolt: %w", err)
	}
	h, err := o.lock(path, deadline, true)
	if errors.Is(err, fs.ErrNotExist) {
		return usage{}, nil // removed just now
	}
	if err != nil {
		return usage{}, err
	}
	defer h.close()
	u, err := verify(h.file, name)
	if err != nil {
		return usage{}, corrupt(path, err)
	}
	return u, nil
}

// whileLocked calls fn when no one has the file open, which is to exist. A file so damaged that
// bbolt cannot open it is no one's.
func (o Options) whileLocked(path string, fn func() error) error {
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("bolt: %w", err)
	}
	h, err := o.lock(path, time.Now().Add(o.LockTimeout), true)
	switch {
	case errors.Is(err, store.ErrLocked):
		return err
	case err != nil:
		return fn()
	}
	defer h.close()
	if !h.isAt(path) {
		return o.whileLocked(path, fn) // replaced while we waited
	}
	return fn()
}
