package runtime

import (
	"errors"
	"path/filepath"

	"github.com/millrace-streams/millrace/changelog"
	"github.com/millrace-streams/millrace/store"
)

// openStore opens a store's backend and reads the part of the changelog that the backend does not hold.
func (w *Worker) openStore(t *task, c Changelog) error {
	decl, err := w.declaration(t.id, c.Store)
	if err != nil {
		return err
	}
	s := &openStore{changelog: c.TopicPartition, dir: filepath.Join(w.cfg.StateDir, w.cfg.App, t.id.String()), local: store.LocalName(decl)}
	if err := w.identify(s.dir, s.local, c); err != nil {
		return err
	}
	backend, from, err := w.openBackend(t, s.dir, s.local, c)
	if err != nil {
		return err
	}
	s.layers, s.from = store.LayersOf(decl, backend), from
	s.layers.MaxRecord = w.cfg.MaxRecord
	s.shared = share(c.Store, t.id.Partition, s.layers)
	w.cfg.Stores.add(s.shared, w.cfg.Partitions[c.Topic])
	s.restoring = changelog.NewRestorer(s.layers, c.End, from)
	t.stores = append(t.stores, s)
	w.readers[c.TopicPartition] = t
	if !s.restoring.Done() {
		w.cfg.Logger.Info("restoring", "task", t.id.String(), "store", c.Store, "changelog", c.TopicPartition.String(), "from", from, "to", c.End)
		w.progress(t, s)
		w.port.Fetch(c.TopicPartition, from)
	}
	return nil
}

// openBackend opens a store, or makes it anew where it does not fit its changelog: the changelog is the truth.
func (w *Worker) openBackend(t *task, dir, name string, c Changelog) (store.Backend, int64, error) {
	log := w.cfg.Logger.With("store", c.Store, "dir", dir, "changelog", c.TopicPartition.String())
	backend, err := w.cfg.Opener.Open(dir, name)
	if errors.Is(err, store.ErrCorrupt) {
		return w.openDamaged(dir, name, c, err)
	}
	if err != nil {
		return nil, 0, err
	}
	at, ok := backend.Offset()
	if !ok {
		return backend, c.Start, nil
	}
	if at >= c.Start && at <= c.End {
		return backend, at, nil
	}
	if err := w.truncated(t, c, at); err != nil {
		return nil, 0, errors.Join(err, backend.Close())
	}
	log.Warn("store does not fit its changelog: rebuilding it", "held", at, "start", c.Start, "end", c.End)
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
