package sim

import (
	"fmt"
	"slices"

	"github.com/millrace-streams/millrace/internal/assign"
	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/topology"
)

// Group is a consumer group that shares out tasks instead of bare partitions, by the plan of a real group (see placement.go).
type Group struct {
	// Latest makes a partition without a committed offset begin at its end; otherwise it begins at its start.
	Latest bool
	// Settings are what the plan is asked for: standbys, warm-ups, and what is no lag worth the name.
	Settings assign.Settings
	// Careless makes the group take positions from whoever sends them: a mistake, which a simulation should find.
	Careless bool

	cluster    *Cluster
	name       string
	generation int32
	joined     int32
	members    []*member // in the order of joining
	tasks      []*assignment
	offsets    map[processor.TopicPartition]processor.Position
}

// Task is a task that a group hands out, with the partitions that it reads and writes.
type Task struct {
	ID         processor.TaskID
	Inputs     []processor.TopicPartition
	Changelogs []Changelog
}

// Changelog is the changelog partition of one store of a task.
type Changelog struct {
	processor.TopicPartition
	Store string
}

// TasksOf returns the tasks of a layout.
func TasksOf(l *topology.Layout) []Task {
	var tasks []Task
	for _, id := range l.Tasks {
		task := Task{ID: id, Inputs: l.Inputs[id]}
		for _, c := range l.Changelogs[id] {
			task.Changelogs = append(task.Changelogs, Changelog{TopicPartition: c.TopicPartition, Store: c.Store})
		}
		tasks = append(tasks, task)
	}
	return tasks
}

// Membership is in whose name offsets are committed.
type Membership struct {
	Member     string // one life of a member: who joins again gets a new name
	Generation int32
}

type member struct {
	name  string
	port  *Port
	gone  bool         // left, or thrown out
	share assign.Share // of the latest plan
}

// assignment is where a task is and where it is to go.
type assignment struct {
	task   Task
	owner  *member   // holds the lease, nil while it is on its way
	target *member   // is to have it, nil until its owner has given it up
	follow []*member // stand by, or warm up
}

// role returns what a member is to be to the task.
func (a *assignment) role(m *member) (role runtime.Role, any bool) {
	if a.target == m {
		return runtime.Active, true
	}
	return runtime.Standby, slices.Contains(a.follow, m)
}

// group returns the group of a name, made when it is first asked for.
func (c *Cluster) group(name string) *Group {
	g := c.groups[name]
	if g == nil {
		g = &Group{cluster: c, name: name, offsets: map[processor.TopicPartition]processor.Position{}}
		c.groups[name] = g
	}
	return g
}

// Group returns the group of that name and lets it hand out the tasks, in the given order. The group's committed offsets
// stay as they are. No member may have joined.
func (c *Cluster) Group(name string, tasks []Task) *Group {
	g := c.group(name)
	g.tasks = nil
	for _, t := range tasks {
		g.tasks = append(g.tasks, &assignment{task: t})
	}
	return g
}

// Committed returns the group's committed position of a partition. It is false if there is none.
func (g *Group) Committed(tp processor.TopicPartition) (processor.Position, bool) {
	p, ok := g.offsets[tp]
	return p, ok
}

// Settled reports whether every task is where it is to be, and its committed positions have reached the last stable offsets,
// past all records that can be read.
func (g *Group) Settled() bool {
	for _, m := range g.members {
		if len(m.share.Warmup)+len(m.share.Promised) > 0 {
			return false
		}
	}
	for _, a := range g.tasks {
		if a.owner == nil || a.owner != a.target {
			return false
		}
		for _, tp := range a.task.Inputs {
			records, _, err := g.cluster.Read(tp, g.position(tp).Offset, 1)
			if err != nil || len(records) > 0 {
				return false
			}
		}
	}
	return true
}

// CommitOffsets commits positions outside of any transaction, in the name of a member.
func (g *Group) CommitOffsets(m Membership, positions []processor.Position) error {
	if err := g.check(m); err != nil {
		return err
	}
	g.commit(positions)
	return nil
}

func (g *Group) commit(positions []processor.Position) {
	for _, p := range positions {
		g.offsets[p.TopicPartition] = p
	}
}

// check refuses whoever is not a member of the current generation.
func (g *Group) check(m Membership) error {
	known := slices.ContainsFunc(g.members, func(o *member) bool { return o.name == m.Member })
	switch {
	case g.Careless:
	case !known:
		return fmt.Errorf("%w: %q", ErrUnknownMember, m.Member)
	case m.Generation != g.generation:
		return fmt.Errorf("%w: %d, the group is at %d", ErrIllegalGeneration, m.Generation, g.generation)
	}
	return nil
}

func (g *Group) join(name string, p *Port) *member {
	g.joined++
	m := &member{name: fmt.Sprintf("%s#%d", name, g.joined), port: p}
	g.members = append(g.members, m)
	g.rebalance()
	return m
}

// remove takes a member out of the group. Its tasks are free at once: what it still tries to commit is refused.
func (g *Group) remove(m *member) {
	if m == nil || m.gone {
		return
	}
	m.gone = true
	g.members = slices.DeleteFunc(g.members, func(o *member) bool { return o == m })
	for _, a := range g.tasks {
		if a.owner == m {
			a.owner = nil
		}
		if a.target == m {
			a.target = nil
		}
	}
	g.rebalance()
}

// lease looks up where a task's partitions stand. It is false while a transaction of a predecessor is undecided.
func (g *Group) lease(t Task) (runtime.Lease, bool) {
	lease := g.standby(t)
	lease.Role = runtime.Active
	for _, tp := range t.Inputs {
		if g.cluster.undecided(g, tp) {
			return lease, false
		}
		p := g.position(tp)
		lease.Inputs = append(lease.Inputs, runtime.Input{TopicPartition: tp, Offset: p.Offset, Metadata: p.Metadata, End: g.cluster.End(tp)})
	}
	return lease, true
}

// standby says where the changelogs of a task stand.
func (g *Group) standby(t Task) runtime.Lease {
	lease := runtime.Lease{Task: t.ID, Role: runtime.Standby}
	for _, c := range t.Changelogs {
		lease.Changelogs = append(lease.Changelogs, runtime.Changelog{
			TopicPartition: c.TopicPartition, Store: c.Store,
			Start: g.cluster.Start(c.TopicPartition), End: g.cluster.End(c.TopicPartition),
		})
	}
	return lease
}

// position is the committed one, else as the reset policy says.
func (g *Group) position(tp processor.TopicPartition) processor.Position {
	if p, ok := g.offsets[tp]; ok {
		return p
	}
	p := processor.Position{TopicPartition: tp, Offset: g.cluster.Start(tp)}
	if g.Latest {
		p.Offset = g.cluster.End(tp)
	}
	return p
}
