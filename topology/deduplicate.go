package topology

import (
	"time"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
)

// Deduplicate drops a record if another of its id went through whose timestamp is less than span away, before or after. The
// store holds, for each id, the timestamp of the latest record that went through; a record that is later than that by span
// or more goes through and takes its place. One that is earlier by span or more goes through too, since what went through
// at its time is no longer known.
//
// Records of one id must be in one partition: if the id does not follow from the key, use Through after SelectKey. Tombstones
// pass on. Ids leave the store some time after stream time has passed them by twice the span, so that a record that is late
// by less than the span is judged rightly: with each id that is new, a few old ones are looked at, and the store holds little
// more than the ids of the last two spans.
func Deduplicate[K, V, ID any](
	s Stream[K, V], seen *store.KeyValue[ID, int64], id func(key K, value V) ID, span time.Duration, opts ...Option,
) Stream[K, V] {
	n := s.b.child("deduplicate", options(opts), s.n)
	n.need(s.b, id != nil, "the function")
	n.copartitioned(s.b, s.n)
	if span < time.Millisecond {
		s.b.fail(n.at, n.Name, "the span is %v, it must be a millisecond or more", span)
	}
	maintain(s.b, n, seen)
	if u := s.b.stores[nameOf(seen)]; u != nil {
		u.byKey = false // they are ids
	}
	n.Bind = func(b *processor.Binding) (any, error) {
		rows, err := rowsOf(b.Task, n, seen)
		d := &deduplicator[K, V, ID]{
			rows: rows, id: id, span: span.Milliseconds(), next: processor.FanOut[K, V](b),
		}
		return processor.Emit[K, V](d.process), err
	}
	return Stream[K, V]{s.b, n}
}

// The sweep looks at sweepSize ids for each sweepEvery that are new. What is garbage is then at most a third of the store
// when as many ids come in each span of time.
const sweepEvery, sweepSize = 64, 256

type deduplicator[K, V, ID any] struct {
	rows *rows[ID, int64]
	id   func(K, V) ID
	span int64
	next processor.Emit[K, V]

	added int    // ids since the last sweep
	swept []byte // where it ended, nil to begin anew
}

func (d *deduplicator[K, V, ID]) process(r processor.Record[K, V]) error {
	if r.NullValue {
		return d.next(r)
	}
	id := d.id(r.Key, r.Value)
	seen, err := d.rows.lookUp(id)
	if err != nil {
		return d.rows.failed(err)
	}
	if seen.exists && max(r.Timestamp-seen.timestamp, seen.timestamp-r.Timestamp) < d.span {
		return nil
	}
	if !seen.exists || r.Timestamp > seen.timestamp {
		if err := d.rows.put(id, r.Timestamp, r.Timestamp, nil, seen.exists); err != nil {
			return err
		}
		if d.added++; d.added >= sweepEvery {
			if err := d.sweep(); err != nil {
				return d.rows.failed(err)
			}
		}
	}
	return d.next(r)
}

// sweep deletes ids that can drop nothing but what is late by span or more.
func (d *deduplicator[K, V, ID]) sweep() error {
	d.added = 0
	now, looked := d.rows.task.StreamTime(), 0
	err := d.rows.store.Scan(store.Range{From: d.swept}, func(p store.Pair) (bool, error) {
		if looked++; looked > sweepSize {
			d.swept = append(d.swept[:0], p.Key...)
			return false, nil
		}
		if p.Timestamp > now-2*d.span {
			return true, nil
		}
		_, err := d.rows.store.Delete(p.Key, now, nil)
		return true, err
	})
	if looked <= sweepSize {
		d.swept = nil
	}
	return err
}
