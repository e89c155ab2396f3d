package kafka

import (
	"cmp"
	"slices"

	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
)

// Follow is how far a store of a task has come that this process stands by for.
type Follow struct {
	Task     processor.TaskID
	Store    string
	Position int64 // offset of the changelog that is read next
	End      int64 // of the changelog, exclusive, when it was last looked at: every second, or more often
}

// Standbys returns the stores that this process keeps up to date for tasks that it does not work on, by task and name; those
// of which it is not known yet how far they are, as before they are opened, are left out.
func (c *Cluster) Standbys() (all []Follow) {
	c.mu.Lock()
	g := c.group
	c.mu.Unlock()
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, l := range g.leases {
		if l.role != runtime.Standby || l.state != held {
			continue
		}
		for _, log := range l.task.Changelogs {
			at, opened := g.followed[log.TopicPartition]
			if ends, known := g.logs[log.TopicPartition]; opened && known {
				all = append(all, Follow{Task: l.task.ID, Store: log.Store, Position: at, End: max(at, ends.End)})
			}
		}
	}
	slices.SortFunc(all, func(a, b Follow) int {
		return cmp.Or(cmp.Compare(a.Task.Subtopology, b.Task.Subtopology), cmp.Compare(a.Task.Partition, b.Task.Partition), cmp.Compare(a.Store, b.Store))
	})
	return all
}
