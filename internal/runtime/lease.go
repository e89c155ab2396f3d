package runtime

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
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
	finishing bool                                            // no further step: commit, release, flush, close
	demoted   bool                                            // once it is released, it stays as a standby
	lost      bool                                            // somebody else's already: close, do not release
	released  bool                                            // all that is left to do is local
}

// openStore is one store of a task with the changelog partition it mirrors.
type openStore struct {
	changelog processor.TopicPartition
	layers    *store.Layered
	restoring *changelog.Restorer // nil once restored
	reading   bool                // the changelog is being fetched
	queue     []queued            // of a standby: fetched and not applied
	from      int64               // where the restore began
	owed      int                 // fetched bytes not yet reported as consumed: the disk is behind
	since     time.Time           // age of the oldest unflushed commit, zero if there is none
	flushing  bool
	broken    bool // its disk failed: close without a flush
}

func (t *task) running() bool { return t.work != nil && !t.finishing }

func (t *task) unflushed() int {
	most := 0
	for _, s := range t.stores {
		most = max(most, s.layers.UnflushedBytes())
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
			w.drop(t)
		}
	}
	w.waiting = append(w.waiting, events.Granted...)
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
}

// take opens a task's stores, or has them from its previous life, and starts their restore.
func (w *Worker) take(l Lease, previous *task) error {
	t := &task{
		id: l.Task, role: l.Role, lease: l,
		positions: map[processor.TopicPartition]processor.Position{}, ends: map[processor.TopicPartition]int64{},
	}
	var inherited []*openStore
	if previous != nil {
		inherited = previous.stores
		w.forget(previous)
	}
	for _, in := range l.Inputs {
		t.positions[in.TopicPartition] = processor.Position{TopicPartition: in.TopicPartition, Offset: in.Offset, Metadata: in.Metadata}
		t.ends[in.TopicPartition] = in.End
		w.readers[in.TopicPartition] = t
	}
	w.tasks = append(w.tasks, t)
	slices.SortFunc(w.tasks, func(a, b *task) int { return compareIDs(a.id, b.id) })
	for i, c := range l.Changelogs {
		if err := w.openStore(t, c, inherited); err != nil {
			t.stores = append(t.stores, unused(inherited, l.Changelogs[i+1:])...) // to be closed with the others
			return fmt.Errorf("runtime: task %s: store %q: %w", t.id, c.Store, err)
		}
	}
	return w.restored(t)
}

// unused returns the stores of the changelogs.
func unused(stores []*openStore, changelogs []Changelog) (of []*openStore) {
	for _, s := range stores {
		if slices.ContainsFunc(changelogs, func(c Changelog) bool { return c.TopicPartition == s.changelog }) {
			of = append(of, s)
		}
	}
	return of
}

func compareIDs(a, b processor.TaskID) int {
	if a.Subtopology != b.Subtopology {
		return int(a.Subtopology - b.Subtopology)
	}
	return int(a.Partition - b.Partition)
}

// openStore opens a store, unless it is among those inherited, and reads the part of the changelog that it does not hold.
func (w *Worker) openStore(t *task, c Changelog, inherited []*openStore) error {
	w.readers[c.TopicPartition] = t
	if i := slices.IndexFunc(inherited, func(s *openStore) bool { return s.changelog == c.TopicPartition }); i >= 0 {
		s := inherited[i]
		t.stores = append(t.stores, s)
		if s.fits(c) {
			return w.catchUp(t, s, c, s.position())
		}
		w.cfg.Logger.Warn("store does not fit its changelog: rebuilding it", "task", t.id.String(), "store", c.Store, "held", s.position(), "start", c.Start, "end", c.End)
		t.stores = t.stores[:len(t.stores)-1]
		w.stopStore(s)
		if err := s.layers.Close(); err != nil {
			return err
		}
	}
	decl, err := w.declaration(t.id, c.Store)
	if err != nil {
		return err
	}
	backend, from, err := w.openBackend(t.id, store.LocalName(decl), c)
	if err != nil {
		return err
	}
	s := &openStore{changelog: c.TopicPartition, layers: store.LayersOf(decl, backend)}
	s.layers.MaxRecord = w.cfg.MaxRecord
	t.stores = append(t.stores, s)
	return w.catchUp(t, s, c, from)
}

