package embedded

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrInUse says that the directory of a broker belongs to another broker that is running.
var ErrInUse = errors.New("in use by another broker")

// Names inside a broker's directory.
const (
	lockName   = "lock"        // flocked while a broker runs
	markerName = "running"     // there while a broker runs and after an unclean end
	idName     = "log.id"      // the log's identity, written before the log
	dataName   = "log"         // kfake's files; beside it intent.0 and intent.1
	asideName  = "log.unclean" // the last log that could not be trusted
)

// directory is an open broker directory. Who holds it, holds its lock.
type directory struct {
	path   string
	lock   *os.File
	id     string
	fresh  bool
	mended bool
	notice string // what to tell once, if the last broker did not close the log
}

// openDirectory locks the directory, makes sure that its log can be trusted and marks it as running.
func openDirectory(path string) (*directory, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("embedded: make the directory: %w", err)
	}
	lock, err := lockFile(filepath.Join(path, lockName))
	if err != nil {
		return nil, fmt.Errorf("embedded: directory %s: %w", path, err)
	}
	d := &directory{path: path, lock: lock}
	if err := d.prepare(); err != nil {
		return nil, errors.Join(fmt.Errorf("embedded: directory %s: %w", path, err), d.abandon())
	}
	return d, nil
}

// prepare leaves a directory whose log is either right or absent, has an id, and carries the marker.
func (d *directory) prepare() error {
	if err := d.settle(); err != nil {
		return err
	}
	id, err := os.ReadFile(d.file(idName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	d.id = strings.TrimSpace(string(id))
	if d.id == "" && exists(d.data()) {
		if err := d.setAside("it has no identity"); err != nil {
			return err
		}
	}
	if !exists(d.data()) {
		d.fresh = true
		d.id = rand.Text()
		if err := durableWrite(d.file(idName), d.id+"\n"); err != nil {
			return err
		}
	}
	return durableWrite(d.file(markerName), runningText())
}

// settle deals with a log whose broker did not close it.
func (d *directory) settle() error {
	text, err := os.ReadFile(d.file(markerName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !exists(d.data()) {
		return removeIntents(d)
	}
	if string(text) == untrusted {
		return d.setAside("it could not be written")
	}
	boot := bootID()
	if boot == "" || !strings.HasSuffix(string(text), bootText(boot)) {
		return d.setAside("the machine may have gone down while it was open")
	}
	aborted, err := repair(d)
	if err != nil {
		return d.setAside(fmt.Sprintf("it was not closed and could not be repaired (%v)", err))
	}
	d.mended = true
	d.notice = fmt.Sprintf("the log in %s was not closed: repaired, with %d open transactions aborted", d.path, aborted)
	return nil
}

// untrusted is the marker of a log that misses a write.
const untrusted = "untrusted\n"

func runningText() string { return fmt.Sprintf("pid %d\n%s", os.Getpid(), bootText(bootID())) }

func bootText(id string) string { return "boot " + id + "\n" }

// setAside moves the log away, over the one that was moved away before, so that at most one is kept.
func (d *directory) setAside(why string) error {
	aside := d.file(asideName)
	if err := os.RemoveAll(aside); err != nil {
		return err
	}
	if err := os.Rename(d.data(), aside); err != nil {
		return err
	}
	d.notice = fmt.Sprintf("the log in %s cannot be trusted: %s. It was moved to %s and a fresh one begins; "+
		"drop local state that belongs to the old one", d.path, why, aside)
	return removeIntents(d)
}

func (d *directory) file(name string) string { return filepath.Join(d.path, name) }

func (d *directory) data() string { return d.file(dataName) }

func (d *directory) intent(slot uint64) string { return d.file(fmt.Sprintf("intent.%d", slot)) }

// distrust keeps the log from being opened again, as well as a disk that fails allows.
func (d *directory) distrust() error { return durableWrite(d.file(markerName), untrusted) }

// close says that the log is whole, and lets go of the directory.
func (d *directory) close() error {
	return errors.Join(removeIntents(d), os.Remove(d.file(markerName)), d.abandon())
}

// abandon lets go of the directory and leaves the marker as it is.
func (d *directory) abandon() error { return unlockFile(d.lock) }

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// durableWrite replaces the file in one step, so that a crash leaves the old text or the new one.
func durableWrite(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
