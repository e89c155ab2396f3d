package kafka

import (
	"slices"

	"github.com/millrace-streams/millrace/internal/assign"
	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
)

// leaseState is where a lease is in its life.
type leaseState uint8

const (
	looking leaseState = iota // its positions are being looked up; the worker does not know of it
	held                      // the worker has it
	revoked                   // the worker is to finish and release it
)

// lease is a task in this process's hands. The group's mutex guards it.
type lease struct {
	task  *TaskInfo
	port  *Port
	state leaseState
	ended chan struct{} // closed when it is released or lost
}

// assigned takes the partitions that the group has given to this process: leases of tasks that are no longer among them
// are revoked, those of new ones are looked up.
func (g *group) assigned(partitions map[string][]int32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	mine := g.tasks.whole(partitions)
	for id, l := range g.leases {
		if !mine[id] {
			g.revoke(l)
		}
	}
	if g.stopping {
		return
	}
	var fresh []processor.TaskID
	for id := range mine {
		if g.leases[id] == nil {
			fresh = append(fresh, id)
		}
	}
	if len(fresh) > 0 {
		g.lookUp(g.distribute(fresh))
	}
}

// distribute makes leases for tasks and gives each to a worker.
func (g *group) distribute(fresh []processor.TaskID) []*lease {
	working := map[processor.TaskID]int{}
	for id, l := range g.leases {
		working[id] = l.port.worker
	}
	slices.SortFunc(fresh, assign.Compare)
	workers := assign.Workers(len(g.ports), fresh, working, g.lastWorker, g.tasks.weights)
	leases := make([]*lease, len(fresh))
	for i, id := range fresh {
		g.lastWorker[id] = workers[id]
		leases[i] = &lease{task: g.tasks.byID[id], port: g.ports[workers[id]], ended: make(chan struct{})}
		g.leases[id] = leases[i]
	}
	return leases
}

// grant hands a lease over, unless it has ended in the meantime.
func (g *group) grant(l *lease, granted runtime.Lease) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.leases[l.task.ID] != l || l.state != looking {
		return
	}
	l.state = held
	l.port.post(func(e *runtime.Events) { e.Granted = append(e.Granted, granted) })
}

// revoke asks the worker to finish a task. One that the worker does not know of ends at once.
func (g *group) revoke(l *lease) {
	switch l.state {
	case looking:
		g.end(l)
	case held:
		if l.port.closed || l.port.withdraw(l.task.ID) {
			g.end(l)
			return
		}
		l.state = revoked
		l.port.post(func(e *runtime.Events) { e.Revoked = append(e.Revoked, l.task.ID) })
	}
}

// release takes a task back from its worker.
func (g *group) release(p *Port, id processor.TaskID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.leases[id]
	if l == nil || l.port != p || l.state == looking {
		return // lost in the meantime
	}
	if l.state == held && !g.stopping && !p.closed {
		l.state = looking
		g.lookUp([]*lease{l})
		return
	}
	g.end(l)
}

// abandon takes back all that a worker has, which has ended.
func (g *group) abandon(p *Port) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p.closed = true
	for _, l := range g.leases {
		if l.port == p && (l.state == revoked || g.stopping) {
			g.end(l)
		}
	}
}

// end forgets a lease. It lets go of the partitions if they are being taken away.
func (g *group) end(l *lease) {
	delete(g.leases, l.task.ID)
	close(l.ended)
	g.drain()
}

// drain notes that a process that is stopping has nothing left to finish.
func (g *group) drain() {
	if g.stopping && len(g.leases) == 0 && !g.isDrained {
		g.isDrained = true
		close(g.drained)
	}
}

// lose takes all leases away: the group gives the tasks to others.
func (g *group) lose() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.session != nil {
		g.last, g.session = g.member(), nil
	}
	lost := map[*Port][]processor.TaskID{}
	for id, l := range g.leases {
		known := lost[l.port]
		if l.state != looking && !l.port.withdraw(id) {
			known = append(known, id)
		}
		lost[l.port] = known
		g.end(l)
	}
	for p, known := range lost {
		p.lose(known)
	}
}

// stop tells every worker to finish.
func (g *group) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopping = true
	for _, l := range g.leases {
		if l.state == looking || l.port.closed {
			g.end(l)
		}
	}
	for _, p := range g.ports {
		p.post(func(e *runtime.Events) { e.Stop = true })
	}
	g.drain()
}

// lookUp finds out, in the background, where the partitions of leases stand, and then grants them.
func (g *group) lookUp(leases []*lease) {
	g.cluster.work.Go(g.abortLeftovers)
	g.cluster.work.Go(func() { g.find(leases) })
}

// stillLooking leaves out the leases that have ended.
func (g *group) stillLooking(leases []*lease) []*lease {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.DeleteFunc(leases, func(l *lease) bool { return g.leases[l.task.ID] != l || l.state != looking })
}

// fail tells every worker that the process cannot go on.
func (g *group) fail(err error) {
	for _, p := range g.ports {
		p.post(func(e *runtime.Events) {
			if e.Fatal == nil {
				e.Fatal = err
			}
		})
	}
}
