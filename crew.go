package millrace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"sync"
	"time"

	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
)

// crew is the workers of a running application, each in a goroutine of its own. The first that fails stops them all, in
// order. One that does not come by is left behind: a goroutine cannot be killed.
type crew struct {
	app       *App
	cfg       runtime.Config
	globals   *reader // nil if there are no global tables
	members   []*member
	ended     chan *member
	over      chan struct{}   // closed when nobody is waited for any more
	hard      context.Context // ends when the orderly shutdown has taken too long
	abandoned time.Time       // when that was, zero before

	wake  chan struct{} // somebody was hired
	mu    sync.Mutex
	hired []runtime.Port
}

// reader is what follows the global tables.
type reader struct {
	globals *runtime.Globals
	turns   int64
	since   time.Time // when turns was seen first
}

// silent returns for how long it has not got on.
func (r *reader) silent() time.Duration {
	if n := r.globals.Turns(); n != r.turns || r.since.IsZero() {
		r.turns, r.since = n, time.Now()
	}
	return time.Since(r.since)
}

// member is a worker with its port.
type member struct {
	number int
	worker *runtime.Worker
	port   runtime.Port
	id     chan string // of its goroutine, as stacks name it
	err    error       // once ended
	done   bool        // seen to have ended, or left behind
}

func (a *App) newCrew(cfg runtime.Config, ports []runtime.Port, globals *runtime.Globals) *crew {
	c := &crew{app: a, cfg: cfg, ended: make(chan *member), over: make(chan struct{}), wake: make(chan struct{}, 1)}
	if len(globals.Topics()) > 0 {
		c.globals = &reader{globals: globals}
	}
	for _, port := range ports {
		c.join(port)
	}
	return c
}

// join makes a member.
func (c *crew) join(port runtime.Port) *member {
	m := &member{number: len(c.members), worker: runtime.NewWorker(c.cfg, port), port: port, id: make(chan string, 1)}
	c.members = append(c.members, m)
	return m
}

// HungError is a worker, or the reader of the global tables, that does not return from a user's function. Its goroutine is left behind, and with it the files of
// its stores stay locked until the process ends; what it has not committed is processed by others.
type HungError struct {
	Worker int           // -1: the reader of the global tables
	For    time.Duration // how long it has been silent
	// Task and Node are where it is, with the record if it is one; HasTask is false if it is in no task.
	HasTask bool
	Task    processor.TaskID
	Node    string
	processor.TopicPartition
	Offset int64
}

// Error names worker, task, node and record.
func (e *HungError) Error() string {
	at := "outside of any task"
	if e.HasTask {
		at = fmt.Sprintf("in task %s, node %q", e.Task, e.Node)
		if e.Topic != "" {
			at += fmt.Sprintf(", at %s@%d", e.TopicPartition, e.Offset)
		}
	}
	if e.Worker < 0 {
		at = "in a global table"
	}
	return fmt.Sprintf("millrace: worker %d: a user's function does not return, for %v now, %s; its goroutine is left behind", e.Worker, e.For.Round(time.Millisecond), at)
}

// errExited is why a worker is gone whose Run has not returned.
var errExited = errors.New("millrace: a worker's goroutine was ended from within, as by runtime.Goexit")

// errShutdown is why a worker was abandoned.
var errShutdown = errors.New("millrace: the orderly shutdown took too long; what was not committed will be processed again")

// work runs the workers until serving ends or one of them fails, which it tells stop, and then to their orderly end. It
// returns when all have ended or were left behind.
func (c *crew) work(serving context.Context, stop context.CancelCauseFunc) error {
	hard, abandon := context.WithCancelCause(context.WithoutCancel(serving))
	defer func() {
		abandon(nil)
		close(c.over)
		c.dismiss()
	}()
	c.hard = hard
	for _, m := range c.members {
		go c.run(m, stop)
	}
	ticker := time.NewTicker(min(time.Second, c.app.cfg.MaxPollInterval/4, c.app.cfg.ShutdownTimeout))
	defer ticker.Stop()
	stopping, late := serving.Done(), (<-chan time.Time)(nil)
	var errs []error
	for left := len(c.members); left > 0; {
		select {
		case m := <-c.ended:
			if !m.done {
				m.done = true
				left--
				errs = append(errs, m.err)
			}
		case <-c.wake:
			left += c.welcome(stop)
		case <-stopping:
			stopping, late = nil, time.After(c.app.cfg.ShutdownTimeout)
		case <-late:
			c.abandoned = time.Now()
			abandon(errShutdown)
		case <-ticker.C:
			for _, hung := range c.overdue() {
				left--
				errs = append(errs, hung)
				stop(hung)
			}
			if c.globals != nil && c.globals.silent() >= c.app.cfg.MaxPollInterval {
				stop(&HungError{Worker: -1, For: c.globals.silent(), Offset: -1})
			}
		}
	}
	return errors.Join(errs...)
}

// run runs a worker to its end, and lets go of what it holds however that comes.
func (c *crew) run(m *member, stop context.CancelCauseFunc) {
	m.id <- goroutine()
	m.err = errExited // what is left if a user's function ends the goroutine
	defer func() {
		m.worker.Crash() // nothing is left to drop after an orderly end
		closePort(m.port)
		if m.err != nil {
			stop(m.err)
		}
		select {
		case c.ended <- m:
		case <-c.over: // it was left behind
		}
	}()
	m.err = m.worker.Run(c.hard)
}

// hungAfter is how long a worker may take to notice that it is to drop everything.
const hungAfter = 5 * time.Second

// overdue leaves behind the workers that do not come by, and returns why.
func (c *crew) overdue() (hung []error) {
	for _, m := range c.members {
		if m.done {
			continue
		}
		silent := m.worker.Silent()
		given := !c.abandoned.IsZero() && time.Since(c.abandoned) >= hungAfter
		if silent >= c.app.cfg.MaxPollInterval || given {
			m.done = true
			hung = append(hung, c.leave(m, silent))
		}
	}
	return hung
}

// leave leaves a worker behind: its tasks go to others, and what it commits is refused.
func (c *crew) leave(m *member, silent time.Duration) error {
	if port, ok := m.port.(interface{ Disown() }); ok {
		port.Disown()
	}
	e := &HungError{Worker: m.number, For: silent, Offset: -1}
	if at, ok := m.worker.Whereabouts(); ok {
		e.HasTask, e.Task, e.Node, e.TopicPartition, e.Offset = true, at.Task, at.Node, at.TopicPartition, at.Offset
	}
	c.app.cfg.Logger.Error("a worker hangs: giving up its tasks, and with them this process", "worker", e.Worker, "silent", e.For,
		"task", e.Task.String(), "node", e.Node, "partition", e.TopicPartition.String(), "offset", e.Offset, "stack", stackOf(<-m.id))
	return e
}

// goroutine returns how stacks name the goroutine that calls it.
func goroutine() string {
	head := make([]byte, 64)
	head = head[:goruntime.Stack(head, false)]
	if i := bytes.IndexByte(head, '['); i > 0 {
		return string(head[:i])
	}
	return ""
}

// stackOf returns the stack of another goroutine, empty if it is not found.
func stackOf(id string) string {
	all := make([]byte, 1<<20)
	all = all[:goruntime.Stack(all, true)]
	for stack := range bytes.SplitSeq(all, []byte("\n\n")) {
		if id != "" && bytes.HasPrefix(stack, []byte(id)) {
			return string(stack)
		}
	}
	return ""
}
