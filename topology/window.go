package topology

import (
	"errors"
	"fmt"
	"time"

	"github.com/millrace-streams/millrace/store"
)

// Windowing says into which windows a record falls: TimeWindows or SlidingWindows.
type Windowing interface {
	// Store returns the settings that a window store needs for these windows.
	Store() store.WindowOptions

	check() error
	grace() time.Duration
	least() time.Duration // the shortest retention, as in Kafka Streams
}

// TimeWindows are windows of one size that begin at the multiples of their advance: [0, size), [advance, advance+size) and
// so on, in event time since 1970. They come from Tumbling and Hopping.
//
// A window is closed once stream time has reached its end plus the grace. A record is used for those of its windows that are
// open, and is late for the others. Stream time is here the highest timestamp that the aggregation has seen in its task; it
// survives restarts.
type TimeWindows struct{ size, advance, after time.Duration }

// Tumbling returns windows that follow each other without a gap or an overlap, without grace.
func Tumbling(size time.Duration) TimeWindows { return TimeWindows{size: size, advance: size} }

// Hopping returns windows that begin each advance and so overlap, if it is less than their size. They have no grace.
func Hopping(size, advance time.Duration) TimeWindows {
	return TimeWindows{size: size, advance: advance}
}

// Grace returns the windows with a time that they stay open beyond their end, for records out of order.
func (w TimeWindows) Grace(d time.Duration) TimeWindows {
	w.after = d
	return w
}

// Store implements Windowing: the size of the windows, and rows that are kept until their window is closed. A longer
// retention may be set.
func (w TimeWindows) Store() store.WindowOptions {
	return store.WindowOptions{Size: w.size, Retention: w.size + w.after}
}

func (w TimeWindows) grace() time.Duration { return w.after }
func (w TimeWindows) least() time.Duration { return w.size + w.after }

func (w TimeWindows) check() error {
	switch {
	case w.size < time.Millisecond:
		return fmt.Errorf("the window's size is %v, it must be a millisecond or more", w.size)
	case w.advance < time.Millisecond || w.advance > w.size:
		return fmt.Errorf("the windows advance by %v, it must be a millisecond or more and at most their size, %v", w.advance, w.size)
	}
	return checkGrace(w.after)
}

// SlidingWindows are windows of which each record begins and ends some, so that any two records of a key that are no further
// apart than the difference meet in one. They are Kafka Streams' SlidingWindows (KIP-450): a window includes both its start
// and its end, which is the start plus the difference, and is closed once stream time has passed its end plus the grace.
// Records with timestamps below the difference share the window that begins at 0.
type SlidingWindows struct{ difference, after time.Duration }

// Sliding returns sliding windows with a grace, which may be 0.
func Sliding(difference, grace time.Duration) SlidingWindows {
	return SlidingWindows{difference: difference, after: grace}
}

// Store implements Windowing. Rows are kept for twice the difference plus the grace, since an older window may be needed to
// make a new one, and for a millisecond more: the oldest record that is still used may need the very oldest window, which
// Kafka Streams' default just fails to keep.
func (w SlidingWindows) Store() store.WindowOptions {
	return store.WindowOptions{Size: w.difference, Retention: 2*w.difference + w.after + time.Millisecond}
}

func (w SlidingWindows) grace() time.Duration { return w.after }
func (w SlidingWindows) least() time.Duration { return 2*w.difference + w.after }

func (w SlidingWindows) check() error {
	if w.difference < time.Millisecond {
		return fmt.Errorf("the difference is %v, it must be a millisecond or more", w.difference)
	}
	return checkGrace(w.after)
}

// SessionWindows put records of a key together that are no further apart than the gap. A session reaches from its first
// record's timestamp to its last one's, both included. It is closed once stream time has passed its end by more than the
// gap and the grace.
type SessionWindows struct{ gap, after time.Duration }

// Session returns session windows with a grace, which may be 0.
func Session(gap, grace time.Duration) SessionWindows { return SessionWindows{gap: gap, after: grace} }

// Store returns the settings that a session store needs: sessions are kept until they are closed. A longer retention may be
// set. It is a millisecond more than Kafka Streams' default, with which a session that ends as its grace does is forwarded
// but not kept.
func (w SessionWindows) Store() store.SessionOptions {
	return store.SessionOptions{Retention: w.gap + w.after + time.Millisecond}
}

func (w SessionWindows) least() time.Duration { return w.gap + w.after }

func (w SessionWindows) check() error {
	if w.gap < 0 {
		return fmt.Errorf("the session gap is %v, it must not be negative", w.gap)
	}
	return checkGrace(w.after)
}

func checkGrace(d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("the grace is %v, it must not be negative", d)
	}
	return nil
}

// checkWindowStore compares what a window store is declared with and what it needs.
func checkWindowStore(size, retention time.Duration, duplicates bool, need store.WindowOptions) error {
	var errs []error
	if size != need.Size {
		errs = append(errs, fmt.Errorf("its window size is %v, the windows' is %v", size, need.Size))
	}
	errs = append(errs, checkRetention(retention, need.Retention))
	if duplicates != need.RetainDuplicates {
		errs = append(errs, fmt.Errorf("it must be declared with RetainDuplicates %v", need.RetainDuplicates))
	}
	return errors.Join(errs...)
}

func checkRetention(retention, need time.Duration) error {
	if retention < need {
		return fmt.Errorf("its retention is %v, %v is needed", retention, need)
	}
	return nil
}

// retention returns what a store must retain at the least. Without EmitOnClose the default may be undercut by as much as Kafka
// Streams' does; results that are to come must not get lost.
func (c closing) retention(least, standard time.Duration) time.Duration {
	if c.onClose {
		return standard
	}
	return least
}
