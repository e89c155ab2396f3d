package store

import (
	"fmt"
	"slices"
	"time"

	"github.com/millrace-streams/millrace/serde"
)

// Versioned declares a store that keeps the versions of each key as far back as
// its history, and the latest for ever.
type Versioned[K, V any] struct {
	declared[K, V]
	history time.Duration
	options options
}

var _ Declaration = (*Versioned[string, string])(nil)

// NewVersioned declares a versioned store with a history in whole milliseconds;
// 0 keeps the latest versions only. Nil keys and values are as in NewKeyValue.
// WithTTL is no option of it: Validate refuses it.
func NewVersioned[K, V any](
	name string, keys serde.Serde[K], values serde.Serde[V], history time.Duration, opts ...Option,
) *Versioned[K, V] {
	return &Versioned[K, V]{declared[K, V]{name, keys, values}, history, optionsOf(opts)}
}

// History is how far back versions are kept.
func (s *Versioned[K, V]) History() time.Duration { return s.history }

// Layout implements Declaration.
func (s *Versioned[K, V]) Layout() Layout {
	return &versionedLayout{history: s.history.Milliseconds()}
}

// TopicConfig is for a topic that is compacted a day after the history.
func (s *Versioned[K, V]) TopicConfig() map[string]string { return versions(s.history) }

// Validate refuses a negative history, fractions of a millisecond, and a TTL.
func (s *Versioned[K, V]) Validate() error {
	if s.options.hasTTL {
		return fmt.Errorf("store: %s: a versioned store has a history, not a TTL: its latest versions never expire", s.name)
	}
	return wholeMilliseconds(s.name, "history", s.history, 0)
}

// View opens the store of the task that src stands for. See KeyValue.View.
func (s *Versioned[K, V]) View(src Source) (*VersionedView[K, V], error) {
	v, err := s.open(src)
	if err != nil {
		return nil, err
	}
	layout, ok := v.layers.layout.(*versionedLayout)
	if !ok {
		return nil, errOtherKind(v.layers)
	}
	return &VersionedView[K, V]{v, layout}, nil
}

// Version is a value and when it is valid: in [From, To), in ms.
type Version[V any] struct {
	Value    V
	From, To int64 // To is NoEnd if nothing follows
}

// VersionedView reads and writes a versioned store by its types. It belongs to
// the goroutine of the task.
type VersionedView[K, V any] struct {
	view[K, V]
	layout *versionedLayout
}

// Time is the store's own time: the highest time from which a version put was
// valid, -1 before the first. It survives restarts, and is restored.
func (v *VersionedView[K, V]) Time() (int64, error) {
	c, err := v.layers.now()
	if err != nil {
		return 0, err
	}
	return c.time, nil
}

// Put makes value the version of k that is valid from from until the next one,
// and returns where that is; NoEnd says that it is the latest. It replaces a
// version of the same time. If from lies before the history, nothing is stored.
// A nil value is a tombstone: k has no value from then on.
func (v *VersionedView[K, V]) Put(k K, value V, from int64) (to int64, stored bool, err error) {
	return v.PutRecord(k, value, from, nil)
}

// PutRecord is Put with headers for the changelog.
func (v *VersionedView[K, V]) PutRecord(k K, value V, from int64, headers []Header) (to int64, stored bool, err error) {
	if v.isNil(value) {
		v.value = append(v.value[:0], tombstoneTag)
	} else {
		encoded, err := v.values.Append(append(v.value[:0], valueTag), value)
		if err != nil {
			return 0, false, v.failed("encode value", err)
		}
		v.value = encoded
	}
	return v.put(k, from, headers)
}

// put writes the version whose row is in v.value.
func (v *VersionedView[K, V]) put(k K, from int64, headers []Header) (to int64, stored bool, err error) {
	if err := v.encodeKey(k); err != nil {
		return 0, false, err
	}
	if from < 0 {
		return 0, false, v.failed("version", fmt.Errorf("%w: %d", ErrInvalidTime, from))
	}
	return v.layout.put(v.layers, v.key, v.value, from, headers)
}

