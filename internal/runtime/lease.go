package runtime

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/millrace-streams/millrace/changelog"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
)

// task is a task in this worker's hands: first it restores (work is nil), then it runs, then it finishes.
type task struct {
	id        processor.TaskID
	lease     Lease
	stores    []*openStore
	work      *processor.Task
	positions map[processor.TopicPartition]processor.Position // committed
	ends      map[processor.TopicPartition]int64              // up to where the broker is known to have something
	pending   []processor.Position                            // in the commit in flight
	reached   int64                                           // stream time of the newest commit that was begun
	finishing bool                                            // no further step: commit, flush, close, release
	lost      bool                                            // somebody else's already: close, do not release
	broken    bool                                            // its disk failed: close without a flush
}

// openStore is one store of a task with the changelog partition it mirrors.
type openStore struct {
	changelog processor.TopicPartition
	layers    *store.Layered
	shared    *sharedStore // the layers, where readers of other goroutines must be kept off
	dir       string       // of the task; local is the name of the store's data there
	local     string
	since     time.Time // age of the oldest unflushed commit, zero if there is none
	busy      bool      // a flush or a restore is under way beside the loop
	damaged   error     // the local data is: it is to be set aside when the task is closed

	restoring *changelog.Restorer // nil once restored; with the layers, the job's while one is under way
	fetched   []Fetched           // of the changelog, for the next job
	from      int64               // where the restore began
	accounted int                 // bytes staged, as far as Restores knows of them; guarded by it
	told      time.Time           // when progress was told last
	logged    time.Time           // likewise

	gate   sync.Mutex // held by a job of a restore, and to close
	closed bool       // guarded by gate: what was to be done in the background is not any more
}

func (t *task) running() bool { return t.work != nil && !t.finishing }

func (t *task) unflushed() int {
	most := 0
	for _, s := range t.stores {
		if s.restoring == nil {
			most = max(most, s.layers.UnflushedBytes())
		}
	}
	return most
}

// lease takes granted, revoked and lost tasks, and the call to stop.
func (w *Worker) lease(events Events) {
	for _, id := range events.Lost {
		w.stopWaiting(id)
		if t := w.task(id); t != nil && !t.lost {
			t.lost = true
			w.withdraw(t)
			w.drop(t)
		}
	}
	w.waiting = append(w.waiting, events.Granted...)
	for _, id := range events.Revoked {
		if w.stopWaiting(id) { // its previous life is still closing, and it has done nothing yet
			w.port.Release(id)
		} else if t := w.task(id); t != nil {
			w.finish(t)
		}
	}
	if events.Fatal != nil {
		w.fail(events.Fatal)
	} else if events.Stop {
		w.stop()
	}
	w.open()
}

// stopWaiting takes a granted task off the waiting list, and reports whether it was there.
func (w *Worker) stopWaiting(id processor.TaskID) bool {
	n := len(w.waiting)
	w.waiting = slices.DeleteFunc(w.waiting, func(l Lease) bool { return l.Task == id })
	return len(w.waiting) < n
}

func (w *Worker) task(id processor.TaskID) *task {
	for _, t := range w.tasks {
		if t.id == id {
			return t
		}
	}
	return nil
}

// open takes up the granted tasks whose previous life is over.
func (w *Worker) open() {
	var later []Lease
	for _, l := range w.waiting {
		switch {
		case w.task(l.Task) != nil:
			later = append(later, l)
		case w.stopping:
			w.port.Release(l.Task)
		default:
			if err := w.take(l); err != nil {
				later = nil
				w.fail(err)
			}
		}
	}
	w.waiting = later
}

// take opens a task's stores and starts their restore.
func (w *Worker) take(l Lease) error {
	t := &task{id: l.Task, lease: l, positions: map[processor.TopicPartition]processor.Position{}, ends: map[processor.TopicPartition]int64{}}
	for _, in := range l.Inputs {
		t.positions[in.TopicPartition] = processor.Position{TopicPartition: in.TopicPartition, Offset: in.Offset, Metadata: in.Metadata}
		t.ends[in.TopicPartition] = in.End
		w.readers[in.TopicPartition] = t
	}
	w.tasks = append(w.tasks, t)
	slices.SortFunc(w.tasks, func(a, b *task) int { return compareIDs(a.id, b.id) })
	for _, c := range l.Changelogs {
		if err := w.openStore(t, c); err != nil {
			return fmt.Errorf("runtime: task %s: store %q: %w", t.id, c.Store, err)
		}
	}
	w.restored(t)
	return nil
}

func compareIDs(a, b processor.TaskID) int {
	if a.Subtopology != b.Subtopology {
		return int(a.Subtopology - b.Subtopology)
	}
	return int(a.Partition - b.Partition)
}

