package store

import (
	"fmt"
	"time"

	"github.com/millrace-streams/millrace/serde"
)

// Windowed is a key in a window or in a session, with times in ms. A window is
// [Start, End); a session is [Start, End], from its first record to its last.
type Windowed[K any] struct {
	Key        K
	Start, End int64
}

// Row is a row of a window or session store.
type Row[K, V any] struct {
	Windowed[K]
	Value     V
	Timestamp int64 // ms
}

// TimeWindowed is the serde of keys in windows of one size, for topics: the key
// ‖ 8 bytes of the start, as Java's TimeWindowedSerializer writes. The end is
// not written; Decode makes it of the size. It is a serde.PartitionKeyer.
func TimeWindowed[K any](keys serde.Serde[K], size time.Duration) serde.Serde[Windowed[K]] {
	return timeWindowed[K]{keys, size.Milliseconds()}
}

type timeWindowed[K any] struct {
	keys serde.Serde[K]
	size int64
}

func (s timeWindowed[K]) Append(dst []byte, w Windowed[K]) ([]byte, error) {
	b, err := s.keys.Append(dst, w.Key)
	if err != nil {
		return nil, err
	}
	return appendTime(b, w.Start), nil
}

func (s timeWindowed[K]) Decode(data []byte) (w Windowed[K], err error) {
	at := len(data) - 8
	if at < 0 {
		return w, shortKey("windowed key", data)
	}
	if w.Key, err = s.keys.Decode(data[:at]); err != nil {
		return w, err
	}
	w.Start = timeAt(data[at:])
	w.End = endOf(w.Start, s.size)
	return w, nil
}

// PartitionKey implements serde.PartitionKeyer.
func (s timeWindowed[K]) PartitionKey(key []byte) []byte { return key[:max(0, len(key)-8)] }

// SessionWindowed is the serde of keys in sessions, for topics: the key ‖ 8 bytes
// of the end ‖ 8 bytes of the start, as Java's SessionWindowedSerializer writes.
// It is a serde.PartitionKeyer.
func SessionWindowed[K any](keys serde.Serde[K]) serde.Serde[Windowed[K]] {
	return sessionWindowed[K]{keys}
}

type sessionWindowed[K any] struct{ keys serde.Serde[K] }

func (s sessionWindowed[K]) Append(dst []byte, w Windowed[K]) ([]byte, error) {
	b, err := s.keys.Append(dst, w.Key)
	if err != nil {
		return nil, err
	}
	return appendTime(appendTime(b, w.End), w.Start), nil
}

func (s sessionWindowed[K]) Decode(data []byte) (w Windowed[K], err error) {
	at := len(data) - 16
	if at < 0 {
		return w, shortKey("session key", data)
	}
	if w.Key, err = s.keys.Decode(data[:at]); err != nil {
		return w, err
	}
	w.End, w.Start = timeAt(data[at:]), timeAt(data[at+8:])
	return w, nil
}

// PartitionKey implements serde.PartitionKeyer.
func (s sessionWindowed[K]) PartitionKey(key []byte) []byte { return key[:max(0, len(key)-16)] }

func shortKey(what string, data []byte) error {
	return &serde.DecodeError{Type: what, Len: len(data), Err: fmt.Errorf("%w, too short", serde.ErrLength)}
}

// endOf is the end of a window, at most the end of time.
func endOf(start, size int64) int64 {
	if end := start + size; end > start {
		return end
	}
	return NoEnd
}
