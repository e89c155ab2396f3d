package runtime

import (
	"fmt"

	"github.com/millrace-streams/millrace/processor"
)

// flushed is a flush that ended in the background.
type flushed struct {
	id    processor.TaskID
	store *openStore
	err   error
}

// flush hands the committed layer of each store that is due to its backend, beside the loop.
func (w *Worker) flush() {
	for _, t := range w.tasks {
		for _, s := range t.stores {
			if !s.flushing && w.flushDue(t, s) {
				w.startFlush(t, s)
			}
		}
	}
}

// flushDue: memory takes over every commit at once; a file only what is large, old, or about to be closed.
func (w *Worker) flushDue(t *task, s *openStore) bool {
	switch {
	case !s.behind() || s.broken:
		return false
	case !w.cfg.Opener.Durable() || t.finishing:
		return true
	}
	old := !s.since.IsZero() && w.now.Sub(s.since) >= w.cfg.FlushInterval
	return old || s.layers.UnflushedBytes() >= w.flushBytes(t)
}

// flushBytes is how much of a store is held in memory.
func (w *Worker) flushBytes(t *task) int {
	if t.role == Standby {
		return w.standbyBytes
	}
	return w.cfg.FlushBytes
}

// behind reports whether the backend does not hold all that is committed.
func (s *openStore) behind() bool {
	if s.layers.UnflushedBytes() > 0 {
		return true // maybe of what the changelog is not told
	}
	at, ok := s.layers.Offset()
	if !ok {
		return false
	}
	held, ok := s.layers.Backend().Offset()
	return !ok || held < at
}

func (w *Worker) startFlush(t *task, s *openStore) {
	batch, ok := s.layers.BeginFlush()
	if !ok {
		return
	}
	s.flushing = true
	id := t.id
	apply := func() {
		err := s.layers.Backend().Apply(batch)
		if err == nil && batch.Offset >= 0 {
			w.keep(id, s.layers.Name(), batch.Offset)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.flushed = append(w.flushed, flushed{id, s, err})
	}
	if w.cfg.Opener.Durable() {
		w.port.Background(apply)
		return
	}
	apply()
	w.settleFlushes()
}

// settleFlushes takes the outcome of flushes that have ended.
func (w *Worker) settleFlushes() {
	w.mu.Lock()
	ended := w.flushed
	w.flushed = nil
	w.mu.Unlock()
	for _, f := range ended {
		f.store.flushing = false
		f.store.layers.EndFlush(f.err)
		f.store.since = w.now
		if f.store.owed > 0 {
			w.port.Consumed(f.store.changelog, f.store.owed)
			f.store.owed = 0
		}
		if f.err != nil {
			f.store.broken = true
			w.fail(fmt.Errorf("runtime: task %s: store %q cannot be written: %w", f.id, f.store.layers.Name(), f.err))
		}
	}
}

// keep tells whom it concerns what of a store outlives the process.
func (w *Worker) keep(id processor.TaskID, store string, offset int64) {
	if w.cfg.Kept != nil && w.cfg.Opener.Durable() {
		w.cfg.Kept(id, store, offset)
	}
}
