// Package assign decides who works on which task: processes of a group among themselves (Plan), and the workers inside a
// process (Workers). Both are pure functions of their arguments, so that every process would come to the same result.
package assign

import (
	"cmp"
	"slices"
	"strings"

	"github.com/millrace-streams/millrace/processor"
)

// Task is a task to be assigned. Weight is its share of work relative to others; less than 1 means 1.
type Task struct {
	ID     processor.TaskID
	Weight int
}

// Member is a member of the group.
type Member struct {
	ID       string
	Capacity int                // share of work it can do relative to others, such as its workers; less than 1 means 1
	Owned    []processor.TaskID // what it works on now
	// Generation is the group generation as of which it owns them. Who is behind others has lost what they own.
	Generation int32
	Prior      []processor.TaskID // what it has state for on its disk, though it does not work on it
}

// Plan assigns each task to one member, by member id. The loads (weight over capacity) differ by no more than one task
// would change, and a task stays with its owner unless that is needed for the balance; a task without an owner goes to a
// member that has state for it if the balance allows.
//
// A task that has to move is assigned to nobody as long as its owner has not given it up (withheld); the owner is left
// without it, and the group rebalances again when it has.
func Plan(tasks []Task, members []Member) map[string][]processor.TaskID {
	plan := map[string][]processor.TaskID{}
	if len(members) == 0 {
		return plan
	}
	b := newBalance(tasks, members)
	b.keep()
	b.place()
	b.level()
	for _, l := range b.loads {
		for _, t := range l.tasks {
			if b.owner[t.ID] == l.member.ID || !b.claimed[t.ID] {
				plan[l.member.ID] = append(plan[l.member.ID], t.ID)
			}
		}
		slices.SortFunc(plan[l.member.ID], Compare)
	}
	return plan
}

// Compare orders tasks by sub-topology, then partition.
func Compare(a, b processor.TaskID) int {
	return cmp.Or(cmp.Compare(a.Subtopology, b.Subtopology), cmp.Compare(a.Partition, b.Partition))
}

// load is what a member would have to do.
type load struct {
	member Member
	weight int
	tasks  []Task
}

// below reports whether the member would be less loaded with w more than other is now.
func (l *load) below(other *load, w int) bool {
	return (l.weight+w)*other.member.Capacity < other.weight*l.member.Capacity
}

func (l *load) add(t Task) {
	l.weight += t.Weight
	l.tasks = append(l.tasks, t)
}

func (l *load) remove(i int) Task {
	t := l.tasks[i]
	l.weight -= t.Weight
	l.tasks = slices.Delete(l.tasks, i, i+1)
	return t
}

type balance struct {
	tasks   []Task // heaviest first
	loads   []*load
	claimed map[processor.TaskID]bool   // somebody says to own it
	owner   map[processor.TaskID]string // whose claim counts
	placed  map[processor.TaskID]bool
}

func newBalance(tasks []Task, members []Member) *balance {
	b := &balance{claimed: map[processor.TaskID]bool{}, owner: map[processor.TaskID]string{}, placed: map[processor.TaskID]bool{}}
	for _, t := range tasks {
		t.Weight = max(t.Weight, 1)
		b.tasks = append(b.tasks, t)
	}
	slices.SortFunc(b.tasks, func(x, y Task) int { return cmp.Or(cmp.Compare(y.Weight, x.Weight), Compare(x.ID, y.ID)) })
	for _, m := range members {
		m.Capacity = max(m.Capacity, 1)
		b.loads = append(b.loads, &load{member: m})
	}
	slices.SortFunc(b.loads, func(x, y *load) int { return strings.Compare(x.member.ID, y.member.ID) })
	newest := map[processor.TaskID]int32{}
	for _, l := range b.loads {
		for _, id := range l.member.Owned {
			g, again := newest[id]
			b.claimed[id] = true
			switch {
			case !again || l.member.Generation > g:
				newest[id], b.owner[id] = l.member.Generation, l.member.ID
			case l.member.Generation == g: // both cannot be right, so neither is believed
				delete(b.owner, id)
			}
		}
	}
	return b
}

// keep leaves owned tasks where they are.
func (b *balance) keep() {
	for _, l := range b.loads {
		for _, t := range b.tasks {
			if b.owner[t.ID] == l.member.ID {
				l.add(t)
				b.placed[t.ID] = true
			}
		}
	}
}

// place gives tasks without an owner to those who have state for them while that keeps the balance, and the rest, heavy
// ones first, to whoever has least to do.
func (b *balance) place() {
	total, capacity := 0, 0
	for _, t := range b.tasks {
		total += t.Weight
	}
	for _, l := range b.loads {
		capacity += l.member.Capacity
	}
	for _, l := range b.loads {
		for _, t := range b.tasks {
			// Rounded up: a fair share of 2.5 tasks is 3 for one of two members.
			fair := (total*l.member.Capacity + capacity - 1) / capacity
			if !b.placed[t.ID] && slices.Contains(l.member.Prior, t.ID) && l.weight+t.Weight <= fair {
				l.add(t)
				b.placed[t.ID] = true
			}
		}
	}
	for _, t := range b.tasks {
		if b.placed[t.ID] {
			continue
		}
		least := b.loads[0]
		for _, l := range b.loads[1:] {
			// Compared as they would be with the task: a large member is fuller for the same load.
			if (l.weight+t.Weight)*least.member.Capacity < (least.weight+t.Weight)*l.member.Capacity {
				least = l
			}
		}
		least.add(t)
		b.placed[t.ID] = true
	}
}

// level moves tasks from those who have more to do to those who have less, as long as the one who gets a task then still
// has less than the other had. Every move makes the loads more equal, so it ends.
func (b *balance) level() {
	for b.move() {
	}
}

func (b *balance) move() bool {
	byLoad := slices.Clone(b.loads)
	slices.SortStableFunc(byLoad, func(x, y *load) int {
		return cmp.Compare(y.weight*x.member.Capacity, x.weight*y.member.Capacity)
	})
	for _, from := range byLoad {
		for i := len(byLoad) - 1; i >= 0; i-- {
			to := byLoad[i]
			if t := b.movable(from, to); to != from && t >= 0 {
				to.add(from.remove(t))
				return true
			}
		}
	}
	return false
}

// movable returns the task of from whose move to to helps, -1 if there is none: one that nobody owns before one that is
// owned, a heavy one before a light one.
func (b *balance) movable(from, to *load) int {
	best, bestOwned := -1, true
	for i, t := range from.tasks {
		if !to.below(from, t.Weight) {
			continue
		}
		owned := b.owner[t.ID] != ""
		if best < 0 || bestOwned && !owned || bestOwned == owned && t.Weight > from.tasks[best].Weight {
			best, bestOwned = i, owned
		}
	}
	return best
}
