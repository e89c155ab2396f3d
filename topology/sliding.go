package topology

import (
	"slices"

	"github.com/millrace-streams/millrace/store"
)

// slidingFound is what a record finds of the windows around it. Windows are named by their starts.
type slidingFound[A any] struct {
	starts      []int64
	left        row[A] // the newest window that ends before the record
	leftExists  bool   // there is a window that ends with the record
	right       row[A] // what the record's right window begins with, if it holds records behind the record
	rightSeen   bool   // right is decided
	rightExists bool   // the record's right window is there
	previous    int64  // the newest record before this one, -1 if there is none
	complete    bool   // all windows that the record needs are there
}

// takeSliding is the node of an aggregation in sliding windows: KIP-450, in the order in which Kafka Streams updates and
// makes windows. A record at t updates the windows that hold t. It has a left window, which ends at t, and a right window,
// which starts at t+1 and is made when there is a record in it; and it may be the first in the right window of the record
// before it.
func (a *windowAggregation[K, A]) takeSliding(r *windowRecord[K, A]) (late bool, err error) {
	if r.nullValue {
		return false, nil
	}
	a.idle.touch()
	a.seen.Advance(r.timestamp)
	closeTime := a.seen.Value() - a.grace
	if r.timestamp+a.size < closeTime {
		a.tooLate(r, r.timestamp)
		return true, nil
	}
	if r.timestamp < a.size {
		return false, a.takeEarly(r, closeTime)
	}
	found, err := a.around(r, closeTime)
	if err != nil {
		return false, err
	}
	if !found.complete {
		if err := a.makeWindows(r, closeTime, found); err != nil {
			return false, err
		}
	}
	return false, a.emitClosed(closeTime)
}

// around updates the windows that hold the record, newest first, and finds what the windows to be made need.
func (a *windowAggregation[K, A]) around(r *windowRecord[K, A], closeTime int64) (found slidingFound[A], err error) {
	found.previous = -1
	var failed error
	err = a.view.ReverseFetchRange(r.key, max(0, r.timestamp-2*a.size), r.timestamp+1, func(w store.Row[K, A]) bool {
		found.starts = append(found.starts, w.Start)
		switch end := w.Start + a.size; {
		case w.Start == r.timestamp+1:
			found.rightExists = true
		case end > r.timestamp:
			if failed = a.keepRight(r, &found, w); failed == nil {
				failed = a.updateSliding(r, w.Start, row[A]{w.Value, w.Timestamp, true}, true, closeTime)
			}
		case end == r.timestamp:
			found.leftExists = true
			found.complete = w.Timestamp >= r.timestamp
			found.previous = w.Timestamp
			failed = a.updateSliding(r, w.Start, row[A]{w.Value, w.Timestamp, true}, true, closeTime)
			return failed == nil && !found.complete
		default:
			found.left, found.previous = row[A]{w.Value, w.Timestamp, true}, w.Timestamp
			return false
		}
		return failed == nil
	})
	if failed == nil {
		failed = a.failed(err)
	}
	return found, failed
}

// keepRight keeps what the newest window that holds the record has beyond it, read once more since the update that follows
// may change a value in place.
func (a *windowAggregation[K, A]) keepRight(r *windowRecord[K, A], found *slidingFound[A], w store.Row[K, A]) (err error) {
	if !found.rightSeen && !found.rightExists && w.Timestamp > r.timestamp {
		found.right, err = a.find(r.key, w.Start)
	}
	found.rightSeen = true
	return a.failed(err)
}

// makeWindows makes the right window of the record before, the record's left window, and its right window.
func (a *windowAggregation[K, A]) makeWindows(r *windowRecord[K, A], closeTime int64, found slidingFound[A]) error {
	if found.previous >= 0 {
		start := found.previous + 1
		if !slices.Contains(found.starts, start) && start+a.size >= r.timestamp {
			if err := a.updateSliding(r, start, row[A]{}, false, closeTime); err != nil {
				return err
			}
		}
	}
	if !found.leftExists {
		start := r.timestamp - a.size
		if found.previous < start {
			found.left = row[A]{}
		}
		found.left.timestamp = r.timestamp
		made := found.previous >= 0 && start == found.previous+1 // both windows are one, which is made twice, from nothing
		if err := a.updateSliding(r, start, found.left, made, closeTime); err != nil {
			return err
		}
	}
	return a.makeRight(r, found.rightExists, found.right)
}

// makeRight makes the right window of the record, of what is known to lie behind the record.
func (a *windowAggregation[K, A]) makeRight(r *windowRecord[K, A], exists bool, right row[A]) error {
	if exists || !right.exists || right.timestamp <= r.timestamp {
		return nil
	}
	return a.put(r.key, r.timestamp+1, right.value, right.timestamp, r.headers, row[A]{})
}

// updateSliding adds the record to a window of the given content, unless it is closed. stored says that the content is the
// window's row, not what a new window begins with.
func (a *windowAggregation[K, A]) updateSliding(r *windowRecord[K, A], start int64, was row[A], stored bool, closeTime int64) error {
	if start+a.size < closeTime {
		a.tooLate(r, start)
		return nil
	}
	old, err := a.old(r.key, start, stored)
	if err != nil {
		return a.failed(err)
	}
	ts := r.timestamp
	if was.exists {
		ts = max(ts, was.timestamp)
	}
	return a.put(r.key, start, r.update(was.value, was.exists), ts, r.headers, old)
}

// takeEarly handles a record whose left window would start below 0. All such records share the window that starts at 0, and
// have right windows of their own.
func (a *windowAggregation[K, A]) takeEarly(r *windowRecord[K, A], closeTime int64) error {
	found := slidingFound[A]{previous: -1}
	var first row[A]
	var failed error
	err := a.view.FetchRange(r.key, 0, r.timestamp+1, func(w store.Row[K, A]) bool {
		found.starts = append(found.starts, w.Start)
		switch {
		case w.Start == 0:
			first = row[A]{w.Value, w.Timestamp, true}
			if w.Timestamp < r.timestamp {
				found.previous = w.Timestamp
			}
		case w.Start <= r.timestamp:
			if found.right, failed = a.find(r.key, w.Start); failed != nil {
				failed = a.failed(failed)
				return false
			}
			failed = a.updateSliding(r, w.Start, row[A]{w.Value, w.Timestamp, true}, true, closeTime)
		default:
			found.rightExists = true
		}
		return failed == nil
	})
	if failed == nil {
		failed = a.failed(err)
	}
	if failed != nil {
		return failed
	}
	return a.makeEarly(r, closeTime, found, first)
}

// makeEarly makes the right windows of the record and of the one before, and then updates the window that starts at 0. If
// that is the only window that holds the record, what lies behind the record is what it holds: had there been an older
// record too, that one's right window would be there.
func (a *windowAggregation[K, A]) makeEarly(r *windowRecord[K, A], closeTime int64, found slidingFound[A], first row[A]) (err error) {
	if !found.right.exists && first.exists && first.timestamp > r.timestamp {
		if found.right, err = a.find(r.key, 0); err != nil {
			return a.failed(err)
		}
	}
	if err := a.makeRight(r, found.rightExists, found.right); err != nil {
		return err
	}
	if found.previous >= 0 && !slices.Contains(found.starts, found.previous+1) {
		if err := a.updateSliding(r, found.previous+1, row[A]{}, false, closeTime); err != nil {
			return err
		}
	}
	return a.updateSliding(r, 0, first, first.exists, closeTime)
}
