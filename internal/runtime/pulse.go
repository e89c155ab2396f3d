package runtime

import (
	"sync/atomic"
	"time"

	"github.com/millrace-streams/millrace/processor"
)

// pulse lets others see whether a worker comes by the head of its loop. It costs nothing per record.
type pulse struct {
	at    atomic.Int64                   // when it last came by, in nanoseconds since 1970
	runs  atomic.Pointer[processor.Task] // whose records it is processing, nil if none's
	yield atomic.Bool                    // somebody waits for it to come by: tasks stop after the record in work
}

// beat notes that the worker is alive, and which task it turns to; nil is none.
func (w *Worker) beat(runs *processor.Task) {
	w.pulse.at.Store(w.cfg.Now().UnixNano())
	w.pulse.runs.Store(runs)
	if w.pulse.yield.Load() {
		w.pulse.yield.Store(false)
	}
}

// Silent returns for how long the worker has not come by, and asks one that is only slow to do so after the record in work.
// It may be called from any goroutine.
func (w *Worker) Silent() time.Duration {
	w.pulse.yield.Store(true)
	return time.Duration(w.cfg.Now().UnixNano() - w.pulse.at.Load())
}

// Whereabouts tells what a worker is doing that has been silent for long. ok is false when that is nothing of a task's. It
// may be called from any goroutine.
func (w *Worker) Whereabouts() (at processor.Whereabouts, ok bool) {
	if t := w.pulse.runs.Load(); t != nil {
		return t.Whereabouts(), true
	}
	return processor.Whereabouts{Offset: -1}, false
}
