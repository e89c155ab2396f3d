package topology

import (
	"fmt"
	"time"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
)

// Suppression says which changes of a table Suppress holds back, and for how long. It comes from UntilWindowCloses or
// UntilTimeLimit.
type Suppression[K, V any] struct {
	buffer *Buffer[K, V]
	final  bool          // one result per window
	limit  time.Duration // of UntilTimeLimit
	end    func(K) int64 // when a key's change is due; nil: its record's time and the limit
}

// UntilWindowCloses holds back the changes of a table of windows until the window is closed, and then forwards the last one:
// one result per window, and none for a window whose row was deleted. A window is closed once the stream time that Suppress
// has seen has reached its end plus the grace of the aggregation that the table comes from, for sessions also plus the gap.
// Nothing is forwarded in silence: only a record of the same task moves stream time, see WallClockClose.
func UntilWindowCloses[K, V any](buffer *Buffer[store.Windowed[K], V]) Suppression[store.Windowed[K], V] {
	return Suppression[store.Windowed[K], V]{
		buffer: buffer, final: true, end: func(w store.Windowed[K]) int64 { return w.End },
	}
}

// UntilTimeLimit holds back the changes of each key until the limit has passed in stream time since the first of them, and
// then forwards the last one.
func UntilTimeLimit[K, V any](limit time.Duration, buffer *Buffer[K, V]) Suppression[K, V] {
	return Suppression[K, V]{buffer: buffer, limit: limit}
}

// Suppress holds back changes of a table in a buffer with a changelog of its own, and forwards them later, each with the
// time, the headers and, to processors, the topic, partition and offset of the record that caused it. They come in the order
// of the times at which they entered the buffer, of windows their ends, and then of their keys' bytes. Options are Named and
// WallClockClose.
//
// The time that counts is the highest timestamp that Suppress has seen in its task; it survives restarts. A table that holds
// back its own changes until the commit sends them to Suppress then.
func Suppress[K, V any](t KTable[K, V], rule Suppression[K, V], opts ...TableOption) KTable[K, V] {
	set := tableOptions(opts)
	n := t.b.child("suppress", set, t.n)
	after := rule.limit
	if rule.final {
		after = t.b.closesAfter(n, t.n)
	} else if after < 0 {
		t.b.fail(n.at, n.Name, "the time limit is %v, it must not be negative", after)
	}
	set.closing.check(t.b, n, rule.final, "UntilWindowCloses")
	if set.closing.onClose {
		t.b.fail(n.at, n.Name, "EmitOnClose is an option of aggregations in windows")
	}
	rule.buffer.declare(t.b, n, rule.final)
	t.n.table.needOld(nil)
	n.table.sendOld = func(asker *node) bool { return t.n.table.needOld(asker) }
	n.table.view = suppressedView(t, n, rule)
	n.Bind = func(b *processor.Binding) (any, error) {
		s, err := suppressorOf(b.Task, n, rule.buffer)
		if err != nil {
			return nil, err
		}
		return s.bind(b, rule, after, set), nil
	}
	return KTable[K, V]{t.b, n}
}

// closesAfter returns how long after their ends the windows of a table are closed: the longest time of the aggregations
// that it comes from.
func (b *Builder) closesAfter(user, table *node) time.Duration {
	if after, ok := table.closesAfter(); ok {
		return after
	}
	b.fail(user.at, user.Name, "UntilWindowCloses: the table %q does not come from an aggregation in windows", table.Name)
	return 0
}

func (n *node) closesAfter() (after time.Duration, ok bool) {
	if n.windowed {
		return n.closes, true
	}
	for _, p := range n.parents {
		d, windowed := p.closesAfter()
		if !windowed {
			return 0, false
		}
		after, ok = max(after, d), true
	}
	return after, ok
}

// suppressedView is the view of a suppressed table: rows as they were last forwarded.
func suppressedView[K, V any](t KTable[K, V], n *node, rule Suppression[K, V]) any {
	of, ok := t.n.table.view.(*view[K, V])
	if !ok || rule.buffer == nil {
		return nil
	}
	return &view[K, V]{
		stores: append([]store.Declaration{rule.buffer}, of.stores...), tables: of.tables,
		bind: func(task *processor.Task, known bool) (lookup[K, V], error) {
			s, err := suppressorOf(task, n, rule.buffer)
			if err != nil {
				return nil, err
			}
			find, err := of.bind(task, known)
			if err != nil {
				return nil, err
			}
			return func(k K) (row[V], error) {
				if r, buffered, err := s.prior(k); buffered || err != nil {
					return r, err
				}
				return find(k)
			}, nil
		},
	}
}

