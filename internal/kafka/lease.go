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
	revoked                   // the worker is to finish and close it
	closing                   // the worker has given it back, and may still have its stores open
)

// lease is a task in this process's hands, from the assignment until its worker has closed it. While there is one, no other
// worker of the process gets the task. The group's mutex guards it.
type lease struct {
	task  *TaskInfo
	port  *Port
	role  runtime.Role
	state leaseState
	ended chan struct{} // of an active one: closed when another process may have the task

	standing bool  // the worker stands by for it, until it hears that it is to work on it
	demoted  bool  // the worker is to stand by for it once it has given it back
	next     *Port // the worker of this process that is to have it as soon as it is closed here
	working  bool  // all of its stores are restored
	ready    bool  // a standby that has caught up
	calls    pace  // for a rebalance because of that
}

// assigned takes what the group has given to this process: leases of tasks that are no longer among them are revoked, those
// of new ones are looked up.
func (g *group) assigned(partitions map[string][]int32, share assign.Share) {
	g.mu.Lock()
	defer g.unlock()
	g.cluster.cfg.Logger.Debug("assigned", "partitions", partitions, "standbys", names(share.Standby), "warm-ups", names(share.Warmup), "promised", names(share.Promised))
	g.given = assignment{partitions, share}
	g.want()
	g.reconcile()
}

// assignment is what the group has given to this process.
type assignment struct {
	partitions map[string][]int32
	share      assign.Share
}

// want translates the assignment into roles.
func (g *group) want() {
	share, before := g.given.share, g.warmups
	g.wanted = map[processor.TaskID]runtime.Role{}
	g.warmups = map[processor.TaskID]bool{}
	for _, id := range slices.Concat(share.Standby, share.Warmup) {
		if g.tasks.byID[id] != nil {
			g.wanted[id] = runtime.Standby
		}
	}
	for _, id := range share.Warmup {
		if g.warmups[id] = true; !before[id] {
			g.cluster.cfg.Logger.Info("warming up: the task moves here when it has caught up", "task", id.String())
		}
	}
	for id := range g.tasks.whole(g.given.partitions) {
		g.wanted[id] = runtime.Active
	}
	g.promised = share.Promised
}

func names(tasks []processor.TaskID) (all []string) {
	for _, id := range tasks {
		all = append(all, id.String())
	}
	return all
}

// reconcile brings the leases nearer to what is wanted. It is called whenever either has changed.
func (g *group) reconcile() {
	var fresh []processor.TaskID
	for _, t := range g.tasks.list {
		role, wanted := g.wanted[t.ID]
		wanted = wanted && !g.stopping
		l := g.leases[t.ID]
		switch {
		case l == nil && wanted:
			fresh = append(fresh, t.ID)
		case l == nil || wanted && l.role == role:
		case !wanted:
			g.revoke(l)
		case role == runtime.Active:
			g.promote(l)
		default:
			g.demote(l)
		}
	}
	if len(fresh) > 0 {
		g.distribute(fresh)
	}
	g.relieve()
}

// begin makes a lease and has it looked up where its partitions stand.
func (g *group) begin(l *lease) {
	if l.role == runtime.Active && l.ended == nil {
		l.ended = make(chan struct{})
	}
	if l.role == runtime.Standby && !l.standing { // how far it came in a former life says nothing
		for _, c := range l.task.Changelogs {
			delete(g.followed, c.TopicPartition)
		}
	}
	l.state = looking
	g.leases[l.task.ID] = l
	g.toFind = append(g.toFind, l)
}

// unlock lets go of the mutex, and begins to look up what is to be found.
func (g *group) unlock() {
	for _, role := range []runtime.Role{runtime.Active, runtime.Standby} {
		var leases []*lease
		for _, l := range g.toFind {
			if l.role == role {
				leases = append(leases, l)
			}
		}
		if len(leases) == 0 {
			continue
		}
		if role == runtime.Active {
			g.cluster.work.Go(g.abortLeftovers)
		}
		g.cluster.work.Go(func() { g.find(leases) })
	}
	g.toFind = nil
	g.mu.Unlock()
}

