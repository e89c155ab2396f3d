package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace-streams/millrace/processor"
)

// watchPartitions looks out for input topics that have got more partitions. Where nothing depends on which partition a key
// is in, there are more tasks from then on; otherwise the application ends, for keys have moved to other partitions than
// their state.
func (g *group) watchPartitions(ctx context.Context) {
	every := g.cluster.conf.Metadata.RefreshFrequency
	if every <= 0 {
		every = metadataAge
	}
	for pause(ctx, every) {
		for topic, had := range g.tasks().topics {
			have, err := g.cluster.control.Partitions(topic)
			if err != nil || int32(len(have)) <= had {
				continue
			}
			err = g.grow(ctx, &PartitionCountError{Topic: topic, Want: had, Have: int32(len(have))})
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				g.fail(err)
				return
			}
			break // the table is another one now
		}
	}
}

// grow takes up the tasks that have come with new partitions.
func (g *group) grow(ctx context.Context, cause *PartitionCountError) error {
	if g.cluster.cfg.Replan == nil {
		return cause
	}
	tasks, err := g.cluster.cfg.Replan(ctx)
	if err != nil {
		return errors.Join(cause, err)
	}
	table := newTaskTable(tasks)
	g.mu.Lock()
	defer g.unlock()
	old := g.tasks()
	for id, t := range old.byID {
		if now := table.byID[id]; now == nil || !slices.Equal(now.Inputs, t.Inputs) {
			return fmt.Errorf("%w: task %s would read other partitions than before: start the application anew", cause, id)
		}
	}
	if table.topics[cause.Topic] < cause.Have {
		return cause
	}
	g.cluster.cfg.Logger.Info("a topic has got more partitions", "topic", cause.Topic, "had", cause.Want, "has", cause.Have, "tasks", len(table.list))
	for tp := range table.byInput {
		if _, known := old.byInput[tp]; !known {
			g.grown[tp] = true
		}
	}
	g.table.Store(table)
	g.want() // the leader may have known of them before
	g.reconcile()
	signal(g.summon) // or not, if it is this process
	return nil
}

// isNew reports whether an input partition has come into being while this process was running. What is in it was written
// meanwhile, so it is read from its beginning whatever the reset policy says about partitions without a position.
func (g *group) isNew(tp processor.TopicPartition) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.grown[tp]
}

// tasks returns all tasks of the application.
func (g *group) tasks() *taskTable { return g.table.Load() }
