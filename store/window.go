package store

import (
	"fmt"
	"time"

	"github.com/millrace-streams/millrace/serde"
)

// WindowOptions describe a window store. Spans are whole milliseconds.
type WindowOptions struct {
	// Size is the length of a window, for the End of rows that are read.
	Size time.Duration
	// Retention is how long a row is kept: as long as its start is above the
	// store's time - Retention. At least Size, which is the default.
	Retention time.Duration
	// RetainDuplicates keeps every value put for a key and a start, not only
	// the last.
	RetainDuplicates bool
}

// Window declares a store of values by key and start of a window.
type Window[K, V any] struct {
	declared[K, V]
	options WindowOptions
}

var _ Declaration = (*Window[string, string])(nil)

// NewWindow declares a window store. Nil keys and values are as in NewKeyValue.
func NewWindow[K, V any](name string, keys serde.Serde[K], values serde.Serde[V], o WindowOptions) *Window[K, V] {
	if o.Retention == 0 {
		o.Retention = o.Size
	}
	return &Window[K, V]{declared[K, V]{name, keys, values}, o}
}

// Size is the length of a window.
func (s *Window[K, V]) Size() time.Duration { return s.options.Size }

// Retention is how long rows are kept.
func (s *Window[K, V]) Retention() time.Duration { return s.options.Retention }

// RetainDuplicates tells whether all values of a key and start are kept.
func (s *Window[K, V]) RetainDuplicates() bool { return s.options.RetainDuplicates }

// Layout implements Declaration.
func (s *Window[K, V]) Layout() Layout {
	return &timedLayout{retention: s.options.Retention.Milliseconds(), duplicates: s.options.RetainDuplicates}
}

// TopicConfig is for a topic of which the broker removes what is a day older
// than the retention.
func (s *Window[K, V]) TopicConfig() map[string]string { return expiring(s.options.Retention) }

// Validate refuses a size that is not positive, a retention below it, and
// fractions of a millisecond.
func (s *Window[K, V]) Validate() error {
	o := &s.options
	if err := wholeMilliseconds(s.name, "window size", o.Size, 1); err != nil {
		return err
	}
	if o.Retention < o.Size {
		return fmt.Errorf("store: %s: the retention, %v, is less than the window size, %v", s.name, o.Retention, o.Size)
	}
	return wholeMilliseconds(s.name, "retention", o.Retention, 1)
}

// View opens the store of the task that src stands for. See KeyValue.View.
func (s *Window[K, V]) View(src Source) (*WindowView[K, V], error) {
	v, err := s.open(src)
	if err != nil {
		return nil, err
	}
	layout, err := timedLayoutOf(v.layers)
	if err != nil {
		return nil, err
	}
	return &WindowView[K, V]{timedView[K, V]{view: v, layout: layout, size: s.options.Size.Milliseconds()}}, nil
}

// timedLayoutOf is the layout of layers that were made by LayersOf.
func timedLayoutOf(l *Layered) (*timedLayout, error) {
	if t, ok := l.layout.(*timedLayout); ok {
		return t, nil
	}
	return nil, errOtherKind(l)
}

func errOtherKind(l *Layered) error {
	return fmt.Errorf("store: open %s: it was opened as a store of another kind", l.name)
}

// Session declares a store of values by key and session.
type Session[K, V any] struct {
	declared[K, V]
	options SessionOptions
}

// SessionOptions describe a session store.
type SessionOptions struct {
	// Retention is how long a session is kept: as long as its end is above the
	// store's time - Retention. It is in whole milliseconds, at least one.
	Retention time.Duration
}

var _ Declaration = (*Session[string, string])(nil)

// NewSession declares a session store. Nil keys and values are as in NewKeyValue.
func NewSession[K, V any](name string, keys serde.Serde[K], values serde.Serde[V], o SessionOptions) *Session[K, V] {
	return &Session[K, V]{declared[K, V]{name, keys, values}, o}
}

// Retention is how long sessions are kept.
func (s *Session[K, V]) Retention() time.Duration { return s.options.Retention }

// Layout implements Declaration.
func (s *Session[K, V]) Layout() Layout {
	return &timedLayout{retention: s.options.Retention.Milliseconds(), session: true}
}

// TopicConfig is for a topic of which the broker removes what is a day older
// than the retention.
func (s *Session[K, V]) TopicConfig() map[string]string { return expiring(s.options.Retention) }

// Validate refuses a retention that is not positive or not in whole milliseconds.
func (s *Session[K, V]) Validate() error {
	return wholeMilliseconds(s.name, "retention", s.options.Retention, 1)
}

// View opens the store of the task that src stands for. See KeyValue.View.
func (s *Session[K, V]) View(src Source) (*SessionView[K, V], error) {
	v, err := s.open(src)
	if err != nil {
		return nil, err
	}
	layout, err := timedLayoutOf(v.layers)
	if err != nil {
		return nil, err
	}
	return &SessionView[K, V]{timedView[K, V]{view: v, layout: layout}}, nil
}
