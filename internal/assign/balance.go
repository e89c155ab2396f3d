package assign

import (
	"cmp"
	"slices"
	"strings"

	"github.com/millrace-streams/millrace/processor"
)

// load is what a member would have to do.
type load struct {
	member  Member
	owned   map[processor.TaskID]bool
	weight  int
	tasks   []Task
	standby int // weight of the tasks that it stands by for
}

// lighter reports whether the member would be less loaded with mine than other with theirs.
func (l *load) lighter(other *load, mine, theirs int) bool {
	return mine*other.member.Capacity < theirs*l.member.Capacity
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

// restoring reports whether the member owns a task that it cannot work on yet.
func (l *load) restoring(t Task) bool {
	_, behind := l.member.State[t.ID]
	return behind && l.owned[t.ID]
}

// lag is how many changelog offsets of a task the member lacks.
func (l *load) lag(t Task) int64 {
	if s, some := l.member.State[t.ID]; some {
		return min(s.Lag, t.Size)
	}
	if l.owned[t.ID] {
		return 0
	}
	return t.Size
}

// open reports whether the member follows the changelog of a task, or works on it.
func (l *load) open(t Task) bool { return l.member.State[t.ID].Open || l.owned[t.ID] }

// balance is where every task should be.
type balance struct {
	tasks   []Task // heaviest first
	loads   []*load
	claimed map[processor.TaskID]bool  // somebody says to own it
	owner   map[processor.TaskID]*load // whose claim counts
	// promised says who is to have what has been given up for it.
	promised   map[processor.TaskID]*load
	orphans    []Task
	standbys   int
	warmups    int // that may still be begun
	acceptable int64
}

func newBalance(tasks []Task, members []Member, s Settings) *balance {
	b := &balance{
		claimed: map[processor.TaskID]bool{}, owner: map[processor.TaskID]*load{}, promised: map[processor.TaskID]*load{},
		standbys: s.Standbys, warmups: max(s.MaxWarmups, 1), acceptable: s.AcceptableLag,
	}
	for _, t := range tasks {
		t.Weight = max(t.Weight, 1)
		b.tasks = append(b.tasks, t)
	}
	slices.SortFunc(b.tasks, func(x, y Task) int { return cmp.Or(cmp.Compare(y.Weight, x.Weight), Compare(x.ID, y.ID)) })
	for _, m := range members {
		m.Capacity = max(m.Capacity, 1)
		b.loads = append(b.loads, &load{member: m, owned: map[processor.TaskID]bool{}})
	}
	slices.SortFunc(b.loads, func(x, y *load) int { return strings.Compare(x.member.ID, y.member.ID) })
	b.hear()
	return b
}

// hear finds out whose claims to tasks count.
func (b *balance) hear() {
	newest := map[processor.TaskID]int32{}
	for _, l := range b.loads {
		for _, id := range l.member.Owned {
			g, again := newest[id]
			b.claimed[id] = true
			switch {
			case !again || l.member.Generation > g:
				newest[id], b.owner[id] = l.member.Generation, l
			case l.member.Generation == g: // both cannot be right, so neither is believed
				delete(b.owner, id)
			}
		}
	}
	for id, l := range b.owner {
		l.owned[id] = true
	}
	latest := int32(0)
	for _, l := range b.loads {
		latest = max(latest, l.member.Generation)
	}
	for _, l := range b.loads {
		for _, id := range l.member.Promised {
			if l.member.Generation == latest && !b.claimed[id] {
				b.promised[id] = l
			}
		}
	}
}

// ready reports whether a member can take a task over at once.
func (b *balance) ready(l *load, t Task) bool {
	return !t.Stateful || t.Size <= b.acceptable || l.member.State[t.ID].Ready || l.owned[t.ID] && !l.restoring(t)
}

// keep leaves owned tasks where they are, and gives those that were promised.
func (b *balance) keep() {
	for _, t := range b.tasks {
		if l := b.owner[t.ID]; l != nil {
			l.add(t)
		} else if l := b.promised[t.ID]; l != nil && b.ready(l, t) {
			l.add(t)
		} else {
			b.orphans = append(b.orphans, t)
		}
	}
}

// place gives tasks without an owner, heavy ones first, to whoever is ready and has least to do; if nobody is, to one of
// those that lack least.
func (b *balance) place() {
	for _, t := range b.orphans {
		least := b.least(t)
		var best *load
		for _, l := range b.loads {
			if !b.fit(l, t, least) {
				continue
			}
			// Compared as they would be with the task: a large member is fuller for the same load.
			if best == nil || l.lighter(best, l.weight+t.Weight, best.weight+t.Weight) {
				best = l
			}
		}
		best.add(t)
	}
}

// someReady stands for a lag that only members that are ready have.
const someReady = -1

// least returns the smallest lag that a member has, someReady if one is ready.
func (b *balance) least(t Task) int64 {
	least := t.Size
	for _, l := range b.loads {
		if b.ready(l, t) {
			return someReady
		}
		least = min(least, l.lag(t))
	}
	return least
}

// fit reports whether a member can take over a task without an owner as well as any.
func (b *balance) fit(l *load, t Task, least int64) bool {
	if least == someReady {
		return b.ready(l, t)
	}
	return l.lag(t)-least <= b.acceptable
}

// movable reports whether a task can go to a member now without a pause worth the name.
func (b *balance) movable(t Task, to *load) bool {
	owner := b.owner[t.ID]
	switch {
	case b.ready(to, t):
		return true
	case owner == nil:
		return b.fit(to, t, b.least(t))
	}
	return owner.restoring(t) && to.lag(t) < owner.lag(t)
}

// level moves tasks that can be moved from those who have more to do to those who have less.
func (b *balance) level() {
	for moved := true; moved; {
		_, _, moved = b.move(b.movable)
	}
}

// move moves one task that may be moved from a member to another that then still has less to do than the first one had.
// Every move makes the loads more equal, so there is a last one.
func (b *balance) move(may func(Task, *load) bool) (t Task, to *load, ok bool) {
	byLoad := slices.Clone(b.loads)
	slices.SortStableFunc(byLoad, func(x, y *load) int {
		return cmp.Compare(y.weight*x.member.Capacity, x.weight*y.member.Capacity)
	})
	for _, from := range byLoad {
		for i := len(byLoad) - 1; i >= 0; i-- {
			to := byLoad[i]
			if t := b.best(from, to, may); to != from && t >= 0 {
				moved := from.remove(t)
				to.add(moved)
				return moved, to, true
			}
		}
	}
	return Task{}, nil, false
}

// best returns which task of from to move to to, -1 if none helps.
func (b *balance) best(from, to *load, may func(Task, *load) bool) int {
	best := -1
	if !to.lighter(from, to.weight+1, from.weight) {
		return best // whatever is moved
	}
	for i, t := range from.tasks {
		if !to.lighter(from, to.weight+t.Weight, from.weight) || !may(t, to) {
			continue
		}
		if best < 0 || b.before(t, from.tasks[best], to) {
			best = i
		}
	}
	return best
}

// before reports whether to move x to a member rather than y: one that is ready there or open, so that the move that was
// prepared is the one that is made; one that nobody owns; one that it has more of; a heavy one.
func (b *balance) before(x, y Task, to *load) bool {
	return cmp.Or(
		falseFirst(!b.ready(to, x), !b.ready(to, y)),
		falseFirst(!to.open(x), !to.open(y)),
		falseFirst(b.owner[x.ID] != nil, b.owner[y.ID] != nil),
		cmp.Compare(to.lag(x)-x.Size, to.lag(y)-y.Size),
		cmp.Compare(y.Weight, x.Weight),
		Compare(x.ID, y.ID),
	) < 0
}