// grant hands a lease over, unless it has ended in the meantime.
func (g *group) grant(l *lease, granted runtime.Lease) {
	g.mu.Lock()
	defer g.unlock()
	if g.leases[l.task.ID] != l || l.state != looking {
		return
	}
	l.state = held
	granted.Role = l.role
	l.port.post(func(e *runtime.Events) { e.Granted = append(e.Granted, granted) })
	g.relieve()
}

// promote makes a lease to work on a task of one to stand by for it. It is for the same worker, which has the stores.
func (g *group) promote(l *lease) {
	if l.state > held {
		return // it is taken up again when it is closed
	}
	knows := l.state == held && !l.port.withdraw(l.task.ID)
	g.begin(&lease{task: l.task, port: l.port, role: runtime.Active, standing: knows})
}

// demote leaves the worker a task's stores when it gives the task away.
func (g *group) demote(l *lease) {
	switch {
	case l.state > held:
	case g.unseen(l):
		g.fallBack(l)
	default:
		l.state, l.demoted = revoked, true
		l.port.post(func(e *runtime.Events) { e.Demoted = append(e.Demoted, l.task.ID) })
	}
}

// unseen reports whether the worker does not know of a lease, and never will.
func (g *group) unseen(l *lease) bool {
	return l.state == looking || l.state == held && l.port.withdraw(l.task.ID)
}

// fallBack makes a lease that the worker does not know of one to stand by: as the worker does already, or will.
func (g *group) fallBack(l *lease) {
	if l.ended != nil {
		close(l.ended)
	}
	standby := &lease{task: l.task, port: l.port, role: runtime.Standby, state: held, ready: l.working}
	if l.standing {
		g.leases[l.task.ID] = standby
	} else {
		g.begin(standby)
	}
	g.drain()
}

// revoke asks the worker to finish a task. One that the worker does not know of ends at once.
func (g *group) revoke(l *lease) {
	if l.standing && g.unseen(l) {
		g.fallBack(l)
		l = g.leases[l.task.ID]
	}
	switch {
	case l.state == revoked: // to go to another worker, or to be stood by for
		l.next, l.demoted = nil, false
	case l.state == closing:
		g.handOn(l, nil)
	case l.port.closed || g.unseen(l):
		g.end(l)
	default:
		l.state = revoked
		l.port.post(func(e *runtime.Events) { e.Revoked = append(e.Revoked, l.task.ID) })
	}
}

// handOn says which worker of this process is to have a lease that is being closed; nil for none.
func (g *group) handOn(l *lease, next *Port) {
	if l.next != nil && next == nil && l.ended != nil {
		close(l.ended)
		l.ended = nil
	}
	l.next = next
}

// release takes a task back from its worker.
func (g *group) release(p *Port, id processor.TaskID) {
	g.mu.Lock()
	defer g.unlock()
	l := g.leases[id]
	switch {
	case l == nil || l.port != p || l.role != runtime.Active || l.state == looking || l.state == closing: // lost in the meantime
		return
	case l.state == held && !g.stopping && !p.closed: // the worker wants to begin anew
		l.standing, l.working = false, false
		g.begin(l)
		return
	case l.demoted && !p.closed && !g.stopping:
		l.standing = true
		g.fallBack(l)
	default:
		l.state = closing
		if l.next == nil {
			close(l.ended)
			l.ended = nil
		}
		g.drain()
	}
	g.reconcile()
}

