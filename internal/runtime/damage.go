package runtime

import (
	"errors"

	"github.com/millrace-streams/millrace/store"
)

// failed follows an error of a task: a store that has turned out damaged is rebuilt, anything else stops the worker.
func (w *Worker) failed(t *task, err error) {
	if !w.rebuild(t, err) {
		w.fail(err)
	}
}

// rebuild ends a task one of whose stores has turned out damaged, to have it again: from its committed positions, with that
// store restored from its changelog. The other tasks go on. It reports false if that is not what is wrong.
func (w *Worker) rebuild(t *task, err error) bool {
	if !errors.Is(err, store.ErrCorrupt) {
		return false
	}
	found := false
	for _, s := range t.stores {
		restored := !s.busy || s.restoring == nil // else the layers are a job's, which will tell
		if s.damaged == nil && restored && errors.Is(s.layers.Failure(), store.ErrCorrupt) {
			s.damaged = s.layers.Failure()
		}
		found = found || s.damaged != nil
	}
	if !found { // a user's function has made it up
		return false
	}
	t.broken = true // what the other stores have not written yet comes back from their changelogs
	w.drop(t)       // a commit in flight is waited for; it may well succeed
	return true
}

// setAside puts the damaged stores of a closed task out of the way, for whoever wants to look into them.
func (w *Worker) setAside(t *task) {
	for _, s := range t.stores {
		if s.damaged == nil {
			continue
		}
		aside, err := w.cfg.Opener.SetAside(s.dir, s.local)
		if err != nil {
			w.fail(errors.Join(s.damaged, err))
			continue
		}
		w.warnDamaged(s.layers.Name(), aside, s.damaged)
	}
}

func (w *Worker) warnDamaged(name, aside string, cause error) {
	w.cfg.Logger.Warn("store is damaged: rebuilding it from its changelog", "store", name, "set aside", aside, "error", cause)
}
