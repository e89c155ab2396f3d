package millrace

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace-streams/millrace/internal/kafka"
	"github.com/millrace-streams/millrace/internal/statedir"
	"github.com/millrace-streams/millrace/topology"
)

// ErrRunning is wrapped by what Reset returns while a process of the application runs.
var ErrRunning = kafka.ErrRunning

// Reset makes an application begin anew, as one that has never run: it deletes the committed offsets of its group, its
// changelogs and repartition topics, and the stores in cfg.StateDir. Its next start processes all input that is left, as
// cfg.OffsetReset says; what is in its output topics stays there. It is Kafka Streams' application reset tool.
//
// No process of the application may run, and none may be started before Reset has returned: else the error wraps
// ErrRunning, or that process ends with an error. State directories of other processes need not be emptied: what they hold
// is recognised as that of another life. After an error Reset can be called again.
func Reset(ctx context.Context, topo *topology.Topology, cfg Config) (err error) {
	a, err := New(topo, cfg)
	if err != nil {
		return err
	}
	dir, err := statedir.Open(a.cfg.StateDir, a.cfg.ApplicationID)
	if err != nil {
		return fmt.Errorf("millrace: %w", err)
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	cluster, err := a.connect(ctx, dir.ProcessID)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	if err := cluster.Reset(ctx, a.internalTopics()); err != nil {
		return fmt.Errorf("millrace: reset: %w", err)
	}
	if err := dir.Clear(); err != nil {
		return fmt.Errorf("millrace: reset: %w", err)
	}
	return nil
}

// internalTopics names the topics that the application makes.
func (a *App) internalTopics() []string {
	var names []string
	for _, t := range a.topo.SourceTopics() {
		if t.Internal {
			names = append(names, t.Physical(a.cfg.ApplicationID))
		}
	}
	for _, spec := range a.topo.Specs() {
		for _, s := range spec.Stores {
			names = append(names, s.Changelog(a.cfg.ApplicationID))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
