package kafka

import (
	"slices"

	"github.com/millrace-streams/millrace/internal/assign"
	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
)

// SetWorkers changes how many workers share this process's tasks, never more than there are tasks, while they work. Tasks
// move as few as that takes, each when its worker has given it back; the others go on. It returns the ports of those
// workers that are new. A worker that is too many is told to stop when it has nothing left.
func (c *Cluster) SetWorkers(n int) ([]runtime.Port, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.group == nil || c.ctx.Err() != nil {
		return nil, ErrClosed
	}
	var added []runtime.Port
	for _, p := range c.group.setWorkers(max(1, min(n, len(c.group.tasks.list)))) {
		c.work.Go(p.committer.run)
		added = append(added, p)
	}
	return added, nil
}

// setWorkers lets workers leave, or makes ports for more of them.
func (g *group) setWorkers(n int) (added []*Port) {
	g.mu.Lock()
	defer g.unlock()
	if g.stopping || n == len(g.staying()) {
		return nil
	}
	for staying := g.staying(); len(staying) > n; staying = staying[:len(staying)-1] {
		staying[len(staying)-1].leaving = true
	}
	for _, p := range g.ports {
		if p.leaving && !p.told && len(g.staying()) < n {
			p.leaving = false
		}
	}
	for len(g.staying()) < n {
		p := newPort(g.cluster, g.number())
		p.group = g
		g.ports = append(g.ports, p)
		added = append(added, p)
	}
	slices.SortFunc(g.ports, func(a, b *Port) int { return a.worker - b.worker })
	g.level()
	g.reconcile()
	signal(g.summon) // this process's share of the group's work has changed
	return added
}

// number returns the lowest number that no worker has.
func (g *group) number() (n int) {
	for g.taken(n) {
		n++
	}
	return n
}

func (g *group) taken(number int) bool {
	return slices.ContainsFunc(g.ports, func(p *Port) bool { return p.worker == number })
}

// staffs reports whether this process has a worker of that number.
func (g *group) staffs(number int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.taken(number)
}

// workers returns the ports of all workers.
func (g *group) workers() []*Port {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.ports)
}

// staying returns the ports of the workers that tasks can go to, by their numbers.
func (g *group) staying() []*Port {
	return slices.DeleteFunc(slices.Clone(g.ports), func(p *Port) bool { return p.leaving || p.closed })
}

// distribute makes leases for tasks that have none, and gives each to a worker.
func (g *group) distribute(fresh []processor.TaskID) {
	staying := g.staying()
	if len(staying) == 0 {
		return
	}
	last := map[processor.TaskID]int{}
	for _, id := range fresh {
		if at := slices.Index(staying, g.last[id]); at >= 0 {
			last[id] = at
		}
	}
	for _, role := range []runtime.Role{runtime.Active, runtime.Standby} {
		of := slices.DeleteFunc(slices.Clone(fresh), func(id processor.TaskID) bool { return g.wanted[id] != role })
		held := g.held(staying, role)
		for id, at := range assign.Workers(len(staying), of, held, last, g.tasks.weights) {
			g.last[id] = staying[at]
			g.begin(&lease{task: g.tasks.byID[id], port: staying[at], role: role})
		}
	}
}

// held says which worker has which tasks in a role; as standbys, that is all of its tasks: each of them is work.
func (g *group) held(staying []*Port, role runtime.Role) map[processor.TaskID]int {
	held := map[processor.TaskID]int{}
	for id, l := range g.leases {
		if at := slices.Index(staying, l.port); at >= 0 && (role == runtime.Standby || l.role == role) {
			held[id] = at
		}
	}
	return held
}

// level decides which tasks are to go to other workers.
func (g *group) level() {
	staying := g.staying()
	clear(g.moves)
	for _, role := range []runtime.Role{runtime.Active, runtime.Standby} {
		held := map[processor.TaskID]int{}
		for id, l := range g.leases {
			if l.role == role {
				held[id] = slices.Index(staying, l.port)
			}
		}
		for id, at := range assign.Level(len(staying), held, g.tasks.weights) {
			g.moves[id] = staying[at]
		}
	}
}

// relieve makes the moves between workers that can be made, and lets workers go that have nothing left.
func (g *group) relieve() {
	if g.stopping {
		return
	}
	if staying := g.staying(); len(staying) > 0 {
		for id, l := range g.leases { // a standby whose task has become ours since
			if l.port.leaving && l.state == held && g.moves[id] == nil {
				g.moves[id] = staying[0]
			}
		}
	}
	for id, to := range g.moves {
		if l := g.leases[id]; l == nil || l.port == to || to.closed || to.leaving || g.moveOn(l, to) {
			delete(g.moves, id)
		}
	}
	for _, p := range g.ports {
		idle := true
		for _, l := range g.leases {
			idle = idle && l.port != p
		}
		if p.leaving && !p.told && idle {
			p.told = true
			p.post(func(e *runtime.Events) { e.Stop = true })
		}
	}
}

// moveOn begins to move a lease to another worker, and reports whether it could: a worker that is about to take over what
// it stands by for does that first.
func (g *group) moveOn(l *lease, to *Port) bool {
	switch {
	case l.state == looking && l.standing:
		return false
	case l.state > held:
		if l.next != nil {
			l.next = to
		}
		return true
	case !l.standing && g.unseen(l):
		g.begin(&lease{task: l.task, port: to, role: l.role, ended: l.ended})
	default:
		l.state, l.next = revoked, to
		l.port.post(func(e *runtime.Events) { e.Revoked = append(e.Revoked, l.task.ID) })
	}
	g.last[l.task.ID] = to
	return true
}
