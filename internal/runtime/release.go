package runtime

import (
	"slices"

	"github.com/millrace-streams/millrace/processor"
)

// revoke begins the end of a task.
func (w *Worker) revoke(id processor.TaskID) {
	t := w.task(id)
	if l, waits := w.stopWaiting(id); waits { // it has done nothing yet, and its previous life may still be closing
		if l.Role == Active {
			w.port.Release(id)
		}
		if t == nil {
			w.port.Closed(id)
			return
		}
	}
	if t != nil {
		t.demoted = false
		w.finish(t)
	}
}

func (w *Worker) isWaiting(id processor.TaskID) bool {
	return slices.ContainsFunc(w.waiting, func(l Lease) bool { return l.Task == id })
}

// stopWaiting takes a granted task off the waiting list, and reports whether it was there.
func (w *Worker) stopWaiting(id processor.TaskID) (l Lease, waits bool) {
	i := slices.IndexFunc(w.waiting, func(l Lease) bool { return l.Task == id })
	if i < 0 {
		return Lease{}, false
	}
	l = w.waiting[i]
	w.waiting = slices.Delete(w.waiting, i, i+1)
	return l, true
}

// release gives back the tasks that are finished: nothing to commit, no commit under way. Then it closes them, unless they
// stay as standbys or go over into a life to come: a flush may be under way until then, and nobody else waits for it.
func (w *Worker) release() {
	for _, t := range slices.Clone(w.tasks) {
		if !t.finishing || !w.settled(t) {
			continue
		}
		if !t.released {
			t.closeWork(w.cfg.Logger)
			if !t.lost && t.role == Active {
				w.port.Release(t.id)
			}
			t.released = true
		}
		if t.demoted && !t.lost && !t.broken && !w.stopping {
			if t.opening || t.adding() {
				continue // the layers are a job's until it has ended
			}
			if err := w.standBy(t); err != nil {
				w.fail(err)
			}
			continue
		}
		if t.flushed() {
			w.closeStores(t)
			w.setAside(t)
			w.forget(t)
			w.port.Closed(t.id)
		}
	}
	w.open()
}

// settled reports whether nothing of a task is to be committed, or being committed.
func (w *Worker) settled(t *task) bool {
	if w.inFlight != nil && slices.Contains(w.inFlight.tasks, t) {
		return false
	}
	return t.lost || t.work == nil || !t.work.Dirty() && !t.work.Moved()
}

// flushed reports whether a task's backends hold all that they are to hold when they are closed.
func (t *task) flushed() bool {
	if t.opening {
		return false
	}
	for _, s := range t.stores {
		if s.busy || s.behind() && !t.lost && !t.broken {
			return false
		}
	}
	return true
}
