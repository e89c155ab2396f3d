package kafka

import (
	"errors"
	"slices"
	"time"

	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
)

// find looks up where the partitions of leases stand, and grants each lease as soon as all of its partitions are known. It
// tries again until every lease is granted or has ended.
func (g *group) find(leases []*lease) {
	ctx := g.cluster.ctx
	for _, l := range leases {
		g.doubts.clear(l.task.ID)
	}
	began := time.Now()
	for wait := firstPause; ; wait = min(2*wait, lastPause) {
		if leases = g.stillLooking(leases); len(leases) == 0 {
			return
		}
		later, err := g.findOnce(leases, time.Since(began))
		if err != nil {
			g.fail(err)
			return
		}
		if leases = later; len(leases) > 0 && !pause(ctx, wait) {
			return
		}
	}
}

// findOnce asks once about leases of the same role, and returns the leases to try again. An error is one that no retry can help.
//
// The committed positions come first. They are stable ones: as long as a transaction of the task's former owner is open
// that holds its positions, the answer is an error. So what that owner has written to the changelogs is decided, and
// complete, when their ends are asked for.
func (g *group) findOnce(leases []*lease, since time.Duration) (later []*lease, err error) {
	if leases[0].role == runtime.Standby {
		return g.findChangelogs(leases, since)
	}
	var inputs []processor.TopicPartition
	for _, l := range leases {
		inputs = append(inputs, l.task.Inputs...)
	}
	positions, err := g.cluster.committedOffsets(g.siblings(inputs))
	if err != nil {
		g.cluster.cfg.Logger.Debug("committed offsets cannot be had yet", "error", err)
		return leases, g.hopeless(leases[0].task, err, since)
	}
	g.doubt(positions)
	var ready []*lease
	var all []processor.TopicPartition
	for _, l := range leases {
		if err := unsettled(l.task, positions); err != nil {
			later = append(later, l)
			if err := g.hopeless(l.task, err, since); err != nil {
				return nil, err
			}
			continue
		}
		ready = append(ready, l)
		all = append(all, l.task.partitions()...)
	}
	on, known, err := g.survey(ready, all, since)
	if err != nil || !known {
		return leases, err
	}
	on.positions = positions
	for _, l := range ready {
		ok, err := g.settle(l.task, on, since)
		switch {
		case err != nil:
			return nil, err
		case ok:
			g.grant(l, on.lease(l.task))
		default:
			later = append(later, l)
		}
	}
	return later, nil
}

// survey asks where logs stand, and what the topics of leases are. known is false if the topics could not be asked for. An
// error is one that no retry can help.
func (g *group) survey(leases []*lease, partitions []processor.TopicPartition, since time.Duration) (on ground, known bool, err error) {
	asked := time.Now()
	logs, failed := g.cluster.ranges(partitions)
	for tp, err := range failed {
		if err := g.cluster.hopeless(tp, err, since); err != nil {
			return on, false, err
		}
	}
	var names []string
	for _, l := range leases {
		names = append(names, l.task.topics()...)
	}
	topics, err := g.cluster.topicStates(names)
	return ground{logs: logs, topics: topics, asked: asked}, err == nil, nil
}

// committed remembers positions that are committed for certain.
func (g *group) committed(positions []processor.Position) {
	g.purger.committed(positions)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range positions {
		g.known[p.TopicPartition] = p.Offset
	}
}

// doubt makes errors of the answers that fall short of what this process has committed itself: a coordinator in
// transition may say that there is no offset when it has not read it yet, or has lost it. To believe it would be to process
// records twice, on top of what they have left behind.
func (g *group) doubt(positions map[processor.TopicPartition]committed) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for tp, c := range positions {
		if known, ok := g.known[tp]; ok && c.err == nil && c.offset < known {
			positions[tp] = committed{err: &OffsetForgottenError{TopicPartition: tp, Committed: known, Answer: c.offset}}
		}
	}
}

// hopeless returns the error to give up with, nil if it is worth another try.
func (g *group) hopeless(t *TaskInfo, err error, since time.Duration) error {
	if forgotten := (*OffsetForgottenError)(nil); errors.As(err, &forgotten) {
		if !g.doubts.last(t.ID, g.cluster.cfg.LossAfter) {
			return nil
		}
		return forgotten
	}
	var at processor.TopicPartition
	if len(t.Inputs) > 0 {
		at = t.Inputs[0]
	}
	var one *PartitionError
	if errors.As(err, &one) {
		at = one.TopicPartition
	}
	return g.cluster.hopeless(at, err, since)
}

// unsettled returns why a committed position of the task is not known, nil if all are.
func unsettled(t *TaskInfo, positions map[processor.TopicPartition]committed) error {
	for _, tp := range t.Inputs {
		if err := positions[tp].err; err != nil {
			return &PartitionError{TopicPartition: tp, Err: err}
		}
	}
	return nil
}

// lease makes the lease of a task whose positions are settled.
func (on ground) lease(t *TaskInfo) runtime.Lease {
	l := runtime.Lease{Task: t.ID, Marks: marksOf(t, on), Asked: on.asked}
	for _, tp := range t.Inputs {
		p := on.positions[tp]
		l.Inputs = append(l.Inputs, runtime.Input{TopicPartition: tp, Offset: p.offset, Metadata: p.metadata, End: on.logs[tp].End})
	}
	for _, c := range t.Changelogs {
		log := on.logs[c.TopicPartition]
		l.Changelogs = append(l.Changelogs, runtime.Changelog{
			TopicPartition: c.TopicPartition, Store: c.Store, ID: on.topics[c.Topic].name(), Start: log.Start, End: log.End,
		})
	}
	return l
}

// findChangelogs asks once where the changelogs of standbys stand, grants those of which all is known, and returns the others.
func (g *group) findChangelogs(leases []*lease, since time.Duration) (later []*lease, err error) {
	var all []processor.TopicPartition
	for _, l := range leases {
		all = append(all, l.task.changelogs()...)
	}
	on, known, err := g.survey(leases, all, since)
	if err != nil || !known {
		return leases, err
	}
	for _, l := range leases {
		if standby := (&TaskInfo{ID: l.task.ID, Changelogs: l.task.Changelogs}); on.knows(standby) {
			g.grant(l, on.lease(standby))
		} else {
			later = append(later, l)
		}
	}
	return later, nil
}

// partitions returns all that the task reads.
func (t *TaskInfo) partitions() []processor.TopicPartition {
	return append(slices.Clone(t.Inputs), t.changelogs()...)
}

func (t *TaskInfo) changelogs() (all []processor.TopicPartition) {
	for _, c := range t.Changelogs {
		all = append(all, c.TopicPartition)
	}
	return all
}
