package runtime

import (
	"fmt"

	"github.com/millrace-streams/millrace/processor"
)

// deliver hands fetched batches to the stores that restore and to the tasks that run.
func (w *Worker) deliver(events Events) {
	w.quiet = true
	for _, f := range events.Fetched {
		t := w.readers[f.TopicPartition]
		if t == nil || t.finishing {
			continue
		}
		if s := t.restoring(f); s != nil {
			if t.role == Standby {
				s.queue = append(s.queue, queued{Fetched: f})
				continue
			}
			if err := w.restore(t, s, f); err != nil {
				w.fail(fmt.Errorf("runtime: task %s: store %q: restore from %s: %w", t.id, s.layers.Name(), f.TopicPartition, err))
			}
			continue
		}
		if t.work != nil && t.reads(f.TopicPartition) {
			w.quiet = false
			t.work.Enqueue(f.TopicPartition, f.Records, f.Next, f.Bytes, f.More)
			t.ends[f.TopicPartition] = max(t.ends[f.TopicPartition], f.Next)
		}
	}
	for _, f := range events.Failed {
		t := w.readers[f.TopicPartition]
		switch {
		case t == nil || t.finishing:
		case t.role == Standby && f.OutOfRange:
			w.startOver(t, f)
		default:
			w.fail(fmt.Errorf("runtime: task %s: cannot read %s from offset %d: %w", t.id, f.TopicPartition, f.Offset, f.Err))
		}
	}
}

func (t *task) restoring(f Fetched) *openStore {
	for _, s := range t.stores {
		if s.changelog == f.TopicPartition && s.restoring != nil {
			return s
		}
	}
	return nil
}

// reads reports whether the partition is an input: what comes of a changelog after its store is restored is not.
func (t *task) reads(tp processor.TopicPartition) bool {
	_, input := t.positions[tp]
	return input
}

// restore adds a batch of the changelog to a store, and starts the task if that was the last of it.
func (w *Worker) restore(t *task, s *openStore, f Fetched) error {
	if err := w.apply(s, f.Records, f.Next); err != nil {
		return err
	}
	w.applied(t, s, f)
	return w.restored(t)
}

// apply adds records of the changelog to a store.
func (w *Worker) apply(s *openStore, records []processor.Raw, next int64) error {
	if err := s.restoring.Add(records, next); err != nil {
		return err
	}
	if s.since.IsZero() {
		s.since = w.now
	}
	if w.follower != nil {
		w.follower.Followed(s.changelog, s.restoring.Position())
	}
	return nil
}

// applied gives a batch back. While the disk is behind, the batch is not reported as consumed, so that the port holds back.
func (w *Worker) applied(t *task, s *openStore, f Fetched) {
	if w.recycle != nil && f.Records != nil {
		w.recycle(f.Records)
	}
	if s.flushing && s.layers.UnflushedBytes() > w.flushBytes(t) {
		s.owed += f.Bytes
	} else {
		w.port.Consumed(f.TopicPartition, f.Bytes)
	}
}
