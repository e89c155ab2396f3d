package topology

import (
	"fmt"
	"time"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
)

// WindowedStream is a handle on a grouped stream whose records are put into windows. It comes from WindowedBy.
type WindowedStream[K, V any] struct {
	g       Grouped[K, V]
	windows Windowing
	made    *[]*node // the aggregations
}

// SessionStream is a handle on a grouped stream whose records are put into sessions. It comes from SessionsBy.
type SessionStream[K, V any] struct {
	g       Grouped[K, V]
	windows SessionWindows
	made    *[]*node
}

// WindowedBy puts the records of a grouped stream into windows, to be counted, reduced or aggregated.
func WindowedBy[K, V any](g Grouped[K, V], w Windowing) WindowedStream[K, V] {
	return WindowedStream[K, V]{g, w, new([]*node)}
}

// SessionsBy puts the records of a grouped stream into sessions, to be counted, reduced or aggregated.
func SessionsBy[K, V any](g Grouped[K, V], w SessionWindows) SessionStream[K, V] {
	return SessionStream[K, V]{g, w, new([]*node)}
}

type closing struct {
	onClose bool
	idle    time.Duration
	set     bool // idle was given
}

type emitOnClose struct{}

func (emitOnClose) tableOption(s *settings)   { s.closing.onClose = true }
func (emitOnClose) derivedOption(s *settings) { s.closing.onClose = true }

// EmitOnClose makes an aggregation in windows forward the result of a window once, when it is closed, and nothing before.
// Results come in the order of the windows' starts, of sessions their ends, and then of their keys' bytes, at once with the
// record that closes them. They carry the time of their rows, and no headers. Nothing is forwarded in silence: only a record
// of the same task moves stream time, see WallClockClose.
func EmitOnClose() TableOption { return emitOnClose{} }

type wallClockClose time.Duration

func (w wallClockClose) tableOption(s *settings) {
	s.closing.idle, s.closing.set = time.Duration(w), true
}
func (w wallClockClose) derivedOption(s *settings) { w.tableOption(s) }

// WallClockClose closes all windows of an aggregation with EmitOnClose, or of Suppress with UntilWindowCloses, when no
// record has reached it for the time d by the wall clock, and none is waiting to be processed. Records that come later for
// those windows are late. So d should be longer than any pause in which the input is merely slow or out of reach.
func WallClockClose(d time.Duration) TableOption { return wallClockClose(d) }

// LateSource is a WindowedStream or a SessionStream.
type LateSource[K, V any] interface {
	grouped() Grouped[K, V]
	aggregations() []*node
}

func (w WindowedStream[K, V]) grouped() Grouped[K, V] { return w.g }
func (w WindowedStream[K, V]) aggregations() []*node  { return *w.made }
func (w SessionStream[K, V]) grouped() Grouped[K, V]  { return w.g }
func (w SessionStream[K, V]) aggregations() []*node   { return *w.made }

// LateRecords returns the records that came too late for every window of theirs, as they were. They are those of the
// aggregations of w that were declared before the call, of each of them; there must be one.
func LateRecords[K, V any](w LateSource[K, V], opts ...Option) Stream[K, V] {
	g, made := w.grouped(), w.aggregations()
	if len(made) == 0 {
		g.b.fail(caller(), g.n.Name, "LateRecords comes before the aggregation whose late records it shall give")
		made = []*node{g.n}
	}
	for _, m := range made {
		m.blind = false
	}
	n := g.b.child("late", options(opts), made...)
	n.Bind = passOn[K, V]
	return Stream[K, V]{g.b, n}
}

// listeners sorts the bound children of an aggregation: those of its table, and those of its late records. Either is nil if
// there are none.
func listeners[K, V, WK, A any](b *processor.Binding) (table processor.Emit[WK, processor.Change[A]], late processor.Emit[K, V]) {
	tables, lates := *b, *b
	tables.Children, tables.Names, lates.Children, lates.Names = nil, nil, nil, nil
	for i, c := range b.Children {
		to := &tables
		if _, ok := c.(processor.Emit[K, V]); ok {
			to = &lates
		}
		to.Children, to.Names = append(to.Children, c), append(to.Names, b.Names[i])
	}
	if len(tables.Children) > 0 {
		table = processor.FanOut[WK, processor.Change[A]](&tables)
	}
	if len(lates.Children) > 0 {
		late = processor.FanOut[K, V](&lates)
	}
	return table, late
}

// inWindows declares a node that aggregates in windows which stay open for a time beyond their ends, and checks its options.
func (b *Builder) inWindows(n *node, set settings, after time.Duration, wrong error) {
	if wrong != nil {
		b.fail(n.at, n.Name, "%w", wrong)
	}
	n.closes, n.windowed = after, true
	set.closing.check(b, n, set.closing.onClose, "EmitOnClose")
}

// check records what is wrong with WallClockClose.
func (c closing) check(b *Builder, n *node, closes bool, needs string) {
	if c.set && c.idle < time.Millisecond {
		b.fail(n.at, n.Name, "WallClockClose waits for %v, it must be a millisecond or more", c.idle)
	}
	if c.set && !closes {
		b.fail(n.at, n.Name, "WallClockClose needs %s", needs)
	}
}

// keepWindows connects a node to the window store that it maintains.
func keepWindows[K, A any](b *Builder, n *node, s *store.Window[K, A], w Windowing) {
	if s != nil {
		n.need(b, s.KeySerde() != nil, fmt.Sprintf("the key serde of store %q", s.Name()))
		n.need(b, s.ValueSerde() != nil, fmt.Sprintf("the value serde of store %q", s.Name()))
		need := w.Store()
		need.Retention = w.least()
		if err := checkWindowStore(s.Size(), s.Retention(), s.RetainDuplicates(), need); err != nil {
			b.fail(n.at, n.Name, "store %q does not fit: %w", s.Name(), err)
		}
	}
	b.keep(n, s)
}