// DeleteRecord puts a tombstone: k has no value from from until the next version.
// It returns what Put does.
func (v *VersionedView[K, V]) DeleteRecord(k K, from int64, headers []Header) (to int64, stored bool, err error) {
	v.value = append(v.value[:0], tombstoneTag)
	return v.put(k, from, headers)
}

// Delete puts a tombstone and returns the version that was valid at that time. If
// from lies before the history, nothing happens and nothing is found.
func (v *VersionedView[K, V]) Delete(k K, from int64) (old Version[V], found bool, err error) {
	now, err := v.Time()
	if err != nil || from < now-v.layout.history {
		return old, false, err
	}
	if old, found, err = v.GetAsOf(k, from); err != nil {
		return old, false, err
	}
	_, _, err = v.DeleteRecord(k, from, nil)
	return old, found, err
}

// Get returns the latest version of k; ok is false if there is none or if it is a
// tombstone.
func (v *VersionedView[K, V]) Get(k K) (version Version[V], ok bool, err error) {
	if err := v.encodeKey(k); err != nil {
		return version, false, err
	}
	p, ok, err := v.layout.first(v.layers, v.key, 0, always, true)
	if err != nil || !ok {
		return version, false, err
	}
	return v.version(p, NoEnd)
}

// GetAsOf returns the version of k that is valid at the time; ok is false if
// there is none, or if the time lies before the history. But the latest version
// is found at any time since it is valid.
func (v *VersionedView[K, V]) GetAsOf(k K, at int64) (version Version[V], ok bool, err error) {
	if err := v.encodeKey(k); err != nil {
		return version, false, err
	}
	now, err := v.Time()
	if err != nil {
		return version, false, err
	}
	to, err := v.layout.next(v.layers, v.key, max(at, -1))
	if err != nil || to != NoEnd && at < now-v.layout.history {
		return version, false, err
	}
	p, ok, err := v.layout.first(v.layers, v.key, 0, at, true)
	if err != nil || !ok {
		return version, false, err
	}
	return v.version(p, to)
}

// version decodes a row; it is not ok if it is a tombstone.
func (v *VersionedView[K, V]) version(p Pair, to int64) (version Version[V], ok bool, err error) {
	if isTombstone(p.Value) {
		return version, false, nil
	}
	version.From, version.To = versionFrom(p.Key), to
	version.Value, err = v.decodeValue(p.Value[1:])
	return version, err == nil, err
}

// History calls fn for the versions of k that are valid at any time of [from, to],
// both included, by ascending time. Times before the history find the latest
// version only. fn sees the versions as they are when it is first called.
func (v *VersionedView[K, V]) History(k K, from, to int64, fn func(Version[V]) bool) error {
	found, err := v.between(k, from, to)
	if err != nil {
		return err
	}
	slices.Reverse(found)
	each(found, fn)
	return nil
}

// ReverseHistory is History by descending time.
func (v *VersionedView[K, V]) ReverseHistory(k K, from, to int64, fn func(Version[V]) bool) error {
	found, err := v.between(k, from, to)
	each(found, fn)
	return err
}

func each[V any](versions []Version[V], fn func(Version[V]) bool) {
	for _, version := range versions {
		if !fn(version) {
			return
		}
	}
}

// between returns the versions that are valid in [from, to], the latest first.
func (v *VersionedView[K, V]) between(k K, from, to int64) (found []Version[V], err error) {
	if err := v.encodeKey(k); err != nil || to < from {
		return nil, err
	}
	now, err := v.Time()
	if err != nil {
		return nil, err
	}
	end := int64(NoEnd) // of the version that is reached
	oldest := now - v.layout.history
	err = v.layers.scan(span(v.key, 0, always, true), false, func(p Pair) (bool, error) {
		if !isVersion(p.Key, v.key) {
			return true, nil
		}
		if end <= from || end != NoEnd && end <= oldest {
			return false, nil
		}
		begin := versionFrom(p.Key)
		seen := begin <= to && (end == NoEnd || to >= oldest)
		if seen {
			version, ok, err := v.version(p, end)
			if err != nil {
				return false, err
			}
			if ok {
				found = append(found, version)
			}
		}
		end = begin
		return true, nil
	})
	return found, err
}
