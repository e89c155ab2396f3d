// Package assign decides who works on which task: processes of a group among themselves (Plan), and the workers inside a
// process (Workers, Level). All are pure functions of their arguments, so that every process would come to the same result.
package assign

import (
	"cmp"
	"slices"

	"github.com/millrace-streams/millrace/processor"
)

// Task is a task to be assigned. Weight is its share of work relative to others; less than 1 means 1.
type Task struct {
	ID     processor.TaskID
	Weight int
	// Stateful tasks have changelogs, which whoever takes them over has to read first.
	Stateful bool
	// Size is how many offsets the changelogs hold: what a member lacks that has no state.
	Size int64
}

// Member is a member of the group.
type Member struct {
	ID       string
	Capacity int                // share of work it can do relative to others, such as its workers; less than 1 means 1
	Rack     string             // where it runs, if it is known
	Owned    []processor.TaskID // what it works on now
	// Generation is the group generation as of which it owns them. Who is behind others has lost what they own.
	Generation int32
	// Promised is what the plan of that generation has promised it (see Share).
	Promised []processor.TaskID
	// State is what it has of stateful tasks. For a task that it owns, an entry means that it is still restoring.
	State map[processor.TaskID]State
}

// State is what a member has of a stateful task.
type State struct {
	Lag   int64 // changelog offsets that it lacks
	Open  bool  // it follows the changelog; otherwise the state lies on its disk
	Ready bool  // it follows and has caught up: it can take the task over at once
}

// Settings are the group's.
type Settings struct {
	Standbys   int // replicas of each stateful task beside the one that works
	MaxWarmups int // replicas in the whole group that are read beyond that, to be moved to; less than 1 means 1
	// AcceptableLag is how many offsets a member may lack to be ready. A task that has no more of them altogether can go
	// anywhere.
	AcceptableLag int64
}

// Share is what a member is to do. Active, Standby and Warmup have no task in common. All are in the order of Compare.
type Share struct {
	Active  []processor.TaskID
	Standby []processor.TaskID // to be followed for the case that its owner dies
	Warmup  []processor.TaskID // to be followed because it is to move here, as soon as that has caught up
	// Promised is what the member gets when the present owner has given it up; stateful tasks are among the Warmups.
	Promised []processor.TaskID
}

// Plan shares out the tasks, by member id.
//
// The aim is a balance: the loads (weight over capacity) differ by no more than one task would change, and a task stays
// with its owner unless that is needed for the balance. On the way to it nobody waits: a stateful task moves only to a
// member that is ready, and until then stays with its owner while the other one warms up. A task without an owner goes to
// the least loaded of those that are ready, else to who lacks least.
//
// A task that moves is assigned to nobody as long as its owner has not given it up (withheld); the owner is left without
// it, another one is promised it, and the group rebalances again when it has.
//
// Standbys are on other members than the task, in other racks first, with those that lack least, and balanced. One that
// is to move stays where it is, too, until the other one is ready.
func Plan(tasks []Task, members []Member, s Settings) map[string]Share {
	if len(members) == 0 {
		return map[string]Share{}
	}
	p := newPlan(newBalance(tasks, members, s))
	p.keep()
	p.place()
	p.level()
	p.assign()
	p.prepare()
	p.warmUp()
	p.standBy()
	p.warmUp()
	return p.shares()
}

// Compare orders tasks by sub-topology, then partition.
func Compare(a, b processor.TaskID) int {
	return cmp.Or(cmp.Compare(a.Subtopology, b.Subtopology), cmp.Compare(a.Partition, b.Partition))
}

// plan is who does what, beside the balance that is aimed at.
type plan struct {
	*balance
	active map[processor.TaskID]*load   // who works on it; nobody while it is withheld
	heir   map[processor.TaskID]*load   // who is to get it when it has been given up
	warm   map[processor.TaskID][]*load // who warms up
	stand  map[processor.TaskID][]*load // who stands by
	wishes []wish
}

// wish is a replica that should be somewhere else than it is, and cannot go there yet.
type wish struct {
	task Task
	to   *load
}

func newPlan(b *balance) *plan {
	return &plan{
		balance: b, active: map[processor.TaskID]*load{}, heir: map[processor.TaskID]*load{},
		warm: map[processor.TaskID][]*load{}, stand: map[processor.TaskID][]*load{},
	}
}

// assign makes what the balance is by now the assignment.
func (p *plan) assign() {
	for _, l := range p.loads {
		for _, t := range l.tasks {
			if p.owner[t.ID] == l || !p.claimed[t.ID] {
				p.active[t.ID] = l
			} else {
				p.heir[t.ID] = l
			}
		}
	}
}

// prepare goes on from the assignment towards the balance, with moves that must wait until somebody is ready. It looks no
// further ahead than there may be warm-ups: the first of these moves makes sense without the others.
func (p *plan) prepare() {
	for len(p.wishes) < p.warmups {
		t, to, ok := p.move(anywhere)
		if !ok {
			break
		}
		if p.active[t.ID] != nil && t.Stateful && t.Size > p.acceptable {
			p.wishes = slices.DeleteFunc(p.wishes, func(w wish) bool { return w.task.ID == t.ID }) // moved on
			p.wishes = append(p.wishes, wish{t, to})
		}
	}
	p.wishes = slices.DeleteFunc(p.wishes, func(w wish) bool { return p.active[w.task.ID] == w.to }) // and back
}

func anywhere(Task, *load) bool { return true }

// warmUp grants wishes, those that are nearest to their end first.
func (p *plan) warmUp() {
	slices.SortStableFunc(p.wishes, func(a, b wish) int {
		return cmp.Or(falseFirst(!a.to.open(a.task), !b.to.open(b.task)), cmp.Compare(a.to.lag(a.task), b.to.lag(b.task)),
			Compare(a.task.ID, b.task.ID))
	})
	for _, w := range p.wishes {
		if p.warmups > 0 {
			p.warmups--
			p.warm[w.task.ID] = append(p.warm[w.task.ID], w.to)
		}
	}
	p.wishes = p.wishes[:0]
}

func (p *plan) shares() map[string]Share {
	all := map[string]*Share{}
	of := func(l *load) *Share {
		if all[l.member.ID] == nil {
			all[l.member.ID] = &Share{}
		}
		return all[l.member.ID]
	}
	tasks := slices.Clone(p.tasks)
	slices.SortFunc(tasks, func(x, y Task) int { return Compare(x.ID, y.ID) })
	for _, t := range tasks {
		if l := p.active[t.ID]; l != nil {
			of(l).Active = append(of(l).Active, t.ID)
		}
		if l := p.heir[t.ID]; l != nil {
			of(l).Promised = append(of(l).Promised, t.ID)
			if t.Stateful {
				p.warm[t.ID] = append(p.warm[t.ID], l)
			}
		}
		for _, l := range p.stand[t.ID] {
			of(l).Standby = append(of(l).Standby, t.ID)
		}
		for _, l := range p.warm[t.ID] {
			of(l).Warmup = append(of(l).Warmup, t.ID)
		}
	}
	shares := map[string]Share{}
	for id, s := range all {
		shares[id] = *s
	}
	return shares
}

// falseFirst orders what is not so before what is.
func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
