package example

import (
	"context"
	"errors"
	"time"

	"github.com/millrace-streams/millrace"
	"github.com/millrace-streams/millrace/internal/topicread"
	"github.com/millrace-streams/millrace/topology"
)

// Running is an application at work.
type Running struct {
	*Home
	app   *millrace.App
	ended <-chan error // closed behind the result
}

// Run runs an application until ctx ends.
func (h *Home) Run(ctx context.Context, topo *topology.Topology) error {
	app, err := millrace.New(topo, h.config)
	if err != nil {
		return err
	}
	return app.Run(ctx)
}

// While runs an application for as long as work does, and returns what has gone wrong with either.
func (h *Home) While(ctx context.Context, topo *topology.Topology, work func(*Running) error) error {
	app, err := millrace.New(topo, h.config)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- app.Run(running)
		close(ended)
	}()
	err = work(&Running{Home: h, app: app, ended: ended})
	stop()
	return errors.Join(err, <-ended)
}

// pause between two looks at what is still to be processed: short at first, for a record alone is processed in a moment.
const (
	shortestPause = 2 * time.Millisecond
	longestPause  = 50 * time.Millisecond
)

// Settle waits until the application has processed and committed all that its input topics hold, and until what it has
// written to the given topics can be read.
func (r *Running) Settle(ctx context.Context, outputs ...string) error {
	if err := r.caughtUp(ctx); err != nil {
		return err
	}
	for _, topic := range outputs {
		if err := topicread.Settled(ctx, r.client, topic); err != nil {
			return err
		}
	}
	return nil
}

func (r *Running) caughtUp(ctx context.Context) error {
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		lag, err := r.app.Lag(ctx)
		switch {
		case errors.Is(err, millrace.ErrNotRunning): // it is still starting
		case err != nil:
			return err
		case lag == 0:
			return nil
		}
		if err := r.sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// sleep waits a little. It is an error if the application ends meanwhile.
func (r *Running) sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-r.ended:
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errors.Join(errors.New("the application ended early"), err)
	case <-time.After(d):
		return nil
	}
}
