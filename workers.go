package millrace

import (
	"context"
	"errors"
	"fmt"
	"io"

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
	a.size = n
	a.cfg.Logger.Info("number of workers changed", "app", a.cfg.ApplicationID, "workers", n)
	a.crew.hire(ports)
	return nil
}

// workers returns how many workers there are to be.
func (a *App) workers() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.size
}

// staffed makes the running workers available to SetWorkers; nil ends that.
func (a *App) staffed(c *crew) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.crew = c
}

// hire makes members for ports that have come while the others work. It may be called from any goroutine.
func (c *crew) hire(ports []runtime.Port) {
	c.mu.Lock()
	c.hired = append(c.hired, ports...)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// welcome starts the members that were hired, and returns how many they are.
func (c *crew) welcome(stop context.CancelCauseFunc) int {
	c.mu.Lock()
	ports := c.hired
	c.hired = nil
	c.mu.Unlock()
	for _, port := range ports {
		m := c.join(port)
		go c.run(m, stop)
	}
	return len(ports)
}

// dismiss closes the ports of those that were hired too late: all others have ended.
func (c *crew) dismiss() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, port := range c.hired {
		closePort(port)
	}
	c.hired = nil
}

func closePort(port runtime.Port) {
	if p, ok := port.(io.Closer); ok {
		_ = p.Close() // a port's Close cannot fail
	}
}
