package runtime

import (
	"fmt"
	"time"

	"github.com/millrace-streams/millrace/changelog"
	"github.com/millrace-streams/millrace/processor"
)

// Restores run beside the loop, one job at a time for each store: what was fetched of its changelog is staged, and now and
// then applied to its backend. As long as a job is under way, the store's layers are the job's. The loop hands out batches
// and takes up what came of them.

// stage takes a batch of the changelog for the store's next job.
func (w *Worker) stage(s *openStore, f Fetched) {
	s.fetched, s.heard = append(s.fetched, f), w.now
	if !f.More {
		s.drained = drained{w.now, f.Next}
	}
}

// restore begins the jobs that there is work for: of all stores, or of one at a time while tasks of this worker run. Tasks
// that wait for their stores come before those that are only stood by for.
func (w *Worker) restore() {
	w.restoreAs(Active)
	w.restoreAs(Standby)
}

// restoreAs begins jobs of tasks in a role. It goes on from the store where it stopped, so that each has its turn.
func (w *Worker) restoreAs(role Role) {
	stores := w.restoring(role)
	first := w.turn
	for i := range stores {
		if w.jobs > 0 && w.running() {
			return
		}
		at := (first + i) % len(stores)
		if next := stores[at]; !next.store.busy && len(next.store.fetched) > 0 {
			w.startRestore(next.task, next.store)
			w.turn = at + 1
		}
	}
}

// mayRestore reports whether restore has something to begin.
func (w *Worker) mayRestore() bool {
	if w.jobs > 0 && w.running() {
		return false
	}
	for _, r := range append(w.restoring(Active), w.restoring(Standby)...) {
		if !r.store.busy && len(r.store.fetched) > 0 {
			return true
		}
	}
	return false
}

// taskStore is a store with the task it belongs to.
type taskStore struct {
	task  *task
	store *openStore
}

// restoring returns the stores that are being restored, of tasks in a role. A task that is to go over into another life does
// not begin more jobs: they would have to be waited for.
func (w *Worker) restoring(role Role) (stores []taskStore) {
	for _, t := range w.tasks {
		for _, s := range t.stores {
			if s.restoring != nil && t.role == role && !t.finishing && !w.isWaiting(t.id) {
				stores = append(stores, taskStore{t, s})
			}
		}
	}
	return stores
}

func (w *Worker) running() bool {
	for _, t := range w.tasks {
		if t.running() {
			return true
		}
	}
	return false
}

func (w *Worker) startRestore(t *task, s *openStore) {
	batches := s.fetched
	s.fetched, s.busy, s.adding = nil, true, true
	id, current := t.id, s.current
	w.jobs++
	w.port.Background(func() {
		err := w.addTo(id, s, batches, current)
		w.end(ended{taskStore: taskStore{t, s}, piece: true, staged: batches, err: err})
	})
}

// addTo is the job of a store.
func (w *Worker) addTo(id processor.TaskID, s *openStore, batches []Fetched, current time.Time) error {
	s.gate.Lock()
	defer s.gate.Unlock()
	if s.closed {
		return nil
	}
	r := s.restoring
	for _, f := range batches {
		if err := r.Add(f.Records, f.Next); err != nil {
			return err
		}
		if w.cfg.Restores.full(s) || !w.cfg.Opener.Durable() {
			if err := w.write(id, s, current); err != nil {
				return err
			}
		}
	}
	switch {
	case !r.Done():
		return nil
	case r.StagedBytes() > w.cfg.FlushBytes/4: // in the layers it would take several times as much
		return w.write(id, s, current)
	}
	return r.Settle()
}

// write applies what a restore has staged.
func (w *Worker) write(id processor.TaskID, s *openStore, current time.Time) error {
	if err := s.restoring.Flush(); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	w.cfg.Restores.account(s)
	w.keep(id, s.layers.Name(), s.restoring.Position())
	w.noteCurrent(s, current)
	return nil
}

// staged takes what came of a job.
func (w *Worker) staged(e ended) {
	w.jobs--
	t, s := e.task, e.store
	for _, f := range e.staged {
		w.port.Consumed(f.TopicPartition, f.Bytes)
		if w.recycle != nil && f.Records != nil {
			w.recycle(f.Records)
		}
	}
	if s.since.IsZero() {
		s.since = w.now
	}
	switch {
	case e.err != nil:
		t.broken = true
		w.failed(t, fmt.Errorf("runtime: task %s: store %q: restore from %s: %w", t.id, s.layers.Name(), s.changelog, e.err))
	case !t.finishing:
		if s.restoring.Position() >= s.drained.end {
			s.freshAs(s.drained.at)
		}
		w.progress(t, s)
		w.restored(t)
	}
}

// restored starts the task if all of its stores are restored, unless it is only stood by for.
func (w *Worker) restored(t *task) {
	if t.role == Standby || t.opening {
		return
	}
	for _, s := range t.stores {
		r := s.restoring
		switch {
		case r == nil || s.adding || !r.Done():
		case !r.Settled(): // it was stood by for, and had staged all there is
			if !s.busy {
				w.startRestore(t, s)
			}
		default:
			w.cfg.Restores.forget(s)
			s.restoring = nil
			s.freshAs(t.lease.Asked)
			w.stopStore(s)
			w.report(t, s, r)
		}
	}
	for _, s := range t.stores {
		if s.restoring != nil {
			return
		}
	}
	if err := w.begin(t); err != nil {
		w.failed(t, err)
	}
}

func (w *Worker) report(t *task, s *openStore, r *changelog.Restorer) {
	if w.cfg.Restored != nil {
		w.cfg.Restored(Restored{Task: t.id, Store: s.layers.Name(), From: s.from, To: r.Position(), Records: r.Restored()})
	}
	w.cfg.Logger.Info("restored", "task", t.id.String(), "store", s.layers.Name(), "from", s.from, "to", r.Position(), "records", r.Restored())
}
