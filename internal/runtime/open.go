package runtime

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/millrace-streams/millrace/changelog"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
)

// maxOpens bounds how many tasks of a worker have their stores opened at once: to check a file takes a thread and a reading
// of the whole of it.
const maxOpens = 8

// slowOpen is how long it may take to open the stores of a task without a word.
const slowOpen = 10 * time.Second

// opened is what came of a job that opens a task's stores.
type opened struct {
	task   *task
	stores []foundStore
	err    error // of the first that cannot be opened
}

// foundStore is a store that was opened, and what it lacks.
type foundStore struct {
	*openStore
	Changelog
	from int64
}

// tellOfSlowOpens warns of tasks that wait for their files for long.
func (w *Worker) tellOfSlowOpens() {
	for _, t := range w.tasks {
		if t.opening && w.now.After(t.patience) {
			w.cfg.Logger.Warn("stores are still being opened: their files are read as a whole, to be checked", "task", t.id.String(), "dir", w.dir(t.id))
			t.patience = w.now.Add(slowOpen)
		}
	}
}

// dir is where a task's stores lie.
func (w *Worker) dir(id processor.TaskID) string {
	return filepath.Join(w.cfg.StateDir, w.cfg.App, id.String())
}

// takeOver goes on with a store of the task's previous life, if it fits.
func (w *Worker) takeOver(t *task, c Changelog, s *openStore) bool {
	if s.heard.After(t.lease.Asked) { // the log has grown since: an open transaction was aborted, which writes a marker
		c.End = max(c.End, s.position())
	}
	if !s.fits(c) { // what is wrong with it shows when it is opened again
		w.stopStore(s)
		return false
	}
	t.stores = append(t.stores, s)
	w.catchUp(t, s, c, s.position())
	return true
}

// openStores opens stores beside the loop: other tasks go on meanwhile.
func (w *Worker) openStores(t *task, missing []Changelog) {
	now := w.now
	t.opening, t.patience = true, now.Add(slowOpen)
	job := func() {
		w.opens <- struct{}{}
		defer func() { <-w.opens }()
		o := opened{task: t}
		for _, c := range missing {
			s, err := w.openStore(t, c, now)
			if err != nil {
				o.err = t.failure(c, err)
				break
			}
			o.stores = append(o.stores, s)
		}
		w.endOpen(o)
	}
	if w.cfg.Opener.Durable() {
		w.port.Background(job)
	} else {
		job()
	}
}

// openStore opens a store, and finds out which part of the changelog it does not hold. It runs beside the loop.
func (w *Worker) openStore(t *task, c Changelog, now time.Time) (found foundStore, err error) {
	decl, err := w.declaration(t.id, c.Store)
	if err != nil {
		return found, err
	}
	s := &openStore{changelog: c.TopicPartition, topic: c.ID, dir: w.dir(t.id), local: store.LocalName(decl)}
	if err := w.identify(s.dir, s.local, c); err != nil {
		return found, err
	}
	backend, from, err := w.openBackend(t, s.dir, s.local, c, now)
	if err != nil {
		return found, err
	}
	if _, holds := backend.Offset(); !holds {
		w.noteCurrent(s, now)
	}
	s.layers = store.LayersOf(decl, backend)
	s.layers.MaxRecord = w.cfg.MaxRecord
	return foundStore{s, c, from}, nil
}

// endOpen tells of stores that were opened. Nobody wants to know after a crash.
func (w *Worker) endOpen(o opened) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.crashed {
		w.opened = append(w.opened, o)
		return
	}
	o.close()
}

func (o opened) close() {
	for _, s := range o.stores {
		_ = s.layers.Close() // nothing was written
	}
}

// settleOpened takes stores that were opened. Those of a task that has ended meanwhile are closed with it.
func (w *Worker) settleOpened() {
	w.mu.Lock()
	all := w.opened
	w.opened = nil
	w.mu.Unlock()
	for _, o := range all {
		t := o.task
		t.opening = false
		for _, s := range o.stores {
			t.stores = append(t.stores, s.openStore)
			s.shared = share(s.Store, t.id.Partition, s.layers)
			if !t.finishing && o.err == nil {
				w.catchUp(t, s.openStore, s.Changelog, s.from)
			}
		}
		if o.err != nil {
			w.fail(o.err)
		} else if !t.finishing {
			w.restored(t)
		}
	}
	w.tellOfSlowOpens()
}

// catchUp reads a changelog from an offset to where it ends now, for a standby without an end. Readers of other goroutines
// know of the stores of tasks that are worked on.
func (w *Worker) catchUp(t *task, s *openStore, c Changelog, from int64) {
	s.shared = share(c.Store, t.id.Partition, s.layers)
	log := w.cfg.Logger.With("task", t.id.String(), "store", c.Store, "changelog", c.TopicPartition.String(), "from", from)
	end := c.End
	if t.role == Standby {
		end = changelog.Forever
	}
	s.told, s.logged = time.Time{}, time.Time{}
	if s.from = from; s.restoring == nil {
		s.restoring = changelog.NewRestorer(s.layers, end, from, w.cfg.Opener.Durable())
	} else { // what it has staged goes over
		s.restoring.Until(end)
	}
	w.cfg.Restores.account(s)
	if t.role == Standby {
		log.Info("standing by")
	} else {
		w.cfg.Stores.add(s.shared, w.cfg.Partitions[c.Topic])
		if s.restoring.Done() {
			return
		}
		log.Info("restoring", "to", end)
	}
	w.progress(t, s)
	if !s.reading {
		s.reading = true
		w.port.Fetch(c.TopicPartition, from)
	}
}

// openBackend opens a store, or makes it anew where it does not fit its changelog: the changelog is the truth.
func (w *Worker) openBackend(t *task, dir, name string, c Changelog, now time.Time) (store.Backend, int64, error) {
	log := w.cfg.Logger.With("store", c.Store, "dir", dir, "changelog", c.TopicPartition.String())
	backend, err := w.cfg.Opener.Open(dir, name)
	if errors.Is(err, store.ErrCorrupt) {
		w.keep(t.id, c.Store, none)
		return w.openDamaged(dir, name, c, err)
	}
	if err != nil {
		return nil, 0, err
	}
	at, ok := backend.Offset()
	if !ok {
		return backend, c.Start, nil
	}
	fits := at >= c.Start && at <= c.End
	if fits && !w.outlived(dir, name, c, at, now) {
		return backend, at, nil
	}
	if err := w.truncated(t, c, at); err != nil {
		return nil, 0, errors.Join(err, backend.Close())
	}
	w.keep(t.id, c.Store, none)
	if !fits {
		log.Warn("store does not fit its changelog: rebuilding it", "held", at, "start", c.Start, "end", c.End)
	}
	if err := backend.Close(); err != nil {
		return nil, 0, err
	}
	return w.openFresh(dir, name, c)
}

// openDamaged puts a damaged file aside, for whoever wants to look into it, and begins a new one.
func (w *Worker) openDamaged(dir, name string, c Changelog, cause error) (store.Backend, int64, error) {
	aside, err := w.cfg.Opener.SetAside(dir, name)
	if err != nil {
		return nil, 0, errors.Join(cause, err)
	}
	w.warnDamaged(c.Store, aside, cause)
	backend, err := w.cfg.Opener.Open(dir, name)
	return backend, c.Start, err
}

func (w *Worker) openFresh(dir, name string, c Changelog) (store.Backend, int64, error) {
	if err := w.cfg.Opener.Remove(dir, name); err != nil {
		return nil, 0, err
	}
	backend, err := w.cfg.Opener.Open(dir, name)
	return backend, c.Start, err
}
