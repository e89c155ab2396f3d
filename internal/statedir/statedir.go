// Package statedir owns the folder of an application's local state: the lock that keeps two processes apart, and the
// process id that outlives restarts.
//
//	<state dir>/<app>/.lock           held while the application runs
//	<state dir>/<app>/process-id      a UUID, written once
//	<state dir>/<app>/<task>/         the stores of a task, see internal/runtime
package statedir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
	"github.com/google/uuid"
)

// ErrLocked is a state directory that another process of the same application holds.
var ErrLocked = errors.New("statedir: in use by another process")

// Dir is a locked state directory.
type Dir struct {
	ProcessID string // stays the same over restarts
	path      string
	lock      *flock.Flock
}

// Open makes and locks the folder of an application below root. It does not wait: a held lock is ErrLocked, with the path
// and, where it is known, the holder.
func Open(root, app string) (*Dir, error) {
	dir := filepath.Join(root, app)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("statedir: %w", err)
	}
	path := filepath.Join(dir, ".lock")
	lock := flock.New(path)
	held, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("statedir: lock %s: %w", path, err)
	}
	if !held {
		holder, _ := os.ReadFile(path)
		return nil, fmt.Errorf("%w: %s, process %s: give each process a state directory of its own", ErrLocked, path, strings.TrimSpace(string(holder)))
	}
	d := &Dir{path: dir, lock: lock}
	if err := d.note(path); err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	if d.ProcessID, err = processID(dir); err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	return d, nil
}

// note writes who holds the lock, for the message that the next one gets.
func (d *Dir) note(path string) error {
	if err := os.WriteFile(path, fmt.Appendln(nil, os.Getpid()), 0o644); err != nil {
		return fmt.Errorf("statedir: %w", err)
	}
	return nil
}

// Clear deletes the stores of all tasks. The process id stays.
func (d *Dir) Clear() error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("statedir: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := os.RemoveAll(filepath.Join(d.path, e.Name())); err != nil {
				return fmt.Errorf("statedir: %w", err)
			}
		}
	}
	return nil
}

// Close gives the lock back. The folder stays.
func (d *Dir) Close() error { return d.lock.Unlock() }

// processID reads the id of the state directory, and makes one if there is none. A file that was cut short by a crash is
// no id: the name appears only once it is whole.
func processID(dir string) (string, error) {
	path := filepath.Join(dir, "process-id")
	data, err := os.ReadFile(path)
	if id, bad := uuid.Parse(strings.TrimSpace(string(data))); err == nil && bad == nil {
		return id.String(), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("statedir: %w", err)
	}
	id := uuid.NewString()
	if err := os.WriteFile(path+".new", []byte(id+"\n"), 0o644); err != nil {
		return "", fmt.Errorf("statedir: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return "", fmt.Errorf("statedir: %w", err)
	}
	return id, nil
}
