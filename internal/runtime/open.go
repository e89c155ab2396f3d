package runtime

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/millrace-streams/millrace/changelog"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
)

// openStore opens a store, unless it is among those inherited, and reads the part of the changelog that it does not hold.
func (w *Worker) openStore(t *task, c Changelog, inherited map[processor.TopicPartition]*openStore) error {
	w.readers[c.TopicPartition] = t
	if s := inherited[c.TopicPartition]; s != nil {
		delete(inherited, c.TopicPartition)
		t.stores = append(t.stores, s)
		if s.heard.After(t.lease.Asked) { // the log has grown since: an open transaction was aborted, which writes a marker
			c.End = max(c.End, s.position())
		}
		if s.fits(c) {
			w.catchUp(t, s, c, s.position())
			return nil
		}
		t.stores = t.stores[:len(t.stores)-1] // what is wrong with it shows when it is opened again
		w.stopStore(s)
		if err := w.closeStore(s); err != nil {
			return err
		}
	}
	decl, err := w.declaration(t.id, c.Store)
	if err != nil {
		return err
	}
	s := &openStore{changelog: c.TopicPartition, topic: c.ID, dir: filepath.Join(w.cfg.StateDir, w.cfg.App, t.id.String()), local: store.LocalName(decl)}
	if err := w.identify(s.dir, s.local, c); err != nil {
		return err
	}
	backend, from, err := w.openBackend(t, s.dir, s.local, c)
	if err != nil {
		return err
	}
	if _, holds := backend.Offset(); !holds {
		w.noteCurrent(s, w.now)
	}
	s.layers = store.LayersOf(decl, backend)
	s.layers.MaxRecord = w.cfg.MaxRecord
	t.stores = append(t.stores, s)
	w.catchUp(t, s, c, from)
	return nil
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
func (w *Worker) openBackend(t *task, dir, name string, c Changelog) (store.Backend, int64, error) {
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
	if fits && !w.outlived(dir, name, c, at) {
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
