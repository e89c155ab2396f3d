package runtime

import (
	"slices"

	"github.com/millrace-streams/millrace/changelog"
	"github.com/millrace-streams/millrace/processor"
)

// A standby is a restore without an end, beside the loop as any restore, and as bounded. When the task is granted to be worked
// on, its stores go over into the new life as they are, and only what they lack is read. The other way round they stay open
// when the task goes to another worker.

// demote begins the end of the work on a task that is to be stood by for afterwards.
func (w *Worker) demote(id processor.TaskID) {
	t := w.task(id)
	l, waits := w.stopWaiting(id)
	if waits && l.Role == Active { // it has done nothing yet
		w.port.Release(id)
	}
	switch {
	case t != nil && t.role == Standby && !t.finishing: // it has stood by all along
	case t != nil && t.role == Active && (!t.finishing || !waits):
		t.demoted = true
		w.finish(t)
	case waits: // its previous life is still closing
		l.Role, l.Inputs = Standby, nil
		w.waiting = append(w.waiting, l)
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

// inherit ends a task's previous life, and returns what it leaves behind.
func (w *Worker) inherit(previous *task) map[processor.TopicPartition]*openStore {
	left := map[processor.TopicPartition]*openStore{}
	if previous == nil {
		return left
	}
	w.withdraw(previous)
	w.forget(previous)
	for _, s := range previous.stores {
		w.cfg.Restores.forget(s)
		left[s.changelog] = s
	}
	return left
}

// leavesStores reports whether a task's stores can go over into the life that the lease is for.
func (t *task) leavesStores(l Lease) bool {
	if t.role == Active && !t.released || t.role == Standby && l.Role == Standby || t.broken || t.opening || t.adding() {
		return false
	}
	for _, s := range t.stores {
		if s.damaged != nil || s.busy && !s.fits(l.changelog(s.changelog)) {
			return false
		}
	}
	return true
}

// adding reports whether a job of a restore has the layers of one of the task's stores.
func (t *task) adding() bool {
	return slices.ContainsFunc(t.stores, func(s *openStore) bool { return s.adding })
}

func (l Lease) changelog(tp processor.TopicPartition) Changelog {
	for _, c := range l.Changelogs {
		if c.TopicPartition == tp {
			return c
		}
	}
	return Changelog{}
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
	_, ok := s.layers.Offset()
	at := s.position()
	return ok && s.topic == c.ID && at >= c.Start && at <= c.End
}

// followed tells how far a store has come that is behind.
func (w *Worker) followed(s *openStore) {
	if w.follower != nil {
		w.follower.Followed(s.changelog, s.restoring.Position())
	}
}

// none is the offset of a store of which nothing outlives the process.
const none = -1

// keep tells whom it concerns what of a store outlives the process.
func (w *Worker) keep(id processor.TaskID, store string, offset int64) {
	if w.cfg.Kept != nil && w.cfg.Opener.Durable() {
		w.cfg.Kept(id, store, offset)
	}
}

// holder returns the task that a store belongs to by now, nil if it is closed.
func (w *Worker) holder(s *openStore) *task {
	for _, t := range w.tasks {
		if slices.Contains(t.stores, s) {
			return t
		}
	}
	return nil
}
