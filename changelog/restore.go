package changelog

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/millrace-streams/millrace/store"
)

// Forever is the end of a restore that never finishes: a standby.
const Forever = math.MaxInt64

// Restorer brings one store of one partition up to an offset of its changelog.
//
//	r := NewRestorer(layered, end, from, opener.Durable())
//	for !r.Done() {
//		records, next := fetch(r.Position())
//		r.Add(records, next)
//		if r.StagedBytes() > enough { r.Flush() }
//	}
//	r.Settle()
//
// The records of a plain key-value store are staged beside the layers and loaded into a durable backend in large batches,
// sorted, the last one of each key; into others they go at once. Those of other kinds go through the layers, which
// know what they mean.
//
// It goes by positions, not by counts: a compacted log has holes, and its tail
// may be control records or an aborted transaction, which no fetch delivers.
// Records must be committed ones, in ascending order of offsets.
type Restorer struct {
	layered  *store.Layered
	stages   bool // the backend is durable
	bulk     bulk
	position int64
	end      int64
	restored int64
}

// NewRestorer returns a restore of l that reads from the offset from up to end,
// exclusive. The caller takes from from l.Offset, or else from the oldest
// offset of the log: never from a policy for inputs. If from is at the end
// already, the restore is done and l holds that offset.
func NewRestorer(l *store.Layered, end, from int64, durable bool) *Restorer {
	r := &Restorer{layered: l, stages: durable, position: from, end: end}
	l.Restored(from)
	return r
}

// Until goes on from the position to another end, and counts records anew.
func (r *Restorer) Until(end int64) { r.end, r.restored = end, 0 }

// Position is the offset to read next.
func (r *Restorer) Position() int64 { return r.position }

// End is the offset, exclusive, at which the restore is done.
func (r *Restorer) End() int64 { return r.end }

// Done tells whether the position has reached the end. The store can be used after Settle.
func (r *Restorer) Done() bool { return r.position >= r.end }

// Restored is the number of records applied.
func (r *Restorer) Restored() int64 { return r.restored }

// StagedBytes is the memory of what the backend does not hold yet.
func (r *Restorer) StagedBytes() int {
	if r.bulk.empty() {
		return r.layered.UnflushedBytes()
	}
	return r.layered.UnflushedBytes() + r.bulk.bytes()
}

// Settled reports whether the layers have all records, down to the position.
func (r *Restorer) Settled() bool { return r.bulk.empty() }

// Add applies what a fetch at Position returned: records in order of offsets,
// and the offset behind all that the fetch covered, be it records, control
// records, aborted ones or holes. Records before the position or from the end
// on are left out. Bytes are copied. After an error, a NullKeyError,
// store.ErrKeyTooLarge, store.ErrForeignRecord or the backend's, the position has
// not moved.
func (r *Restorer) Add(records []Record, next int64) error {
	records = r.within(records)
	next = max(r.position, min(next, r.end))
	if err := r.apply(records, next); err != nil {
		return err
	}
	r.restored += int64(len(records))
	r.position = next
	return nil
}

// within returns the records from the position up to the end.
func (r *Restorer) within(records []Record) []Record {
	from, _ := slices.BinarySearchFunc(records, r.position, byOffset)
	to, _ := slices.BinarySearchFunc(records, r.end, byOffset)
	return records[from:max(from, to)]
}

func byOffset(rec Record, offset int64) int { return cmp.Compare(rec.Offset, offset) }

func (r *Restorer) apply(records []Record, next int64) error {
	if !r.layered.Loads() {
		return r.put(records, next)
	}
	for i := range records {
		rec := &records[i]
		if err := r.check(rec, r.layered.Loadable(rec.Key)); err != nil {
			return err
		}
	}
	if !r.stages {
		return r.load(rows(records), next)
	}
	for i := range records {
		r.bulk.add(&records[i])
	}
	if r.bulk.empty() {
		r.layered.Restored(next)
	}
	return nil
}

// check makes an error of a record one that names it.
func (r *Restorer) check(rec *Record, err error) error {
	if rec.Key == nil {
		return &NullKeyError{Store: r.layered.Name(), Offset: rec.Offset}
	}
	if err != nil {
		return fmt.Errorf("changelog: offset %d: %w", rec.Offset, err)
	}
	return nil
}

// put brings records in through the layers.
func (r *Restorer) put(records []Record, next int64) error {
	for i := range records {
		rec := &records[i]
		var err error
		if rec.Key != nil {
			err = r.layered.RestorePut(rec.Key, rec.Value, rec.Timestamp)
		}
		if err := r.check(rec, err); err != nil {
			return err
		}
	}
	if err := r.layered.ExpireRestored(); err != nil {
		return fmt.Errorf("changelog: store %s: %w", r.layered.Name(), err)
	}
	r.layered.Restored(next)
	return nil
}

func rows(records []Record) iter.Seq[store.Pair] {
	return func(yield func(store.Pair) bool) {
		for i := range records {
			rec := &records[i]
			if !yield(store.Pair{Key: rec.Key, Value: rec.Value, Timestamp: rec.Timestamp}) {
				return
			}
		}
	}
}

func (r *Restorer) load(rows iter.Seq[store.Pair], offset int64) error {
	if err := r.layered.Load(rows, offset); err != nil {
		return fmt.Errorf("changelog: store %s: %w", r.layered.Name(), err)
	}
	return nil
}

// Flush brings what is staged into the backend. After an error it stays staged.
func (r *Restorer) Flush() error {
	if !r.bulk.empty() {
		if err := r.load(r.bulk.rows(), r.position); err != nil {
			return err
		}
		r.bulk = bulk{}
		return nil
	}
	batch, ok := r.layered.BeginFlush()
	if !ok {
		return nil
	}
	err := r.layered.Backend().Apply(batch)
	r.layered.EndFlush(err)
	return err
}

// Settle brings what is staged into the store's layers, from where its usual flushing takes it. It is for little: Flush is
// faster for much.
func (r *Restorer) Settle() error {
	for row := range r.bulk.rows() {
		if err := r.layered.RestorePut(row.Key, row.Value, row.Timestamp); err != nil {
			return fmt.Errorf("changelog: %w", err)
		}
	}
	r.bulk = bulk{}
	r.layered.Restored(r.position)
	return nil
}
