package topology

import (
	"errors"
	"fmt"
	"time"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
)

// JoinWindows say how far apart two records may be to be joined: a right one may be as much older than the left one as
// before says, and as much newer as after says, both included. They come from Within and WithinBeforeAfter.
type JoinWindows struct{ before, after, late time.Duration }

// Within returns windows in which records are joined that are no further apart than d, without grace.
func Within(d time.Duration) JoinWindows { return JoinWindows{before: d, after: d} }

// WithinBeforeAfter returns windows in which a left record is joined with the right ones that are at most before older and
// at most after newer, without grace. Either may be negative, if their sum is not: the right record then is always newer, or
// always older.
func WithinBeforeAfter(before, after time.Duration) JoinWindows {
	return JoinWindows{before: before, after: after}
}

// Grace returns the windows with a time that a record waits for others out of order, beyond what the windows ask for.
func (w JoinWindows) Grace(d time.Duration) JoinWindows {
	w.late = d
	return w
}

// Store returns the settings that the window store of either side needs. A longer retention may be set; then records that
// come later than the grace allows still meet the older ones that are kept.
func (w JoinWindows) Store() store.WindowOptions {
	size := w.before + w.after
	return store.WindowOptions{
		Size: max(size, time.Millisecond), Retention: max(size+w.late, time.Millisecond), RetainDuplicates: true,
	}
}

func (w JoinWindows) check() error {
	var errs []error
	if w.before+w.after < 0 {
		errs = append(errs, fmt.Errorf("the join window reaches from %v before to %v after: that is nothing", w.before, w.after))
	}
	return errors.Join(append(errs, checkGrace(w.late))...)
}

// JoinStreams joins each record with those of the other stream that have its key and lie within the windows. Each pair is
// joined once, when its later record is processed; the result has the later timestamp, the key, and the headers of that
// record. Each stream keeps its records in a store. Records without a key are skipped, those without a value dropped. The
// streams' topics must have equal partition counts, and be partitioned alike.
//
// A record that is too late for its store is still joined with what the other has; it is told to processor.Options.Late.
// For Kafka Streams' names of the stores, with StreamJoined.withStoreName(name), see LeftJoinStreams.
func JoinStreams[K, A, B, R any](
	left Stream[K, A], right Stream[K, B], w JoinWindows, join func(key K, left A, right B) R,
	leftStore *store.Window[K, A], rightStore *store.Window[K, B], opts ...Option,
) Stream[K, R] {
	j := streamJoin[K, A, B, R]{
		windows: w, leftStore: leftStore, rightStore: rightStore,
		join: func(k K, a A, _ bool, b B, _ bool) R { return join(k, a, b) },
	}
	return j.declare(left, right, join != nil, options(opts))
}

// LeftJoinStreams is JoinStreams that also gives each left record which has met no right one: exists is false then, and
// right the zero value. Such a result comes with the first record that moves stream time past the record's window and
// grace, or at once if it is past already; it has the record's timestamp, and no headers. Stream time is the highest
// timestamp that the join has seen in its task, and survives restarts. A left record without a key is given at once.
//
// The outer store keeps what has met no other so far. Kafka Streams' names of the stores are, for the left, the right and
// the outer one: <name>-this-join-store, <name>-other-join-store (JoinStreams); <name>-this-join-store,
// <name>-outer-other-join-store, <name>-left-shared-join-store (LeftJoinStreams); <name>-outer-this-join-store,
// <name>-outer-other-join-store, <name>-outer-shared-join-store (OuterJoinStreams).
func LeftJoinStreams[K, A, B, R any](
	left Stream[K, A], right Stream[K, B], w JoinWindows, join func(key K, left A, right B, exists bool) R,
	leftStore *store.Window[K, A], rightStore *store.Window[K, B], outer *OuterStore[K, A, B], opts ...Option,
) Stream[K, R] {
	j := streamJoin[K, A, B, R]{
		windows: w, leftStore: leftStore, rightStore: rightStore, outer: outer, keepLeft: true,
		join: func(k K, a A, _ bool, b B, exists bool) R { return join(k, a, b, exists) },
	}
	return j.declare(left, right, join != nil, options(opts))
}

