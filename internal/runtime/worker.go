package runtime

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/millrace-streams/millrace/processor"
)

// Worker runs the tasks that its port grants it. It is used from one goroutine.
type Worker struct {
	cfg      Config
	port     Port
	now      time.Time
	tasks    []*task // in the order of their ids
	waiting  []Lease // granted, while the task's previous life is still closing
	readers  map[processor.TopicPartition]*task
	inFlight *commit
	chunks   processor.Chunks // of outputs
	batch    processor.Commit // what inFlight makes durable; its memory is used again
	last     time.Time        // when the newest commit was started
	quiet    bool             // the latest poll brought no records for tasks that run
	stopping bool
	err      error // why the worker is stopping, if it is for a failure

	pulse pulse

	recycle  func([]processor.Raw) // nil: the port has no use for record slices
	follower Follower              // nil: the port does not want to know

	jobs    int // of restores, under way
	turn    int // whose is next
	flushes int // under way
	opens   chan struct{}

	mu      sync.Mutex
	ended   []ended  // in the background, not yet settled
	opened  []opened // likewise
	crashed bool     // what is opened from now on is closed at once
}

// NewWorker returns a worker that has no tasks yet.
func NewWorker(cfg Config, port Port) *Worker {
	if cfg.Restores == nil {
		cfg.Restores = NewRestores(DefaultRestoreBytes)
	}
	w := &Worker{cfg: cfg, port: port, readers: map[processor.TopicPartition]*task{}, now: cfg.Now(), last: cfg.Now(),
		opens: make(chan struct{}, maxOpens)}
	if r, ok := port.(Recycler); ok {
		w.recycle = r.Recycle
	}
	w.follower, _ = port.(Follower)
	w.beat(nil)
	return w
}

// Run turns until the port says stop and everything is committed and released, or ctx ends. It returns what made it fail,
// often a *processor.RecordError. When ctx ends, it drops what is not committed.
func (w *Worker) Run(ctx context.Context) error {
	for !w.Done() {
		if ctx.Err() != nil {
			w.Crash()
			return errors.Join(w.err, context.Cause(ctx))
		}
		w.Turn(w.Wait())
	}
	return w.err
}

// Done reports whether the worker has stopped: every task is committed, closed and released.
func (w *Worker) Done() bool {
	return w.stopping && len(w.tasks) == 0 && len(w.waiting) == 0 && w.inFlight == nil
}

// Turn is one turn of the loop. It waits up to wait for something to happen.
func (w *Worker) Turn(wait time.Duration) {
	events := w.port.Poll(wait)
	w.now = w.cfg.Now()
	w.beat(nil)

	w.deliver(events) // before anything that starts a partition anew: these batches belong to the reading before
	w.settle(events.Commit)
	w.settleJobs()
	w.settleOpened()
	w.lease(events)
	w.restore()
	w.settleJobs() // in a deterministic world they have ended already
	w.step()
	if w.due() {
		w.commit()
	}
	w.flush()
	w.release()
}

// step runs the tasks in rounds until they are idle, enough is staged or it is time to commit.
func (w *Worker) step() {
	for range turnRounds {
		idle := true
		if w.full() {
			return
		}
		for _, t := range w.tasks {
			if !t.running() {
				continue
			}
			n, err := w.run(t)
			if err != nil {
				w.failTask(t, err)
				return
			}
			idle = idle && n < roundRecords
		}
		if w.now = w.cfg.Now(); idle || w.intervalOver() {
			return
		}
	}
}

// run gives a task its share of a round. Of many tasks most have nothing to do: for those the clock is not looked at.
func (w *Worker) run(t *task) (int, error) {
	now := w.now.UnixMilli()
	if t.work.Idle(now) {
		return t.work.Run(now, roundRecords)
	}
	w.beat(t.work)
	defer w.beat(nil)
	return t.work.Run(now, roundRecords)
}

// full reports whether the layer that is being filled has reached its bound, or the disk cannot keep up.
func (w *Worker) full() bool {
	staged := 0
	for _, t := range w.tasks {
		if t.work != nil {
			staged += t.work.StagedBytes()
		}
		if t.unflushed() > 4*w.cfg.FlushBytes {
			return true
		}
	}
	return staged >= w.cfg.StagedBytes
}

// Wait returns how long the next Poll may wait: not at all while there is work.
func (w *Worker) Wait() time.Duration {
	wait := longestWait
	until := func(at time.Time) { wait = min(wait, max(0, at.Sub(w.now))) }
	if w.due() || w.mayRestore() {
		return 0
	}
	for _, t := range w.tasks {
		if !t.running() {
			continue
		}
		if at, stalled := t.work.Stalled(); stalled {
			until(time.UnixMilli(at))
		} else if t.work.Buffered() > 0 && !w.full() {
			return 0
		}
		if at, ok := t.work.NextPunctuation(); ok {
			until(time.UnixMilli(at))
		}
		if w.inFlight == nil && t.work.Dirty() {
			until(w.last.Add(w.patience(t)))
		}
	}
	return wait
}

// patience is how long after the last commit a task that has something to commit waits for the next one.
func (w *Worker) patience(t *task) time.Duration {
	if t.work.More() {
		return w.cfg.CommitInterval
	}
	return w.cfg.DrainInterval
}

// Failure returns why the worker is stopping, nil while it is well.
func (w *Worker) Failure() error { return w.err }

// fail makes the worker stop: what is whole is committed, then everything is released.
func (w *Worker) fail(err error) {
	w.err = errors.Join(w.err, err)
	w.stop()
}

// stop begins the end of all tasks.
func (w *Worker) stop() {
	w.stopping = true
	for _, t := range w.tasks {
		w.finish(t)
	}
}

// Crash drops the worker as a killed process would: nothing is committed, flushed or released. Files are closed, so that
// another worker in this process can open them.
func (w *Worker) Crash() {
	w.mu.Lock()
	late := w.opened
	w.opened, w.crashed = nil, true
	w.mu.Unlock()
	for _, o := range late {
		o.close()
	}
	for _, t := range w.tasks {
		w.closeStores(t)
	}
	w.tasks, w.stopping = nil, true
}