// catchUp reads a changelog from an offset to where it ends now, for a standby without an end.
func (w *Worker) catchUp(t *task, s *openStore, c Changelog, from int64) error {
	end := c.End
	if t.role == Standby {
		end = changelog.Forever
	}
	s.from = from
	s.restoring = changelog.NewRestorer(s.layers, end, from)
	if w.follower != nil {
		w.follower.Followed(c.TopicPartition, from)
	}
	if s.restoring.Done() {
		return nil
	}
	log := w.cfg.Logger.With("task", t.id.String(), "store", c.Store, "changelog", c.TopicPartition.String(), "from", from)
	if t.role == Standby {
		log.Info("standing by")
	} else {
		log.Info("restoring", "to", c.End)
	}
	if !s.reading {
		s.reading = true
		w.port.Fetch(c.TopicPartition, from)
	}
	return w.applyQueue(t, s)
}

func (w *Worker) declaration(id processor.TaskID, name string) (store.Declaration, error) {
	for _, s := range w.spec(id).Stores {
		if s.Name == name {
			return s.Declaration, nil
		}
	}
	return nil, fmt.Errorf("runtime: the topology has no store %q in sub-topology %d", name, id.Subtopology)
}

// openBackend opens a store, or makes it anew where it does not fit its changelog: the changelog is the truth.
func (w *Worker) openBackend(id processor.TaskID, name string, c Changelog) (store.Backend, int64, error) {
	dir := filepath.Join(w.cfg.StateDir, w.cfg.App, id.String())
	log := w.cfg.Logger.With("store", c.Store, "dir", dir, "changelog", c.TopicPartition.String())
	backend, err := w.cfg.Opener.Open(dir, name)
	if errors.Is(err, store.ErrCorrupt) {
		w.keep(id, c.Store, -1)
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
	log.Warn("store does not fit its changelog: rebuilding it", "held", at, "start", c.Start, "end", c.End)
	w.keep(id, c.Store, -1)
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
	w.cfg.Logger.Warn("store is damaged: rebuilding it from its changelog", "store", c.Store, "set aside", aside, "error", cause)
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

// restored starts the task if all of its stores are restored, unless it is only stood by for.
func (w *Worker) restored(t *task) error {
	if t.role == Standby || t.work != nil {
		return nil
	}
	for _, s := range t.stores {
		if r := s.restoring; r != nil && r.Done() {
			s.restoring = nil
			w.stopStore(s)
			w.report(t, s, r)
		}
	}
	for _, s := range t.stores {
		if s.restoring != nil {
			return nil
		}
	}
	return w.begin(t)
}

func (w *Worker) report(t *task, s *openStore, r *changelog.Restorer) {
	if w.cfg.Restored != nil {
		w.cfg.Restored(Restored{Task: t.id, Store: s.layers.Name(), From: s.from, To: r.Position(), Records: r.Restored()})
	}
	w.cfg.Logger.Info("restored", "task", t.id.String(), "store", s.layers.Name(), "from", s.from, "to", r.Position(), "records", r.Restored())
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
		Globals: w.cfg.Globals, Consumed: w.port.Consumed, Recycle: w.recycle, Dropped: w.cfg.Dropped,
		Partitions: func(topic string) int32 { return w.cfg.Partitions[topic] },
	})
	if err != nil {
		return err
	}
	t.work = work
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
	for _, s := range t.stores {
		s.layers.UncommittedAbort()
	}
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

// stopStore ends the reading of a store's changelog. What is fetched and not applied is read again, if ever.
func (w *Worker) stopStore(s *openStore) {
	w.port.StopFetch(s.changelog)
	s.reading, s.queue = false, nil
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

func (t *task) closeStores(log *slog.Logger) {
	for _, s := range t.stores {
		if err := s.layers.Close(); err != nil {
			log.Warn("closing a store", "task", t.id.String(), "store", s.layers.Name(), "error", err)
		}
	}
}
