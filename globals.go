package millrace

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace-streams/millrace/internal/kafka"
	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/memory"
	"github.com/millrace-streams/millrace/topology"
)

// globals reads the application's global tables up to where their topics end now, and then goes on following them until
// ctx ends; an error on the way is told to failed. The returned function waits for the end.
func (a *App) globals(ctx context.Context, cluster *kafka.Cluster, layout *topology.Layout, failed func(error)) (*runtime.Globals, func(), error) {
	g := runtime.NewGlobals(a.topo.Globals(), inMemory, processor.Options{App: a.cfg.ApplicationID, Policy: a.cfg.Errors, Dropped: a.cfg.OnDropped}, a.stores)
	if len(g.Topics()) == 0 {
		return g, func() {}, nil
	}
	observer, err := observe(ctx, cluster, g, layout)
	if err != nil {
		return nil, nil, err
	}
	ready, ended := make(chan struct{}), make(chan error, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := g.Follow(ctx, observer, ready); err != nil {
			ended <- err
			failed(err)
		}
	}()
	select {
	case <-ready:
		a.cfg.Logger.Info("global tables are read", "topics", g.Topics())
		return g, func() { a.linger(done) }, nil
	case err := <-ended:
		return nil, nil, fmt.Errorf("global tables: %w", err)
	case <-ctx.Done():
		a.linger(done)
		return nil, nil, context.Cause(ctx)
	}
}

// linger waits for the end of the tables' reader, unless a user's function keeps it.
func (a *App) linger(done <-chan struct{}) {
	select {
	case <-done:
	case <-time.After(hungAfter):
		a.cfg.Logger.Error("the function of a global table does not return: its goroutine is left behind", "app", a.cfg.ApplicationID)
	}
}

// observe starts to read all partitions of the global tables' topics.
func observe(ctx context.Context, cluster *kafka.Cluster, g *runtime.Globals, layout *topology.Layout) (runtime.Observer, error) {
	var partitions []processor.TopicPartition
	for _, topic := range g.Topics() {
		for p := range layout.Partitions[topic] {
			partitions = append(partitions, processor.TopicPartition{Topic: topic, Partition: p})
		}
	}
	logs, err := cluster.Ranges(ctx, partitions)
	if err != nil {
		return nil, fmt.Errorf("global tables: %w", err)
	}
	observer := cluster.Observe()
	for tp, log := range logs {
		g.Until(tp, log.Start, log.End)
		observer.Fetch(tp, log.Start)
	}
	return observer, nil
}

// inMemory is where global tables live: they are read anew at each start.
func inMemory() store.Backend { return memory.New() }
