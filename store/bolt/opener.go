package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/millrace-streams/millrace/store"
)

// Options say how files are opened. The zero value is right for most.
type Options struct {
	// LockTimeout is how long Open and Remove wait for a file that is locked.
	// Default 5 s; rounded up to 100 ms.
	LockTimeout time.Duration

	// NoSync leaves it to the system when written pages reach the disk. After
	// a crash of the process all is well; after a power loss the file may be
	// damaged, and if that goes unnoticed the store is wrong.
	NoSync bool

	// TxBytes bounds the memory of one write transaction, roughly: what is written
	// and the pages that this changes. A larger batch takes several, and a file
	// beside the store's in which it waits. Default 8 MiB.
	TxBytes int64

	// CompactFree is the share of free pages, between 0 and 1, above which Open
	// rewrites a file of more than CompactSize. Default 0.75; negative never.
	CompactFree float64

	// CompactSize is in bytes. Default 64 MB.
	CompactSize int64
}

// Opener opens bbolt files.
type Opener struct{ Options }

var _ store.Opener = Opener{}

// Durable is true.
func (Opener) Durable() bool { return true }

// Open opens the store's file, and makes it and its folder if need be. It reads
// the file once to check it: see the package comment for damage and locks.
func (o Opener) Open(dir, name string) (store.Backend, error) {
	path, err := file(dir, name)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("bolt: %w", err)
	}
	return o.Options.withDefaults().open(path, name)
}

// Remove deletes the store's file and what SetAside left of it. It takes the
// file's lock first, so it never deletes the file of a store that is open.
func (o Opener) Remove(dir, name string) error {
	path, err := file(dir, name)
	if err != nil {
		return err
	}
	if err := removeIfThere(path + asideSuffix); err != nil {
		return err
	}
	err = o.Options.withDefaults().whileLocked(path, func() error {
		return errors.Join(removeBeside(path), removeIfThere(path))
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// removeBeside removes what a process that died may have left beside a file.
func removeBeside(path string) error {
	return errors.Join(removeIfThere(path+redoSuffix), removeIfThere(path+compactSuffix))
}

// SetAside renames the store's file to <name>.db.corrupt.
func (o Opener) SetAside(dir, name string) (string, error) {
	path, err := file(dir, name)
	if err != nil {
		return "", err
	}
	aside := path + asideSuffix
	err = o.Options.withDefaults().whileLocked(path, func() error {
		return errors.Join(removeBeside(path), os.Rename(path, aside))
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("bolt: set aside: %w", err)
	}
	return aside, nil
}

const asideSuffix = ".corrupt"

// file is the path of a store's file. A name that would leave the folder is
// refused.
func file(dir, name string) (string, error) {
	if name == "" || name == "." || name == ".." || filepath.Base(name) != name {
		return "", fmt.Errorf("bolt: store name %q is not a file name", name)
	}
	return filepath.Join(dir, name+".db"), nil
}

func (o Options) withDefaults() Options {
	if o.LockTimeout == 0 {
		o.LockTimeout = 5 * time.Second
	}
	o.LockTimeout = max(o.LockTimeout, 100*time.Millisecond)
	if o.TxBytes == 0 {
		o.TxBytes = 8 << 20
	}
	if o.CompactFree == 0 {
		o.CompactFree = 0.75
	}
	if o.CompactSize == 0 {
		o.CompactSize = 64 << 20
	}
	return o
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("bolt: %w", err)
	}
	return nil
}
