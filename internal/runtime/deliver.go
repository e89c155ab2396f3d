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
			w.stage(s, f)
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
		case f.Expired:
			w.cfg.Logger.Warn("records were deleted before they were read: giving the task back to have it again from where its logs begin now",
				"task", t.id.String(), "partition", f.TopicPartition.String(), "offset", f.Offset, "error", f.Err)
			w.finish(t)
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
