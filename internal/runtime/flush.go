package runtime

import (
	"errors"
	"fmt"

	"github.com/millrace-streams/millrace/store"
)

// ended is a job that has ended beside the loop: a flush, or a piece of a restore.
type ended struct {
	taskStore
	piece  bool      // of a restore
	staged []Fetched // in it
	err    error
}

// end tells of a job, from whatever goroutine.
func (w *Worker) end(e ended) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = append(w.ended, e)
}

// settleJobs takes the outcome of jobs that have ended.
func (w *Worker) settleJobs() {
	w.mu.Lock()
	all := w.ended
	w.ended = nil
	w.mu.Unlock()
	for _, e := range all {
		e.store.busy, e.store.adding = false, false
		if t := w.holder(e.store); t != nil {
			e.task = t // it may be in another life by now
		}
		if errors.Is(e.err, store.ErrCorrupt) {
			e.store.damaged = e.err
		}
		if e.piece {
			w.staged(e)
		} else {
			w.flushed(e)
		}
	}
}

// flush hands the committed layer of each store that is due to its backend, beside the loop.
func (w *Worker) flush() {
	for _, t := range w.tasks {
		for _, s := range t.stores {
			if !s.busy && w.flushDue(t, s) {
				w.startFlush(t, s)
			}
		}
	}
}

// flushDue: memory takes over every commit at once; a file only what is large, old, or about to be closed. What is large in
// a restore depends on the others.
func (w *Worker) flushDue(t *task, s *openStore) bool {
	switch {
	case !s.behind() || t.broken:
		return false
	case !w.cfg.Opener.Durable() || t.finishing:
		return true
	}
	if !s.since.IsZero() && w.now.Sub(s.since) >= w.cfg.FlushInterval {
		return true
	}
	if s.restoring != nil { // its share may have become smaller since it has staged something
		return w.cfg.Restores.exceeded(s)
	}
	// One after the other: a flush takes memory of its own, for every page it changes, and the one that waits becomes larger,
	// and changes each page for more rows.
	return w.flushes == 0 && s.layers.UnflushedBytes() >= w.cfg.FlushBytes
}

// behind reports whether the backend does not hold all that is committed.
func (s *openStore) behind() bool {
	if s.layers.UnflushedBytes() > 0 || s.restoring != nil && !s.restoring.Settled() {
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
	if s.restoring != nil && !s.restoring.Settled() {
		w.flushStaged(t, s)
		return
	}
	batch, ok := s.shared.beginFlush()
	if !ok {
		return
	}
	s.busy = true
	w.flushes++
	id, current := t.id, s.current
	apply := func() {
		err := s.layers.Backend().Apply(batch)
		if err == nil && batch.Offset >= 0 {
			w.keep(id, s.layers.Name(), batch.Offset)
			w.noteCurrent(s, current)
		}
		w.end(ended{taskStore: taskStore{t, s}, err: err})
	}
	if w.cfg.Opener.Durable() {
		w.port.Background(apply)
		return
	}
	apply()
	w.settleJobs()
}

// flushStaged is a flush of what a restore has staged.
func (w *Worker) flushStaged(t *task, s *openStore) {
	s.busy, s.adding = true, true
	w.flushes++
	id, current := t.id, s.current
	w.port.Background(func() {
		s.gate.Lock()
		defer s.gate.Unlock()
		var err error
		if !s.closed {
			err = w.write(id, s, current)
		}
		w.end(ended{taskStore: taskStore{t, s}, err: err})
	})
}

// flushed takes what came of a flush. A store that cannot be written stops the worker: a full disk does not become empty by
// itself, and the changelog holds what is missing in the file.
func (w *Worker) flushed(e ended) {
	t, s := e.task, e.store
	w.flushes--
	s.shared.endFlush(e.err)
	s.since = w.now
	if s.restoring != nil {
		w.cfg.Restores.account(s)
	}
	if e.err != nil {
		t.broken = true
		w.failed(t, fmt.Errorf("runtime: task %s: store %q cannot be written: %w", t.id, s.layers.Name(), e.err))
		return
	}
	if s.restoring != nil && !t.finishing {
		w.restored(t)
	}
}