// closed forgets a lease whose worker has closed all that was open of it. Of a former life of the task the group does not
// want to hear.
func (g *group) closed(p *Port, id processor.TaskID) {
	g.mu.Lock()
	defer g.unlock()
	l := g.leases[id]
	switch {
	case l == nil || l.port != p:
		return
	case l.state == looking && l.standing: // the standby has ended while it was being promoted
		l.standing = false
		return
	case l.state != closing && (l.role == runtime.Active || l.state == looking):
		return
	}
	if l.next != nil && !l.next.closed && !g.stopping {
		g.begin(&lease{task: l.task, port: l.next, role: l.role, ended: l.ended})
	} else {
		g.handOn(l, nil)
		g.end(l)
	}
	g.reconcile()
}

// abandon takes back all that a worker has, which has ended.
func (g *group) abandon(p *Port) {
	g.mu.Lock()
	defer g.unlock()
	p.closed = true
	for _, l := range g.leases {
		if l.port == p && (l.role == runtime.Standby || l.state >= revoked || g.stopping) {
			g.handOn(l, nil)
			g.end(l)
		}
	}
	g.ports = slices.DeleteFunc(g.ports, func(o *Port) bool { return o == p })
	g.reconcile()
}

// end forgets a lease. It lets go of the partitions if they are being taken away.
func (g *group) end(l *lease) {
	delete(g.leases, l.task.ID)
	if l.ended != nil {
		close(l.ended)
		l.ended = nil
	}
	g.drain()
}

// drain notes that a process that is stopping has nothing left to finish.
func (g *group) drain() {
	if !g.stopping || g.isDrained {
		return
	}
	for _, l := range g.leases {
		if l.ended != nil {
			return
		}
	}
	g.isDrained = true
	close(g.drained)
}

// lose takes all leases to work on tasks away: the group gives them to others. What this process stands by for stays, until
// it is a member again and hears otherwise.
func (g *group) lose() {
	g.mu.Lock()
	defer g.unlock()
	if g.session != nil {
		g.latest, g.session = g.member(), nil
	}
	g.promised, g.given = nil, assignment{}
	for id, role := range g.wanted {
		if role == runtime.Active {
			delete(g.wanted, id)
		}
	}
	lost := map[*Port][]processor.TaskID{}
	for id, l := range g.leases {
		if l.role == runtime.Active {
			lost[l.port] = append(lost[l.port], g.loseOne(id, l)...)
		}
	}
	for p, known := range lost {
		p.lose(known)
	}
	g.drain()
}

// loseOne takes a lease away, and returns the task if the worker knows of it.
func (g *group) loseOne(id processor.TaskID, l *lease) []processor.TaskID {
	unseen := l.state <= held && g.unseen(l)
	switch {
	case unseen && l.standing:
		g.wanted[id] = runtime.Standby
		g.fallBack(l)
	case unseen:
		g.end(l)
	case l.state == closing:
		g.handOn(l, nil)
	default:
		l.state, l.next, l.demoted = closing, nil, false
		close(l.ended)
		l.ended = nil
		return []processor.TaskID{id}
	}
	return nil
}

// stop tells every worker to finish.
func (g *group) stop() {
	g.mu.Lock()
	defer g.unlock()
	g.stopping = true
	for _, l := range g.leases {
		switch {
		case l.state == looking && l.standing && !l.port.closed:
			g.fallBack(l)
		case l.state == looking || l.port.closed:
			g.end(l)
		case l.state == closing:
			g.handOn(l, nil)
		default:
			l.next = nil
		}
	}
	for _, p := range g.ports {
		p.post(func(e *runtime.Events) { e.Stop = true })
	}
	g.drain()
}

// stillLooking leaves out the leases that have ended.
func (g *group) stillLooking(leases []*lease) []*lease {
	g.mu.Lock()
	defer g.unlock()
	return slices.DeleteFunc(leases, func(l *lease) bool { return g.leases[l.task.ID] != l || l.state != looking })
}

// fail tells every worker that the process cannot go on.
func (g *group) fail(err error) {
	for _, p := range g.workers() {
		p.post(func(e *runtime.Events) {
			if e.Fatal == nil {
				e.Fatal = err
			}
		})
	}
}