// OuterJoinStreams is LeftJoinStreams that gives the records of either stream which have met none of the other. The value of
// the side that is missing is the zero value.
func OuterJoinStreams[K, A, B, R any](
	left Stream[K, A], right Stream[K, B], w JoinWindows, join func(key K, left A, hasLeft bool, right B, hasRight bool) R,
	leftStore *store.Window[K, A], rightStore *store.Window[K, B], outer *OuterStore[K, A, B], opts ...Option,
) Stream[K, R] {
	j := streamJoin[K, A, B, R]{
		windows: w, leftStore: leftStore, rightStore: rightStore, outer: outer, keepLeft: true, keepRight: true, join: join,
	}
	return j.declare(left, right, join != nil, options(opts))
}

// streamJoin is the join of two streams.
type streamJoin[K, A, B, R any] struct {
	windows             JoinWindows
	join                func(k K, a A, hasA bool, b B, hasB bool) R
	leftStore           *store.Window[K, A]
	rightStore          *store.Window[K, B]
	outer               *OuterStore[K, A, B]
	keepLeft, keepRight bool // records that meet no other are given
}

// declare adds a node for each side, and one in which they meet.
func (j streamJoin[K, A, B, R]) declare(left Stream[K, A], right Stream[K, B], ok bool, set settings) Stream[K, R] {
	b := left.b
	name, given := wholeName(set, left.n, "joinstreams")
	fromLeft := b.part(name, given, "left", left.n)
	fromRight := b.part(name, given, "right", right.n)
	n := b.whole(name, given, fromLeft, fromRight)
	n.need(b, ok, "the function")
	n.copartitioned(b, left.n)
	n.copartitioned(b, right.n)
	if right.b != b {
		b.fail(n.at, n.Name, "the joined streams belong to different builders")
	}
	if err := j.windows.check(); err != nil {
		b.fail(n.at, n.Name, "%w", err)
	}
	joinStore(b, n, fromLeft, j.leftStore, j.windows)
	joinStore(b, n, fromRight, j.rightStore, j.windows)
	if j.leftStore != nil && j.rightStore != nil {
		b.use(fromLeft, j.rightStore, false)
		b.use(fromRight, j.leftStore, false)
	}
	if j.keepLeft {
		j.outer.declare(b, n, fromLeft, fromRight)
	}
	fromLeft.Bind = func(b *processor.Binding) (any, error) { return j.bindLeft(b, n) }
	fromRight.Bind = func(b *processor.Binding) (any, error) { return j.bindRight(b, n) }
	n.Bind = passOn[K, R]
	return Stream[K, R]{b, n}
}

// joinStore connects one side with the store that it maintains.
func joinStore[K, V any](b *Builder, n, side *node, s *store.Window[K, V], w JoinWindows) {
	if s != nil {
		n.need(b, s.KeySerde() != nil, fmt.Sprintf("the key serde of store %q", s.Name()))
		n.need(b, s.ValueSerde() != nil, fmt.Sprintf("the value serde of store %q", s.Name()))
		if err := checkWindowStore(s.Size(), s.Retention(), s.RetainDuplicates(), w.Store()); err != nil {
			b.fail(n.at, n.Name, "store %q does not fit: %w", s.Name(), err)
		}
	}
	b.keep(side, s)
}

func (j streamJoin[K, A, B, R]) bindLeft(b *processor.Binding, n *node) (any, error) {
	s := joinSide[K, A, B, R]{
		left: true, keep: j.keepLeft, before: j.windows.before.Milliseconds(), after: j.windows.after.Milliseconds(),
		join: func(k K, a A, b B, exists bool) R { return j.join(k, a, true, b, exists) },
	}
	if s.keep {
		s.values = j.outer.left
	}
	return bindJoinSide(b, n, s, j, j.leftStore, j.rightStore)
}

func (j streamJoin[K, A, B, R]) bindRight(b *processor.Binding, n *node) (any, error) {
	s := joinSide[K, B, A, R]{
		keep: j.keepRight, before: j.windows.after.Milliseconds(), after: j.windows.before.Milliseconds(),
		join: func(k K, b B, a A, exists bool) R { return j.join(k, a, exists, b, true) },
	}
	if s.keep {
		s.values = j.outer.right
	}
	return bindJoinSide(b, n, s, j, j.rightStore, j.leftStore)
}

func bindJoinSide[K, A, B, R, This, Other any](
	b *processor.Binding, n *node, s joinSide[K, This, Other, R], j streamJoin[K, A, B, R], own *store.Window[K, This], other *store.Window[K, Other],
) (any, error) {
	var err error
	s.task, s.node, s.next = b.Task, b.Node.Name, processor.FanOut[K, R](b)
	s.ownTime, s.otherTime = storeTimeOf(b.Task, own.Name()), storeTimeOf(b.Task, other.Name())
	s.ownRetention, s.otherRetention = own.Retention().Milliseconds(), other.Retention().Milliseconds()
	if s.own, err = own.View(b.Task); err != nil {
		return nil, err
	}
	if s.other, err = other.View(b.Task); err != nil {
		return nil, err
	}
	if s.met, err = joinTimesOf(b.Task, n, j); err != nil {
		return nil, err
	}
	return processor.Emit[K, This](s.take), nil
}

