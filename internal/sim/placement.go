package sim

import (
	"fmt"
	"slices"

	"github.com/millrace-streams/millrace/internal/assign"
	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
)

// rebalance makes a plan of what the members say of themselves, as the leader of a real group does, and hands it out. Nobody
// misses it: who does not answer is a member until somebody removes it.
//
// The group is cooperative. A task that is to move is withheld from everybody, until its owner has heard of that and given it
// up; then the group rebalances again (see Port.Release). It does so, too, when a member has warmed up (see Port.watch).
func (g *Group) rebalance() {
	var members []assign.Member
	for _, m := range g.members {
		members = append(members, g.report(m))
	}
	var tasks []assign.Task
	for _, a := range g.tasks {
		tasks = append(tasks, g.sized(a.task))
	}
	g.generation++
	plan := assign.Plan(tasks, members, g.Settings)
	for _, a := range g.tasks {
		a.target, a.follow = nil, nil
	}
	for _, m := range g.members {
		m.share = plan[m.name]
		for _, id := range m.share.Active {
			g.assignment(id).target = m
		}
		for _, id := range slices.Concat(m.share.Standby, m.share.Warmup) {
			a := g.assignment(id)
			a.follow = append(a.follow, m)
		}
	}
	g.goOn()
}

// goOn rebalances again if a task is withheld from an owner who has not even heard of it: there is nothing to wait for.
func (g *Group) goOn() {
	if len(g.members) > 0 && slices.ContainsFunc(g.tasks, func(a *assignment) bool { return a.owner == nil && a.target == nil }) {
		g.rebalance()
	}
}

func (g *Group) assignment(id processor.TaskID) *assignment {
	return g.tasks[slices.IndexFunc(g.tasks, func(a *assignment) bool { return a.task.ID == id })]
}

// sized returns a task as the plan sees it.
func (g *Group) sized(t Task) assign.Task {
	task := assign.Task{ID: t.ID, Stateful: len(t.Changelogs) > 0}
	for _, c := range t.Changelogs {
		task.Size += g.cluster.End(c.TopicPartition) - g.cluster.Start(c.TopicPartition)
	}
	return task
}

// report is what a member says of itself.
func (g *Group) report(m *member) assign.Member {
	r := assign.Member{ID: m.name, Generation: g.generation, Promised: m.share.Promised, State: map[processor.TaskID]assign.State{}}
	for _, a := range g.tasks {
		mine := a.owner == m || a.owner == nil && a.target == m
		if mine {
			r.Owned = append(r.Owned, a.task.ID)
		}
		if len(a.task.Changelogs) == 0 {
			continue
		}
		if state, some := m.port.state(a.task, mine); some {
			r.State[a.task.ID] = state
		}
	}
	return r
}

// state is what a member's process has of a task, false if that is nothing, or all because it works on it.
func (p *Port) state(t Task, mine bool) (assign.State, bool) {
	h := p.held[t.ID]
	if h == nil || h.closing {
		lag, kept := p.kept(t)
		return assign.State{Lag: lag}, kept || mine
	}
	lag := p.lag(t)
	return assign.State{Lag: lag, Open: true, Ready: !mine && lag <= p.group.Settings.AcceptableLag}, h.role == runtime.Standby || !h.working
}

// lag is how many changelog offsets a task's open stores lack.
func (p *Port) lag(t Task) (lag int64) {
	for _, c := range t.Changelogs {
		lag += max(0, p.cluster.End(c.TopicPartition)-p.follows[c.TopicPartition])
	}
	return lag
}

// kept is how many of them lack what is on the disk of this process, if there is anything.
func (p *Port) kept(t Task) (lag int64, any bool) {
	for _, c := range t.Changelogs {
		at, ok := int64(0), false
		if p.cfg.Stored != nil {
			at, ok = p.cfg.Stored(t.ID, c.Store)
		}
		lag, any = lag+max(0, p.cluster.End(c.TopicPartition)-at), any || ok
	}
	return lag, any
}

// String says who has what, for whoever has to understand a failure.
func (g *Group) String() (s string) {
	for _, m := range g.members {
		s += fmt.Sprintf("\n%s is to have %+v, and has", m.name, m.share)
		for _, a := range g.tasks {
			if h := m.port.held[a.task.ID]; h != nil {
				s += fmt.Sprintf(" %s %+v", a.task.ID, *h)
			}
		}
	}
	return s
}

// How many polls a port waits before it calls for a rebalance again, at first and in the end.
const (
	firstCallPause = 8
	lastCallPause  = 64
)

// watch calls for a rebalance when a task that is to move here can, and again, ever more seldom, as long as that has no effect.
func (p *Port) watch() {
	for _, id := range p.member.share.Warmup {
		h := p.held[id]
		if h == nil || h.role != runtime.Standby || h.closing || p.polls < h.call || p.lag(p.group.assignment(id).task) > p.group.Settings.AcceptableLag {
			continue
		}
		h.pause = min(max(2*h.pause, firstCallPause), lastCallPause)
		h.call = p.polls + h.pause
		p.group.rebalance()
		return
	}
}

// Move takes the i-th task from its owner and promises it to the next member, as another plan might.
func (g *Group) Move(i int) {
	a := g.tasks[i]
	at := slices.Index(g.members, a.target)
	if at < 0 || len(g.members) < 2 {
		return
	}
	from, to := a.target, g.members[(at+1)%len(g.members)]
	g.generation++
	a.target = nil
	to.share.Promised = append(slices.Clone(to.share.Promised), a.task.ID)
	if len(a.task.Changelogs) > 0 {
		a.follow = append(slices.DeleteFunc(a.follow, func(m *member) bool { return m == to }), to)
		if g.Settings.Standbys > 0 {
			a.follow = append(a.follow, from)
		}
	}
	g.goOn()
}
