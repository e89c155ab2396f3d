package runtime

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace-streams/millrace/eos"
	"github.com/millrace-streams/millrace/processor"
)

// commit is a commit in flight.
type commit struct {
	tasks []*task
	begun time.Time
}

// intervalOver reports whether it is time to commit though more input is at hand.
func (w *Worker) intervalOver() bool { return w.now.Sub(w.last) >= w.cfg.CommitInterval }

// due reports whether to commit now: there is work, no commit is in flight, and the interval is over, or enough is
// staged, or the input is drained, or somebody waits for the task.
func (w *Worker) due() bool {
	if w.inFlight != nil {
		return false
	}
	dirty, moved, more, urgent := false, false, false, w.full()
	for _, t := range w.tasks {
		if t.work == nil {
			continue
		}
		dirty = dirty || t.work.Dirty()
		moved = moved || t.work.Moved()
		more = more || t.running() && t.work.More()
		urgent = urgent || t.finishing
	}
	since := w.now.Sub(w.last)
	switch {
	case dirty:
		drained := !more && w.quiet && since >= w.cfg.DrainInterval
		return urgent || drained || since >= w.cfg.CommitInterval
	case moved:
		return urgent || since >= max(movedInterval, w.cfg.CommitInterval)
	}
	return false
}

// commit prepares every task that has something to commit and hands it all to the port.
func (w *Worker) commit() {
	c := &commit{begun: w.now}
	w.batch.Reset(&w.chunks)
	for _, t := range w.tasks {
		if t.work == nil || !t.work.Dirty() && !t.work.Moved() {
			continue
		}
		before := len(w.batch.Positions)
		w.beat(t.work)
		if err := t.work.Prepare(&w.batch); err != nil {
			w.failTask(t, err)
			continue
		}
		t.pending = slices.Clone(w.batch.Positions[before:])
		t.reached = t.work.StreamTime()
		c.tasks = append(c.tasks, t)
	}
	w.last = w.now
	if len(c.tasks) > 0 {
		w.inFlight = c
		w.port.Commit(w.batch)
	}
}

// settle takes the outcome of the commit in flight.
func (w *Worker) settle(done *CommitDone) {
	if done == nil || w.inFlight == nil {
		return
	}
	tasks, begun := w.inFlight.tasks, w.inFlight.begun
	w.inFlight = nil
	w.batch.Reset(&w.chunks) // an idle worker holds on to nothing
	log := w.cfg.Logger.With("outcome", done.Outcome.String(), "error", done.Err)
	switch done.Outcome {
	case eos.Committed:
		for _, t := range tasks {
			w.committed(t, begun, done.Ends)
		}
	case eos.Aborted:
		log.Warn("transaction lost: going back to the last committed positions")
		for _, t := range tasks {
			w.rewind(t)
		}
	case eos.Unknown:
		log.Warn("outcome of a transaction unknown: reopening its tasks from what the broker holds")
		for _, t := range tasks {
			w.reopen(t)
		}
	case eos.Failed:
		for _, t := range tasks {
			w.drop(t)
		}
		w.fail(fmt.Errorf("runtime: commit failed: %w", done.Err))
	}
}

// committed makes the prepared layers and positions the committed ones.
func (w *Worker) committed(t *task, begun time.Time, ends map[processor.TopicPartition]int64) {
	for _, s := range t.stores {
		end, written := ends[s.changelog]
		if at, ok := s.layers.Offset(); ok && written && end >= 0 && end < at {
			w.fail(t.lostState(Changelog{TopicPartition: s.changelog, Store: s.layers.Name(), End: end}, at)) // it was created anew meanwhile
		}
		if !written { // nothing, or only what the changelog is not told
			end = -1
		} else if s.since.IsZero() {
			s.since = w.now
		}
		s.shared.committed(end, t.reached)
		s.freshAs(begun)
	}
	for _, p := range t.pending {
		t.positions[p.TopicPartition] = p
	}
	t.pending = nil
}

// rewind drops what is not committed and processes it again. The nodes are built anew: what they hold in memory may come
// from records that are now to be read again.
func (w *Worker) rewind(t *task) {
	w.abandon(t)
	if t.finishing || w.stopping || t.lost {
		return
	}
	if err := w.begin(t); err != nil {
		w.failed(t, err)
	}
}

// abandon drops both layers that are not committed, and the nodes.
func (w *Worker) abandon(t *task) {
	for _, in := range t.lease.Inputs {
		w.port.StopFetch(in.TopicPartition)
	}
	for _, s := range t.stores {
		if s.restoring == nil { // else there is nothing to abort, and a job may have the layers
			s.layers.Abort()
		}
	}
	t.closeWork(w.cfg.Logger)
	t.pending = nil
}

// failTask ends a task whose record failed, and with it the worker: nothing of the record is committed. Of the layers
// only the one being filled goes; a commit in flight does not hold the record.
func (w *Worker) failTask(t *task, err error) {
	if w.rebuild(t, err) {
		return
	}
	for _, in := range t.lease.Inputs {
		w.port.StopFetch(in.TopicPartition)
	}
	t.undo()
	t.closeWork(w.cfg.Logger)
	var p *processor.PanicError
	if errors.As(err, &p) {
		w.cfg.Logger.Error("a user's function panicked", "task", t.id.String(), "error", err, "stack", string(p.Stack))
	}
	w.fail(err)
}

// undo drops the layers that are being filled.
func (t *task) undo() {
	for _, s := range t.stores {
		if s.restoring == nil {
			s.layers.UncommittedAbort()
		}
	}
}