// joinSide is the node of one side in one task.
type joinSide[K, This, Other, R any] struct {
	task          *processor.Task
	node          string
	left          bool
	keep          bool  // a record that meets no other is given
	before, after int64 // where the other side's records lie
	own           *store.WindowView[K, This]
	other         *store.WindowView[K, Other]
	values        valueEncoder[This] // of the outer store
	join          func(K, This, Other, bool) R
	next          processor.Emit[K, R]
	met           *joinTimes[K, R] // shared by both sides

	// The times of the stores: as in Kafka Streams, a record without a value moves its store's, though it is not kept.
	ownTime, otherTime           *processor.Kept
	ownRetention, otherRetention int64
}

// storeTime is the key under which both sides of a join share the time of a store.
type storeTime string

func storeTimeOf(task *processor.Task, name string) *processor.Kept {
	if k, ok := task.Shared(storeTime(name)).(*processor.Kept); ok {
		return k
	}
	k := task.Keep(name + "@time")
	task.Share(storeTime(name), k)
	return k
}

// take joins a record, and then keeps it, in Kafka Streams' order.
func (s *joinSide[K, This, Other, R]) take(r processor.Record[K, This]) error {
	s.met.seen.Advance(r.Timestamp)
	switch {
	case r.NullKey && s.keep && !r.NullValue:
		return s.alone(r)
	case r.NullKey:
		return s.task.NullKey(s.node)
	case r.NullValue:
		s.ownTime.Advance(r.Timestamp)
		return nil
	}
	if r.Timestamp == s.met.seen.Value() {
		if err := s.met.giveUnmatched(s.after, s.next); err != nil {
			return processor.Failed(s.node, processor.KindProcess, err)
		}
	}
	found, err := s.match(r)
	if err == nil && !found && s.keep {
		err = s.unmatched(r)
	}
	if err == nil {
		err = s.store(r)
	}
	return processor.Failed(s.node, processor.KindProcess, err)
}

// match joins a record with the other side's.
func (s *joinSide[K, This, Other, R]) match(r processor.Record[K, This]) (found bool, err error) {
	from := max(0, r.Timestamp-s.before, s.otherTime.Value()-s.otherRetention+1)
	to := max(0, r.Timestamp+s.after)
	var failed error
	err = s.other.FetchRange(r.Key, from, to, func(o store.Row[K, Other]) bool {
		found = true
		if failed = s.met.forget(!s.left, r.Key, o.Start); failed != nil {
			return false
		}
		failed = s.next(processor.Record[K, R]{
			Key: r.Key, Value: s.join(r.Key, r.Value, o.Value, true), Timestamp: max(r.Timestamp, o.Start), Headers: r.Headers,
		})
		return failed == nil
	})
	if failed != nil {
		return found, failed
	}
	return found, err
}

// unmatched gives a record that has met no other, or keeps it until it cannot meet one any more.
func (s *joinSide[K, This, Other, R]) unmatched(r processor.Record[K, This]) error {
	if max(0, r.Timestamp+s.after) < s.met.seen.Value() {
		return s.alone(r)
	}
	return remember(s.met, s.left, s.values, r)
}

// alone gives a record without one of the other side.
func (s *joinSide[K, This, Other, R]) alone(r processor.Record[K, This]) error {
	var none Other
	return s.next(processor.Record[K, R]{
		Key: r.Key, NullKey: r.NullKey, Value: s.join(r.Key, r.Value, none, false), Timestamp: r.Timestamp, Headers: r.Headers,
	})
}

// store keeps a record for those to come.
func (s *joinSide[K, This, Other, R]) store(r processor.Record[K, This]) error {
	if r.Timestamp > s.ownTime.Value()-s.ownRetention {
		if e, err := s.own.PutRecord(r.Key, r.Value, r.Timestamp, r.Timestamp, r.Headers); err != nil || e != nil {
			return err
		}
	}
	s.task.Late(processor.Late{
		Node: s.node, Timestamp: r.Timestamp, Start: r.Timestamp, End: r.Timestamp, StreamTime: s.met.seen.Value(),
	})
	return nil
}
