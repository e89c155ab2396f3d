package millrace

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace-streams/millrace/internal/kafka"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/topology"
)

// Lag returns how many offsets of the application's input partitions, its repartition topics included, are not yet
// committed by the group: of all processes together, not of this one alone. It is 0 when everything that was written
// before the call is processed and committed; offsets taken by transaction markers and by compaction count until they are
// passed. It may be called from any goroutine while Run runs, and returns ErrNotRunning otherwise.
func (a *App) Lag(ctx context.Context) (int64, error) {
	a.mu.Lock()
	cluster, layout := a.cluster, a.placed
	a.mu.Unlock()
	if cluster == nil {
		return 0, ErrNotRunning
	}
	var inputs []processor.TopicPartition
	for _, id := range layout.Tasks {
		inputs = append(inputs, layout.Inputs[id]...)
	}
	lag, err := cluster.Lag(ctx, inputs)
	if err != nil {
		return 0, fmt.Errorf("millrace: lag: %w", err)
	}
	return lag, nil
}

// ErrNotRunning is returned by what needs a running application.
var ErrNotRunning = errors.New("millrace: the application is not running")

// running makes the cluster and the layout available to queries; nil ends that.
func (a *App) running(cluster *kafka.Cluster, layout *topology.Layout) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cluster, a.placed = cluster, layout
}
