package changelog

import (
	"fmt"
	"math"

	"github.com/millrace-streams/millrace/store"
)

// Forever is the end of a restore that never finishes: a standby.
const Forever = math.MaxInt64

// Restorer brings one store of one partition up to an offset of its changelog.
//
//	r := NewRestorer(layered, end, from)
//	for !r.Done() {
//		records, next := fetch(r.Position())
//		r.Add(records, next)
//		if layered.UnflushedBytes() > enough { r.Flush() }
//	}
//
// Large batches are what makes bulk loading fast. What is staged when the restore
// is done is left to the store's usual flushing.
//
// It goes by positions, not by counts: a compacted log has holes, and its tail
// may be control records or an aborted transaction, which no fetch delivers.
// Records must be committed ones, in ascending order of offsets.
type Restorer struct {
	layered  *store.Layered
	position int64
	end      int64
	restored int64
}

// NewRestorer returns a restore of l that reads from the offset from up to end,
// exclusive. The caller takes from from l.Offset, or else from the oldest
// offset of the log: never from a policy for inputs. If from is at the end
// already, the restore is done and l holds that offset.
func NewRestorer(l *store.Layered, end, from int64) *Restorer {
	r := &Restorer{layered: l, position: from, end: end}
	l.Restored(from)
	return r
}

// Position is the offset to read next.
func (r *Restorer) Position() int64 { return r.position }

// End is the offset, exclusive, at which the restore is done.
func (r *Restorer) End() int64 { return r.end }

// Done tells whether the position has reached the end.
func (r *Restorer) Done() bool { return r.position >= r.end }

// Restored is the number of records applied.
func (r *Restorer) Restored() int64 { return r.restored }

// Add applies what a fetch at Position returned: records in order of offsets,
// and the offset behind all that the fetch covered, be it records, control
// records, aborted ones or holes. Records before the position or from the end
// on are left out. Bytes are copied. After an error, a NullKeyError,
// store.ErrKeyTooLarge, store.ErrForeignRecord or the backend's, the position has
// not moved.
func (r *Restorer) Add(records []Record, next int64) error {
	applied := int64(0)
	for i := range records {
		rec := &records[i]
		if rec.Offset < r.position {
			continue
		}
		if rec.Offset >= r.end {
			break
		}
		if err := r.put(rec); err != nil {
			return err
		}
		applied++
	}
	if err := r.layered.ExpireRestored(); err != nil {
		return fmt.Errorf("changelog: store %s: %w", r.layered.Name(), err)
	}
	r.restored += applied
	r.position = max(r.position, min(next, r.end))
	r.layered.Restored(r.position)
	return nil
}

func (r *Restorer) put(rec *Record) error {
	if rec.Key == nil {
		return &NullKeyError{Store: r.layered.Name(), Offset: rec.Offset}
	}
	if err := r.layered.RestorePut(rec.Key, rec.Value, rec.Timestamp); err != nil {
		return fmt.Errorf("changelog: offset %d: %w", rec.Offset, err)
	}
	return nil
}

// Flush writes what is staged to the backend. After an error it stays staged.
func (r *Restorer) Flush() error {
	batch, ok := r.layered.BeginFlush()
	if !ok {
		return nil
	}
	err := r.layered.Backend().Apply(batch)
	r.layered.EndFlush(err)
	return err
}
