package sim

import (
	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
)

// holding is what a port's worker has of a task, from the grant until it says that all is closed.
type holding struct {
	role    runtime.Role
	revoked bool // told to give it back
	demoted bool // told to stand by from then on
	closing bool // given back or lost: its stores may still be open
	again   bool // given back on the worker's own account: it is granted anew
	working bool // all of its stores are restored
	call    int  // at which poll to call for a rebalance because a standby has warmed up
	pause   int  // between the last two calls
}

// hear brings what the group has decided. Nothing is granted before the producer has fenced its predecessor.
func (p *Port) hear(e *runtime.Events) {
	if p.deaf || p.fencing {
		return
	}
	if p.member.gone {
		p.lose(e)
		p.member = p.group.join(p.cfg.ID, p)
	}
	p.generation = p.group.generation
	for _, a := range p.group.tasks {
		p.update(a, e)
	}
	p.watch()
}

// lose tells the worker of all that it works on. What it stands by for stays.
func (p *Port) lose(e *runtime.Events) {
	for _, a := range p.group.tasks {
		if h := p.held[a.task.ID]; h != nil && h.role == runtime.Active && !h.closing {
			e.Lost = append(e.Lost, a.task.ID)
			*h = holding{closing: true}
		}
	}
}

// update brings what the worker has of a task nearer to what it should have.
func (p *Port) update(a *assignment, e *runtime.Events) {
	id := a.task.ID
	role, wanted := a.role(p.member)
	h := p.held[id]
	switch {
	case h == nil && wanted && role == runtime.Standby:
		p.held[id] = &holding{role: runtime.Standby}
		for _, c := range a.task.Changelogs {
			delete(p.follows, c.TopicPartition) // of a former life
		}
		e.Granted = append(e.Granted, p.group.standby(a.task))
	case wanted && role == runtime.Active && (h == nil || h.again || h.role == runtime.Standby && !h.revoked):
		p.grant(a, e)
	case h == nil || h.closing || h.revoked || wanted && role == h.role:
	case h.role == runtime.Active && wanted:
		h.revoked, h.demoted = true, true
		e.Demoted = append(e.Demoted, id)
	default:
		h.revoked = true
		e.Revoked = append(e.Revoked, id)
	}
}

// grant makes the worker the owner of a task that has none, once its positions are decided.
func (p *Port) grant(a *assignment, e *runtime.Events) {
	if a.owner != nil {
		return
	}
	lease, ok := p.group.lease(a.task)
	if !ok {
		return
	}
	if p.cfg.SkipTail && p.held[a.task.ID] != nil {
		for i := range lease.Changelogs {
			c := &lease.Changelogs[i]
			c.End = p.follows[c.TopicPartition]
		}
	}
	a.owner = p.member
	p.held[a.task.ID] = &holding{role: runtime.Active}
	e.Granted = append(e.Granted, lease)
}

// Release implements runtime.Port. A task that is released though it is not revoked is granted anew; one that is to move goes
// on with the next rebalance.
func (p *Port) Release(id processor.TaskID) {
	p.at(BeforeGiving)
	a := p.group.assignment(id)
	givenUp := a.owner == p.member && a.target != p.member
	if a.owner == p.member {
		a.owner = nil
	}
	if h := p.held[id]; h != nil && h.role == runtime.Active && !h.closing {
		switch {
		case h.demoted:
			*h = holding{role: runtime.Standby}
		default:
			*h = holding{role: runtime.Active, closing: true, again: !h.revoked}
		}
	}
	if givenUp {
		p.group.rebalance()
	}
	p.at(AfterGiving)
}

// Closed implements runtime.Port.
func (p *Port) Closed(id processor.TaskID) {
	if h := p.held[id]; h != nil && (h.closing || h.role == runtime.Standby) {
		delete(p.held, id)
	}
}

// Owns reports whether the worker works on a task.
func (p *Port) Owns(id processor.TaskID) bool {
	h := p.held[id]
	return h != nil && h.role == runtime.Active && !h.closing
}

var _ runtime.Follower = (*Port)(nil)

// Followed implements runtime.Follower.
func (p *Port) Followed(tp processor.TopicPartition, position int64) { p.follows[tp] = position }

// Working implements runtime.Follower.
func (p *Port) Working(id processor.TaskID) {
	if h := p.held[id]; h != nil {
		h.working = true
	}
}
