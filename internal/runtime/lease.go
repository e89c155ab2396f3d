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

// task is a task in this worker's hands: first it restores (work is nil), then it runs, then it finishes. As a standby it
// restores for ever.
type task struct {
	id        processor.TaskID
	role      Role
	lease     Lease
	stores    []*openStore
	work      *processor.Task
	positions map[processor.TopicPartition]processor.Position // committed
	ends      map[processor.TopicPartition]int64              // up to where the broker is known to have something
	pending   []processor.Position                            // in the commit in flight
	reached   int64                                           // stream time of the newest commit that was begun
	finishing bool                                            // no further step: commit, release, flush, close
	demoted   bool                                            // once it is released, it stays as a standby
	lost      bool                                            // somebody else's already: close, do not release
	released  bool                                            // all that is left to do is local
	broken    bool                                            // its disk failed: close without a flush
	opening   bool                                            // a job opens the rest of its stores
	patience  time.Time                                       // until when nothing is said about how long that takes
}

// openStore is one store of a task with the changelog partition it mirrors.
type openStore struct {
	changelog processor.TopicPartition
	topic     string // which topic of that name
	layers    *store.Layered
	shared    *sharedStore // the layers, where readers of other goroutines must be kept off
	dir       string       // of the task; local is the name of the store's data there
	local     string
	since     time.Time // age of the oldest unflushed commit, zero if there is none
	busy      bool      // a flush or a piece of a restore is under way beside the loop
	adding    bool      // it is a piece of a restore: the layers are its
	reading   bool      // the changelog is being fetched
	current   time.Time // of what the layers and the restore hold: what they lack was written later; zero: not known
	heard     time.Time // when the newest batch of the changelog came
	drained   drained   // the newest batch of the changelog with which it was at its end
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

// drained is a moment at which a changelog ended.
type drained struct {
	at  time.Time
	end int64
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
		_, waits := w.stopWaiting(id)
		t := w.task(id)
		switch {
		case t == nil && waits:
			w.port.Closed(id)
		case t != nil && t.role == Active && !t.lost:
			t.lost = true
			w.withdraw(t)
			w.drop(t)
		}
	}
	for _, l := range events.Granted {
		w.stopWaiting(l.Task) // as a standby, which it is not to be any more
		w.waiting = append(w.waiting, l)
	}
	for _, id := range events.Demoted {
		w.demote(id)
	}
	for _, id := range events.Revoked {
		w.revoke(id)
	}
	if events.Fatal != nil {
		w.fail(events.Fatal)
	} else if events.Stop {
		w.stop()
	}
	w.open()
}

func (w *Worker) task(id processor.TaskID) *task {
	for _, t := range w.tasks {
		if t.id == id {
			return t
		}
	}
	return nil
}

// open takes up the granted tasks whose previous life is over, or goes over into the new one.
func (w *Worker) open() {
	waiting := w.waiting
	w.waiting = nil
	var later []Lease
	for _, l := range waiting {
		t := w.task(l.Task)
		switch {
		case w.stopping && t == nil:
			if l.Role == Active {
				w.port.Release(l.Task)
			}
			w.port.Closed(l.Task)
		case t == nil, !w.stopping && t.leavesStores(l):
			if err := w.take(l, t); err != nil {
				w.fail(err)
			}
		default:
			later = append(later, l)
		}
	}
	w.waiting = append(later, w.waiting...)
	w.settleOpened() // in a deterministic world, and in memory, they are open already
}

// take opens a task's stores, or has them from its previous life, and starts their restore.
func (w *Worker) take(l Lease, previous *task) error {
	t := &task{
		id: l.Task, role: l.Role, lease: l,
		positions: map[processor.TopicPartition]processor.Position{}, ends: map[processor.TopicPartition]int64{},
	}
	inherited := w.inherit(previous)
	for _, in := range l.Inputs {
		t.positions[in.TopicPartition] = processor.Position{TopicPartition: in.TopicPartition, Offset: in.Offset, Metadata: in.Metadata}
		t.ends[in.TopicPartition] = in.End
		w.readers[in.TopicPartition] = t
	}
	w.tasks = append(w.tasks, t)
	slices.SortFunc(w.tasks, func(a, b *task) int { return compareIDs(a.id, b.id) })
	var missing []Changelog
	for _, c := range l.Changelogs {
		w.readers[c.TopicPartition] = t
		s := inherited[c.TopicPartition]
		delete(inherited, c.TopicPartition)
		if s != nil && w.takeOver(t, c, s) {
			continue
		}
		if missing = append(missing, c); s == nil {
			continue
		}
		if err := w.closeStore(s); err != nil {
			for _, s := range inherited { // to be closed with the others
				t.stores = append(t.stores, s)
			}
			return t.failure(c, err)
		}
	}
	if len(missing) > 0 {
		w.openStores(t, missing)
	}
	w.restored(t)
	return nil
}

// failure is an error of one of a task's stores.
func (t *task) failure(c Changelog, err error) error {
	return fmt.Errorf("runtime: task %s: store %q: %w", t.id, c.Store, err)
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
		Consumed: w.port.Consumed, Recycle: w.recycle, Chunks: &w.chunks, Dropped: w.cfg.Dropped, Late: w.cfg.Late,
		Partitions: func(topic string) int32 { return w.cfg.Partitions[topic] },
	})
	if err != nil {
		return err
	}
	t.work, t.reached = work, work.StreamTime()
	for _, s := range t.stores {
		s.shared.serve(t.reached)
	}
	if w.follower != nil {
		w.follower.Working(t.id)
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
		w.stopStore(s)
	}
}

// stopStore ends the reading of a store's changelog. What is fetched and not staged is read again, if ever.
func (w *Worker) stopStore(s *openStore) {
	w.port.StopFetch(s.changelog)
	s.reading, s.fetched = false, nil
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
		if err := w.closeStore(s); err != nil {
			w.cfg.Logger.Warn("closing a store", "task", t.id.String(), "store", s.layers.Name(), "error", err)
		}
	}
}

func (w *Worker) closeStore(s *openStore) error {
	s.gate.Lock()
	defer s.gate.Unlock()
	s.closed = true
	w.cfg.Restores.forget(s)
	return s.layers.Close()
}
