package millrace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/millrace-streams/millrace/internal/runtime"
)

// SetWorkers changes how many workers share the tasks of this process, as Kafka Streams' addStreamThread and
// removeStreamThread do; there are never more than tasks. Tasks move as few as that takes: each is committed and closed by
// its old worker and opened by the new one, and the others go on meanwhile. A store in memory is read from its changelog
// again. The other processes then give this one tasks, or take some, so that each has a share according to its workers. It
// returns at once, may be called from any goroutine while Run runs, and returns ErrNotRunning otherwise.
func (a *App) SetWorkers(n int) error {
	if n < 1 {
		return fmt.Errorf("%w: %d workers", ErrConfig, n)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cluster == nil || a.crew == nil {
		return ErrNotRunning
	}
	ports, err := a.cluster.SetWorkers(n)
	if err != nil {
		return errors.Join(ErrNotRunning, err)
	}
	a.cfg.Logger.Info("number of workers changed", "app", a.cfg.ApplicationID, "workers", n)
	a.crew.join(ports)
	return nil
}

// staffed makes the running workers available to SetWorkers; nil ends that.
func (a *App) staffed(c *crew) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.crew = c
}

// crew is the workers of a process, each in a goroutine.
type crew struct {
	run  func(runtime.Port) error
	stop func(error) // the others, because of one that failed

	mu      sync.Mutex
	working int
	ended   bool // nobody is waited for any more
	errs    []error
	changed chan struct{}
}

func newCrew(run func(runtime.Port) error, stop func(error)) *crew {
	return &crew{run: run, stop: stop, changed: make(chan struct{}, 1)}
}

// join starts a worker on each of the ports, unless the others have just ended. It may be called while they work.
func (c *crew) join(ports []runtime.Port) {
	for _, port := range ports {
		c.mu.Lock()
		late := c.ended
		if !late {
			c.working++
		}
		c.mu.Unlock()
		if late {
			closePort(port)
			continue
		}
		go func() {
			err := errExited // what is left if a user's function ends the goroutine
			defer func() { c.leave(err) }()
			err = c.run(port)
		}()
	}
}

func closePort(port runtime.Port) {
	if c, ok := port.(io.Closer); ok {
		_ = c.Close() // a port's Close cannot fail
	}
}

func (c *crew) leave(err error) {
	if err != nil {
		c.stop(err)
	}
	c.mu.Lock()
	c.working--
	c.errs = append(c.errs, err)
	c.mu.Unlock()
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// left returns how many are working, and what those who are not have failed of.
func (c *crew) left() (working int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = c.working == 0
	return c.working, errors.Join(c.errs...)
}

// wait waits for all workers, for those that are told to drop everything not much longer.
func (c *crew) wait(hard context.Context) error {
	told, late := hard.Done(), (<-chan time.Time)(nil)
	for {
		working, err := c.left()
		if working == 0 {
			return err
		}
		select {
		case <-c.changed:
		case <-told:
			told, late = nil, time.After(hungAfter)
		case <-late:
			return errors.Join(err, errHung)
		}
	}
}

// hungAfter is how long a worker may take to notice that it is to drop everything.
const hungAfter = 5 * time.Second

// errHung is why Run returns though a worker does not.
var errHung = errors.New("millrace: a user's function does not return; its goroutine is left behind")

// errExited is why a worker is gone whose Run has not returned.
var errExited = errors.New("millrace: a worker's goroutine was ended from within, as by runtime.Goexit")

// runWorker runs a worker to its end, and lets go of what it holds however that comes.
func (a *App) runWorker(ctx context.Context, cfg runtime.Config, port runtime.Port) error {
	worker := runtime.NewWorker(cfg, port)
	defer func() {
		worker.Crash() // nothing is left to drop after an orderly end
		closePort(port)
	}()
	return worker.Run(ctx)
}
