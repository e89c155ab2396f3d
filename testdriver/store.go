package testdriver

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/millrace-streams/millrace/changelog"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/memory"
)

// KeyValueStore looks into a store of the topology over all of its partitions. It shows what is committed.
type KeyValueStore[K, V any] struct {
	d      *Driver
	decl   *store.KeyValue[K, V]
	topic  string // changelog
	keys   serde.Serde[K]
	values serde.Serde[V]
}

// Store returns a store of the topology.
func Store[K, V any](d *Driver, decl *store.KeyValue[K, V]) *KeyValueStore[K, V] {
	d.helper()
	s := &KeyValueStore[K, V]{d: d, decl: decl, topic: changelog.Topic(d.cfg.app, decl.Name()), keys: decl.KeySerde(), values: decl.ValueSerde()}
	if d.cluster.Partitions(s.topic) == 0 {
		d.fail(fmt.Errorf("%w: %q", ErrUnknownStore, decl.Name()))
	}
	return s
}

// Get returns the value of a key, false if there is none.
func (s *KeyValueStore[K, V]) Get(key K) (V, bool) {
	s.d.helper()
	value, _, ok := s.GetWithTime(key)
	return value, ok
}

// GetWithTime is Get with the value's timestamp in milliseconds since 1970.
func (s *KeyValueStore[K, V]) GetWithTime(key K) (value V, timestamp int64, ok bool) {
	s.d.helper()
	k, err := s.keys.Append([]byte{}, key)
	s.check("encode key", err)
	for _, b := range s.backends() {
		data, ts, found, err := b.Get(nil, k)
		s.check("get", err)
		if found {
			value, err := s.values.Decode(data)
			s.check("decode value", err)
			return value, ts, true
		}
	}
	return value, 0, false
}

// All returns the keys and values in the order of the encoded keys.
func (s *KeyValueStore[K, V]) All() []Pair[K, V] {
	s.d.helper()
	var raw []store.Pair
	for _, b := range s.backends() {
		pairs, err := b.Scan(nil, store.Range{}, int(^uint(0)>>1))
		s.check("scan", err)
		raw = append(raw, pairs...)
	}
	slices.SortStableFunc(raw, func(a, b store.Pair) int { return bytes.Compare(a.Key, b.Key) })
	var all []Pair[K, V]
	for _, p := range raw {
		key, err := s.keys.Decode(p.Key)
		s.check("decode key", err)
		value, err := s.values.Decode(p.Value)
		s.check("decode value", err)
		all = append(all, Pair[K, V]{key, value})
	}
	return all
}

// Put preloads a value, with the clock's time, into the partition of its key. It is written to the changelog, from which
// the store is restored when the driver starts: with the first input or Advance. Later it is refused.
func (s *KeyValueStore[K, V]) Put(key K, value V) {
	s.d.helper()
	s.PutAt(key, value, s.d.now.UnixMilli())
}

// PutAt is Put with a timestamp in milliseconds since 1970.
func (s *KeyValueStore[K, V]) PutAt(key K, value V, timestamp int64) {
	s.d.helper()
	if s.d.started {
		s.d.fail(fmt.Errorf("%w: store %q", ErrStarted, s.decl.Name()))
		return
	}
	scratch := scratch{store.LayersOf(s.decl, memory.New())}
	view, err := s.decl.View(scratch)
	s.check("open", err)
	s.check("put", view.PutAt(key, value, timestamp))
	for _, r := range changelog.AppendRecords(nil, scratch.layers.Prepare()) {
		s.d.append(s.topic, s.d.choose(s.topic, r.Key), r)
	}
}

// scratch is where a preloaded value is encoded.
type scratch struct{ layers *store.Layered }

func (s scratch) Layered(string) (*store.Layered, error) { return s.layers, nil }
func (s scratch) RecordTime() int64                      { return 0 }

// backends returns the store's backends, in the order of their tasks. While the process does not run they are rebuilt from
// the changelog.
func (s *KeyValueStore[K, V]) backends() []store.Backend {
	var found []store.Backend
	if s.d.worker != nil {
		for _, b := range s.d.opener.Opened(store.LocalName(s.decl)) {
			found = append(found, b)
		}
		return found
	}
	for p := range s.d.cluster.Partitions(s.topic) {
		records := s.d.cluster.ReadAll(processor.TopicPartition{Topic: s.topic, Partition: p})
		layers := store.LayersOf(s.decl, memory.New())
		for _, r := range records {
			s.check("restore", layers.RestorePut(r.Key, r.Value, r.Timestamp))
		}
		layers.Restored(int64(len(records)))
		if batch, ok := layers.BeginFlush(); ok {
			s.check("restore", layers.Backend().Apply(batch))
		}
		found = append(found, layers.Backend())
	}
	return found
}

func (s *KeyValueStore[K, V]) check(what string, err error) {
	if err != nil {
		s.d.helper()
		s.d.fail(fmt.Errorf("testdriver: store %q: %s: %w", s.decl.Name(), what, err))
	}
}