func (w *Worker) declaration(id processor.TaskID, name string) (store.Declaration, error) {
	for _, s := range w.spec(id).Stores {
		if s.Name == name {
			return s.Declaration, nil
		}
	}
	return nil, fmt.Errorf("runtime: the topology has no store %q in sub-topology %d", name, id.Subtopology)
}

// begin builds a task's nodes and reads its input from the committed positions.
func (w *Worker) begin(t *task) error {
	stores := map[string]*store.Layered{}
	for _, s := range t.stores {
		stores[s.layers.Name()] = s.layers
	}
	var starts []processor.Start
	for _, in := range t.lease.Inputs {
		at := t.positions[in.TopicPartition]
		starts = append(starts, processor.Start{Position: at, Behind: at.Offset < t.ends[in.TopicPartition]})
	}
	work, err := processor.NewTask(t.id, w.spec(t.id), stores, starts, w.now.UnixMilli(), processor.Options{
		App: w.cfg.App, Policy: w.cfg.Policy, EveryUpdate: w.cfg.EveryUpdate, MaxIdle: w.cfg.MaxIdle, MaxRecordBytes: w.cfg.MaxRecord,
		Globals: w.cfg.Globals, Queries: w.cfg.Stores, Marks: t.lease.Marks, Yield: &w.pulse.yield,
		Consumed: w.port.Consumed, Recycle: w.recycle, Dropped: w.cfg.Dropped, Late: w.cfg.Late,
		Partitions: func(topic string) int32 { return w.cfg.Partitions[topic] },
	})
	if err != nil {
		return err
	}
	t.work, t.reached = work, work.StreamTime()
	for _, s := range t.stores {
		s.shared.serve(t.reached)
	}
	for _, s := range starts {
		w.port.Fetch(s.TopicPartition, s.Offset)
	}
	return nil
}

func (w *Worker) spec(id processor.TaskID) *processor.Spec { return w.cfg.Specs[id.Subtopology] }

// finish begins the orderly end of a task.
func (w *Worker) finish(t *task) {
	if t.finishing {
		return
	}
	t.finishing = true
	w.stopReading(t)
}

// drop ends a task without a further commit.
func (w *Worker) drop(t *task) {
	w.finish(t)
	if w.inFlight == nil || !slices.Contains(w.inFlight.tasks, t) {
		w.abandon(t)
		return
	}
	t.undo()
	t.closeWork(w.cfg.Logger)
}

// reopen ends a task and asks for it again, with positions and changelog ends as the broker now has them.
func (w *Worker) reopen(t *task) {
	w.abandon(t)
	w.finish(t) // releasing a task that is not revoked makes the port look it up and grant it again
}

func (w *Worker) stopReading(t *task) {
	for _, in := range t.lease.Inputs {
		w.port.StopFetch(in.TopicPartition)
	}
	for _, s := range t.stores {
		w.port.StopFetch(s.changelog)
	}
}

// release closes and gives back the tasks that are finished: nothing to commit, no commit and no flush under way.
func (w *Worker) release() {
	for _, t := range slices.Clone(w.tasks) {
		if !t.finishing || !w.settled(t) {
			continue
		}
		t.closeWork(w.cfg.Logger)
		w.closeStores(t)
		w.setAside(t)
		w.forget(t)
		if !t.lost {
			w.port.Release(t.id)
		}
	}
	w.open()
}

func (w *Worker) settled(t *task) bool {
	if w.inFlight != nil && slices.Contains(w.inFlight.tasks, t) {
		return false
	}
	if t.work != nil && (t.work.Dirty() || t.work.Moved()) && !t.lost {
		return false
	}
	for _, s := range t.stores {
		if s.busy || s.behind() && !t.lost && !t.broken {
			return false
		}
	}
	return true
}

func (w *Worker) forget(t *task) {
	w.tasks = slices.DeleteFunc(w.tasks, func(o *task) bool { return o == t })
	for tp, reader := range w.readers {
		if reader == t {
			delete(w.readers, tp)
		}
	}
}

func (t *task) closeWork(log *slog.Logger) {
	if t.work == nil {
		return
	}
	if err := t.work.Close(); err != nil {
		log.Warn("closing a processor", "task", t.id.String(), "error", err)
	}
	t.work = nil
}

func (w *Worker) closeStores(t *task) {
	w.withdraw(t)
	for _, s := range t.stores {
		s.gate.Lock()
		s.closed = true
		err := s.layers.Close()
		s.gate.Unlock()
		w.cfg.Restores.forget(s)
		if err != nil {
			w.cfg.Logger.Warn("closing a store", "task", t.id.String(), "store", s.layers.Name(), "error", err)
		}
	}
}
