package runtime

import (
	"fmt"
	"math"
	"slices"

	"github.com/millrace-streams/millrace/changelog"
	"github.com/millrace-streams/millrace/processor"
)

// A standby is a restore without an end. What it reads waits in its stores' queues until a turn has time for it, so that the
// tasks that work are not held up; the port reads no further meanwhile. When the task is granted to be worked on, its stores
// go over into the new life as they are, and only what they lack is read. The other way round they stay open when the task
// goes to another worker.

// queued is a batch that a standby has still to apply, from its record taken on.
type queued struct {
	Fetched
	taken int
}

// demote begins the end of the work on a task that is to be stood by for afterwards.
func (w *Worker) demote(id processor.TaskID) {
	if l, waits := w.stopWaiting(id); waits { // it has done nothing yet
		w.port.Release(id)
		l.Role, l.Inputs = Standby, nil
		w.waiting = append(w.waiting, l)
		return
	}
	if t := w.task(id); t != nil {
		t.demoted = true
		w.finish(t)
	}
}

// standBy makes a standby of a task that was released. Its stores hold what is committed.
func (w *Worker) standBy(t *task) error {
	l := Lease{Task: t.id, Role: Standby, Changelogs: slices.Clone(t.lease.Changelogs)}
	for i := range l.Changelogs {
		l.Changelogs[i].End = changelog.Forever // they have grown since
	}
	return w.take(l, t)
}

// position is up to where a store has the changelog.
func (s *openStore) position() int64 {
	if s.restoring != nil {
		return s.restoring.Position()
	}
	at, _ := s.layers.Offset()
	return at
}

// fits reports whether a store can go on from where it is.
func (s *openStore) fits(c Changelog) bool {
	at, ok := s.layers.Offset()
	return ok && at >= c.Start && s.position() <= c.End
}

// leavesStores reports whether a task's stores can go over into the life that the lease is for.
func (t *task) leavesStores(l Lease) bool {
	if t.role == Active && !t.released || t.role == Standby && l.Role == Standby {
		return false
	}
	for _, s := range t.stores {
		if s.broken || s.flushing && !s.fits(l.changelog(s.changelog)) {
			return false
		}
	}
	return true
}

func (l Lease) changelog(tp processor.TopicPartition) Changelog {
	for _, c := range l.Changelogs {
		if c.TopicPartition == tp {
			return c
		}
	}
	return Changelog{}
}

// startOver ends a standby whose position has been deleted from its changelog. The port grants it anew, and it is built
// from what there is.
func (w *Worker) startOver(t *task, f FetchFailed) {
	w.cfg.Logger.Warn("a standby has fallen behind its changelog: it starts over", "task", t.id.String(), "changelog", f.TopicPartition.String(), "offset", f.Offset, "error", f.Err)
	w.finish(t)
}

// follow lets the standbys get on, one after the other: all of them a little while tasks have work to do, else more.
func (w *Worker) follow() {
	w.share()
	left := followRecordsIdle
	if w.busy() {
		left = followRecords
	}
	for n := range w.tasks {
		t := w.tasks[(w.turn+n)%len(w.tasks)]
		if t.role != Standby || t.finishing {
			continue
		}
		for _, s := range t.stores {
			if err := w.followStore(t, s, &left); err != nil {
				w.fail(fmt.Errorf("runtime: standby of task %s: store %q: read from %s: %w", t.id, s.layers.Name(), s.changelog, err))
				return
			}
		}
		if left == 0 {
			w.turn += n + 1
			return
		}
	}
}

// share divides among all standbys of the worker what one store may hold in memory.
func (w *Worker) share() {
	n := 0
	for _, t := range w.tasks {
		if t.role == Standby {
			n += len(t.stores)
		}
	}
	w.standbyBytes = min(w.cfg.FlushBytes, max(w.cfg.FlushBytes/max(n, 1), minStandbyFlush))
}

// busy reports whether a task has something to process.
func (w *Worker) busy() bool {
	for _, t := range w.tasks {
		if t.running() && t.work.Buffered() > 0 {
			return true
		}
	}
	return false
}

// behind reports whether a standby has something to apply.
func (w *Worker) behind() bool {
	for _, t := range w.tasks {
		for _, s := range t.stores {
			if t.role == Standby && !t.finishing && len(s.queue) > 0 {
				return true
			}
		}
	}
	return false
}

// followStore applies what is queued, left records at most.
func (w *Worker) followStore(t *task, s *openStore, left *int) error {
	for len(s.queue) > 0 && *left > 0 {
		q := &s.queue[0]
		n := min(*left, len(q.Records)-q.taken)
		next := q.Next
		if q.taken+n < len(q.Records) {
			next = q.Records[q.taken+n].Offset
		}
		if err := w.apply(s, q.Records[q.taken:q.taken+n], next); err != nil {
			return err
		}
		*left -= n
		if q.taken += n; q.taken == len(q.Records) {
			done := q.Fetched
			s.queue[0] = queued{}
			s.queue = s.queue[1:]
			w.applied(t, s, done)
		}
	}
	return nil
}

// applyQueue applies all that is queued: the store is needed now.
func (w *Worker) applyQueue(t *task, s *openStore) error {
	if t.role == Standby {
		return nil
	}
	left := math.MaxInt
	return w.followStore(t, s, &left)
}
