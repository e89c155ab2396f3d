package topology

import (
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
)

// sessionAggregation is an aggregation in sessions in one task.
type sessionAggregation[K, A any] struct {
	*sessionRows[K, A]
	gap, grace int64
	merging[K, A]
	seen    *processor.Kept // stream time
	emitted *processor.Kept // up to which closing time results were forwarded; nil without EmitOnClose
	idle    *idleClose      // nil without WallClockClose
	found   []store.Windowed[K]
}

func bindSessions[K, A any](
	b *processor.Binding, n *node, s *store.Session[K, A], w SessionWindows, set settings, m merging[K, A],
	next processor.Emit[store.Windowed[K], processor.Change[A]],
) (*sessionAggregation[K, A], error) {
	a, err := newSessionAggregation(b, n, s, w, "", m)
	if err != nil {
		return nil, err
	}
	a.bind(n, next, set)
	if set.closing.onClose {
		a.emitted = b.Task.Keep(s.Name())
	}
	a.idle = newIdleClose(b, set, a.closeAll)
	return a, nil
}

// newSessionAggregation returns the aggregation of one of the streams that are aggregated in the table of n.
func newSessionAggregation[K, A any](
	b *processor.Binding, n *node, s *store.Session[K, A], w SessionWindows, stream string, m merging[K, A],
) (*sessionAggregation[K, A], error) {
	t, err := sessionRowsOf(b.Task, n, s)
	if err != nil {
		return nil, err
	}
	return &sessionAggregation[K, A]{
		sessionRows: t, gap: w.gap.Milliseconds(), grace: w.after.Milliseconds(), merging: m, seen: streamTimeOf(b.Task, s.Name()+stream),
	}, nil
}

// take is the node.
func (a *sessionAggregation[K, A]) take(r *windowRecord[K, A]) (late bool, err error) {
	if r.nullKey {
		return false, a.task.NullKey(a.node)
	}
	a.idle.touch()
	a.seen.Advance(r.timestamp)
	closeTime := a.seen.Value() - a.grace - a.gap
	whole, was, err := a.merged(r)
	if err != nil {
		return false, err
	}
	if late = whole.End < closeTime; late {
		a.task.Late(processor.Late{
			Node: a.node, Timestamp: r.timestamp, Start: whole.Start, End: whole.End, StreamTime: a.seen.Value(),
		})
	} else if err := a.update(r, whole, was); err != nil {
		return false, err
	}
	return late, a.emitClosed(closeTime)
}

// merged returns the session that the record makes with those within its reach, which are then in a.found, and their merged
// row.
func (a *sessionAggregation[K, A]) merged(r *windowRecord[K, A]) (whole store.Windowed[K], was row[A], err error) {
	whole = store.Windowed[K]{Key: r.key, Start: r.timestamp, End: r.timestamp}
	if a.init != nil {
		was = row[A]{value: a.init(), exists: true}
	}
	a.found = a.found[:0]
	err = a.view.FindSessions(r.key, a.earliest(r.timestamp), r.timestamp+a.gap, func(s store.Row[K, A]) bool {
		a.found = append(a.found, s.Windowed)
		whole.Start, whole.End = min(whole.Start, s.Start), max(whole.End, s.End)
		if was.exists {
			was.value = a.fn(r.key, was.value, s.Value)
		} else {
			was = row[A]{value: s.Value, exists: true}
		}
		return true
	})
	return whole, was, a.failed(err)
}

// earliest returns the end from which on a session is within a record's reach. One whose result is out takes in nothing more,
// though its store may still have it.
func (a *sessionAggregation[K, A]) earliest(ts int64) int64 {
	if a.emitted == nil {
		return ts - a.gap
	}
	return max(ts-a.gap, a.emitted.Value())
}

// update deletes the sessions that were found and writes the new one. A session of this one moment stays where it is.
func (a *sessionAggregation[K, A]) update(r *windowRecord[K, A], whole store.Windowed[K], was row[A]) error {
	inPlace := whole.Start == whole.End
	if !inPlace {
		for _, s := range a.found {
			if err := a.remove(s, r.timestamp, r.headers); err != nil {
				return err
			}
		}
	}
	old, err := a.old(whole, inPlace && len(a.found) > 0)
	if err != nil {
		return a.failed(err)
	}
	return a.put(whole, r.update(was.value, was.exists), r.timestamp, r.headers, old)
}

// emitClosed forwards the results of the sessions that were closed since the last call, as windowAggregation.emitClosed.
func (a *sessionAggregation[K, A]) emitClosed(closeTime int64) error {
	if a.emitted == nil || a.emitted.Value() >= closeTime {
		return nil
	}
	from, to := max(0, a.emitted.Value()), closeTime-1
	if to < from {
		return nil
	}
	var failed error
	err := a.view.ScanTime(from, to, func(s store.Row[K, A]) bool {
		if a.next != nil {
			failed = a.final(s)
		}
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	a.emitted.Advance(closeTime)
	return a.failed(err)
}

// closeAll closes all sessions.
func (a *sessionAggregation[K, A]) closeAll() error {
	last, err := a.view.Time()
	if err != nil || last < 0 {
		return a.failed(err)
	}
	a.seen.Advance(last + 1 + a.gap + a.grace)
	return a.emitClosed(a.seen.Value() - a.gap - a.grace)
}
