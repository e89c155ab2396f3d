package main

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/millrace-streams/millrace/store"
)

// What can be wrong with a disk. A process reads it from a file, so that a disk that is full is still full when the process
// starts again.
const (
	diskFull    = "full"    // nothing can be written
	diskBad     = "bad"     // what is read is an error of the system's
	diskCorrupt = "corrupt" // what is read is damaged
)

// diskError is the error that a failing disk gives.
var diskError = map[string]error{
	diskFull:    fmt.Errorf("chaos: write: %w", syscall.ENOSPC),
	diskBad:     fmt.Errorf("chaos: read: %w", syscall.EIO),
	diskCorrupt: fmt.Errorf("chaos: a damaged page: %w", store.ErrCorrupt),
}

// diskFailed begins the line by which a process says that it has met a failing disk.
const diskFailed = "disk "

// disk is the condition of a process's disk.
type disk struct {
	file string
	tell func(string)
	how  atomic.Pointer[string]
	told atomic.Bool // of the present condition
}

// watch follows the file.
func (d *disk) watch() {
	for ; ; time.Sleep(10 * time.Millisecond) {
		how := ""
		if data, err := os.ReadFile(d.file); err == nil {
			how = strings.TrimSpace(string(data))
		}
		if old := d.how.Load(); old == nil || *old != how {
			d.how.Store(&how)
			d.told.Store(false)
		}
	}
}

// try returns the error of an operation that fails in one of these conditions.
func (d *disk) try(bad ...string) error {
	how := d.how.Load()
	if how == nil || *how == "" {
		return nil
	}
	for _, b := range bad {
		if *how == b {
			if !d.told.Swap(true) {
				d.tell(diskFailed + b)
			}
			return diskError[b]
		}
	}
	return nil
}

// faultyOpener opens stores on such a disk.
type faultyOpener struct {
	store.Opener
	disk *disk
}

// Open implements store.Opener.
func (o faultyOpener) Open(dir, name string) (store.Backend, error) {
	if err := o.disk.try(diskFull, diskBad); err != nil {
		return nil, err
	}
	b, err := o.Opener.Open(dir, name)
	if err != nil {
		return nil, err
	}
	return faultyBackend{b, o.disk}, nil
}

// faultyBackend is a store on such a disk.
type faultyBackend struct {
	store.Backend
	disk *disk
}

// Get implements store.Backend.
func (b faultyBackend) Get(dst, key []byte) (value []byte, ts int64, ok bool, err error) {
	if err := b.disk.try(diskBad, diskCorrupt); err != nil {
		return dst, 0, false, err
	}
	return b.Backend.Get(dst, key)
}

// Scan implements store.Backend.
func (b faultyBackend) Scan(dst []store.Pair, r store.Range, limit int) ([]store.Pair, error) {
	if err := b.disk.try(diskBad, diskCorrupt); err != nil {
		return dst, err
	}
	return b.Backend.Scan(dst, r, limit)
}

// Apply implements store.Backend. A full disk may be noticed after the batch was written in part, which must be undone:
// that is bbolt's, and the same to the caller.
func (b faultyBackend) Apply(batch store.Batch) error {
	if err := b.disk.try(diskFull, diskBad); err != nil {
		return err
	}
	return b.Backend.Apply(batch)
}

// Load implements store.Backend.
func (b faultyBackend) Load(rows iter.Seq[store.Pair], offset int64) error {
	if err := b.disk.try(diskFull, diskBad); err != nil {
		return err
	}
	return b.Backend.Load(rows, offset)
}

// isDiskError reports whether a process's last words name a failing disk.
func isDiskError(text string) bool {
	for _, err := range diskError {
		if strings.Contains(text, err.Error()) {
			return true
		}
	}
	return false
}

// setDisk changes the condition of the disk of a process; "" heals it.
func setDisk(file, how string) error {
	if how == "" {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	return os.WriteFile(file, []byte(how), 0o644)
}
