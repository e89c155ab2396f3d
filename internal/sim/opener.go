package sim

import (
	"cmp"
	"iter"
	"path/filepath"
	"slices"

	"github.com/millrace-streams/millrace/store"
)

// Opener wraps the backends of one process: it names the points around their writes to a hook, knows what is open, and
// closes all of it when the process dies.
type Opener struct {
	inner store.Opener
	hook  func(Point)
	open  []*Opened
}

// Opened is an open backend.
type Opened struct {
	store.Backend
	Task string // the last element of the folder: the task's id
	Name string // the store's
	from *Opener
}

var _ store.Opener = (*Opener)(nil)

// NewOpener wraps inner. The hook is called at the points around Open and Apply; it may be nil, and it may panic with a
// Crash.
func NewOpener(inner store.Opener, hook func(Point)) *Opener {
	if hook == nil {
		hook = func(Point) {}
	}
	return &Opener{inner: inner, hook: hook}
}

// Open implements store.Opener.
func (o *Opener) Open(dir, name string) (store.Backend, error) {
	o.hook(BeforeOpen)
	backend, err := o.inner.Open(dir, name)
	if err != nil {
		return nil, err
	}
	b := &Opened{Backend: backend, Task: filepath.Base(dir), Name: name, from: o}
	o.open = append(o.open, b)
	return b, nil
}

// Durable implements store.Opener.
func (o *Opener) Durable() bool { return o.inner.Durable() }

// Remove implements store.Opener.
func (o *Opener) Remove(dir, name string) error { return o.inner.Remove(dir, name) }

// SetAside implements store.Opener.
func (o *Opener) SetAside(dir, name string) (string, error) { return o.inner.SetAside(dir, name) }

// Opened returns the open backends of the stores of that name, by task.
func (o *Opener) Opened(name string) []*Opened {
	var found []*Opened
	for _, b := range o.open {
		if b.Name == name {
			found = append(found, b)
		}
	}
	slices.SortStableFunc(found, func(a, b *Opened) int { return cmp.Compare(a.Task, b.Task) })
	return found
}

// Kill closes everything that is open, as the end of the process does. What was applied stays.
func (o *Opener) Kill() error {
	var first error
	for len(o.open) > 0 {
		first = cmp.Or(first, o.open[0].Close())
	}
	return first
}

// Apply implements store.Backend.
func (b *Opened) Apply(batch store.Batch) error {
	b.from.hook(BeforeFlush)
	if err := b.Backend.Apply(batch); err != nil {
		return err
	}
	b.from.hook(AfterFlush)
	return nil
}

// Load implements store.Backend.
func (b *Opened) Load(rows iter.Seq[store.Pair], offset int64) error {
	b.from.hook(BeforeFlush)
	if err := b.Backend.Load(rows, offset); err != nil {
		return err
	}
	b.from.hook(AfterFlush)
	return nil
}

// Close implements store.Backend.
func (b *Opened) Close() error {
	b.from.open = slices.DeleteFunc(b.from.open, func(o *Opened) bool { return o == b })
	return b.Backend.Close()
}
