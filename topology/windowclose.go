package topology

import (
	"time"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
)

// emitClosed forwards the results of the windows that were closed since the last call. closeTime is the stream time less the
// grace. It is Kafka Streams' EmitStrategy.onWindowClose with an emit interval of 0.
func (a *windowAggregation[K, A]) emitClosed(closeTime int64) error {
	if a.emitted == nil || a.emitted.Value() >= closeTime {
		return nil
	}
	from, to := a.closedSince(closeTime)
	if to < 0 || a.emitted.Value() >= 0 && a.advance > 0 && a.noneBetween(from-1, to) {
		return nil
	}
	var failed error
	err := a.view.ScanTime(from, to, func(r store.Row[K, A]) bool {
		if a.next != nil {
			failed = a.final(r)
		}
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	a.emitted.Advance(closeTime)
	return a.failed(err)
}

// closedSince returns the starts, both included, of the windows that have been closed since results were last forwarded. A
// time window is closed at its end, a sliding one behind it.
func (a *windowAggregation[K, A]) closedSince(closeTime int64) (from, to int64) {
	before := a.emitted.Value()
	if a.advance == 0 {
		return max(0, before-a.size), closeTime - a.size - 1
	}
	if before >= 0 {
		from = max(0, before-a.size) + 1
	}
	return from, closeTime - a.size
}

// noneBetween reports that no window starts behind the first time and up to the second.
func (a *windowAggregation[K, A]) noneBetween(first, second int64) bool {
	return first/a.advance == second/a.advance
}

// closeAll closes the windows of all rows.
func (a *windowAggregation[K, A]) closeAll() error {
	last, err := a.view.Time()
	if err != nil || last < 0 {
		return a.failed(err)
	}
	closed := last + a.size
	if a.advance == 0 {
		closed++
	}
	a.seen.Advance(closed + a.grace)
	return a.emitClosed(a.seen.Value() - a.grace)
}

// idleClose calls a function when no record has come for a time by the wall clock.
type idleClose struct {
	task    *processor.Task
	context *processor.Context[struct{}, struct{}]
	after   time.Duration
	seen    int64 // the wall clock at the latest record
	waiting bool
	close   func() error
}

// newIdleClose returns nil without WallClockClose. It begins to wait at once: there may be open windows from before.
func newIdleClose(b *processor.Binding, set settings, closeAll func() error) *idleClose {
	if set.closing.idle <= 0 {
		return nil
	}
	i := &idleClose{
		task: b.Task, context: processor.NewQuietContext[struct{}, struct{}](b), after: set.closing.idle, close: closeAll,
	}
	i.touch()
	return i
}

// touch notes that a record has come.
func (i *idleClose) touch() {
	if i == nil {
		return
	}
	if i.seen = i.context.Now(); !i.waiting {
		i.wait(i.after)
	}
}

// wait schedules a call. There is none while everything is closed, so that an idle task has nothing to commit.
func (i *idleClose) wait(d time.Duration) {
	i.waiting = true
	var p *processor.Punctuation
	p = i.context.Schedule(d, processor.WallClockTime, func(at int64) error {
		p.Cancel()
		i.waiting = false
		if i.task.More() {
			i.seen = at
		}
		if left := i.after - time.Duration(at-i.seen)*time.Millisecond; left > 0 {
			i.wait(left)
			return nil
		}
		return i.close()
	})
}