// suppressor is the node of Suppress in one task.
type suppressor[K, V any] struct {
	task    *processor.Task
	node    string
	decl    *Buffer[K, V]
	rows    *store.Layered // changes by key, as bufferedChange
	queue   bufferQueue    // of the same keys
	end     func(K) int64
	after   int64
	final   bool
	next    processor.Emit[K, processor.Change[V]]
	seen    *processor.Kept // stream time
	forced  *processor.Kept // up to which time WallClockClose has closed windows; nil without it
	idle    *idleClose
	key     []byte
	value   []byte
	encoded []byte
}

// suppressorOf returns the suppressor of a node in a task, with the times of what its store holds. It may be called before
// the node is bound.
func suppressorOf[K, V any](task *processor.Task, n *node, d *Buffer[K, V]) (*suppressor[K, V], error) {
	if s, ok := task.Shared(n).(*suppressor[K, V]); ok {
		return s, nil
	}
	rows, err := task.Layered(d.Name())
	if err != nil {
		return nil, err
	}
	s := &suppressor[K, V]{task: task, node: n.Name, decl: d, rows: rows}
	if err := s.load(); err != nil {
		return nil, err
	}
	task.Share(n, s)
	return s, nil
}

// load fills the queue from the store.
func (s *suppressor[K, V]) load() error {
	return s.rows.Scan(store.Range{}, func(p store.Pair) (bool, error) {
		c, err := decodeBuffered(p.Value)
		if err != nil {
			return false, fmt.Errorf("buffer %q: %w", s.decl.Name(), err)
		}
		s.queue.push(c.time, string(p.Key), c.size(len(p.Key)))
		return true, nil
	})
}

// bind completes the node.
func (s *suppressor[K, V]) bind(b *processor.Binding, rule Suppression[K, V], after time.Duration, set settings) processor.Emit[K, processor.Change[V]] {
	s.next = processor.FanOut[K, processor.Change[V]](b)
	s.end, s.final, s.after = rule.end, rule.final, after.Milliseconds()
	s.seen = streamTimeOf(b.Task, s.decl.Name())
	if set.closing.idle > 0 {
		s.forced = b.Task.Keep(s.decl.Name() + "@wall-clock")
		s.idle = newIdleClose(b, set, s.closeAll)
	}
	b.Task.AddCache(&s.queue)
	return s.take
}

func (s *suppressor[K, V]) failed(err error) error {
	return processor.Failed(s.node, processor.KindProcess, err)
}

// take buffers a change, and forwards what is due.
func (s *suppressor[K, V]) take(r processor.Record[K, processor.Change[V]]) error {
	s.idle.touch()
	s.seen.Advance(r.Timestamp)
	if dropped := s.closedByClock(&r); dropped {
		return nil
	}
	if err := s.put(r); err != nil {
		return s.failed(err)
	}
	for s.queue.len() > 0 && s.queue.first().time <= s.seen.Value()-s.after {
		if err := s.evict(); err != nil {
			return err
		}
	}
	return s.bound()
}

// closedByClock reports a change of a window that WallClockClose has closed, whose result is out already.
func (s *suppressor[K, V]) closedByClock(r *processor.Record[K, processor.Change[V]]) bool {
	if s.forced == nil || s.end(r.Key) > s.forced.Value() {
		return false
	}
	end := s.end(r.Key)
	s.task.Late(processor.Late{Node: s.node, Timestamp: r.Timestamp, Start: end, End: end, StreamTime: s.seen.Value()})
	return true
}

// bound keeps the buffer within its bounds.
func (s *suppressor[K, V]) bound() error {
	for s.decl.options.exceeded(s.queue.len(), s.queue.bytes) {
		if !s.decl.options.EmitEarly {
			return processor.Failed(s.node, processor.KindFatal, &BufferFullError{
				Buffer: s.decl.Name(), Records: int64(s.queue.len()), Bytes: s.queue.bytes, Options: s.decl.options,
			})
		}
		if err := s.evict(); err != nil {
			return err
		}
	}
	return nil
}

// closeAll forwards everything.
func (s *suppressor[K, V]) closeAll() error {
	for s.queue.len() > 0 {
		s.forced.Advance(s.queue.first().time)
		if err := s.evict(); err != nil {
			return err
		}
	}
	return nil
}
