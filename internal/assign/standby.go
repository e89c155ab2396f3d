package assign

import (
	"cmp"
	"slices"
)

// standBy decides who stands by for each stateful task.
func (p *plan) standBy() {
	if p.standbys == 0 {
		return
	}
	hosts := map[int][]*load{}
	for i, t := range p.tasks {
		if t.Stateful {
			hosts[i] = p.hosts(t)
		}
	}
	for p.levelStandbys(hosts, p.ready) {
	}
	for n := p.warmups; n > 0 && p.levelStandbys(hosts, func(*load, Task) bool { return true }); n-- {
	}
	for i, t := range p.tasks {
		p.handOver(t, hosts[i])
	}
}

// home is who works on a task, or is to.
func (p *plan) home(t Task) *load {
	if l := p.active[t.ID]; l != nil {
		return l
	}
	return p.heir[t.ID]
}

// free reports whether a member has nothing to do with a task.
func (p *plan) free(l *load, t Task, hosts []*load) bool {
	return l != p.home(t) && !slices.Contains(p.warm[t.ID], l) && !slices.Contains(hosts, l)
}

// hosts returns who should stand by for a task.
func (p *plan) hosts(t Task) (hosts []*load) {
	for len(hosts) < p.standbys {
		var best *load
		for _, l := range p.loads {
			if p.free(l, t, hosts) && (best == nil || p.nearer(t, l, best, hosts)) {
				best = l
			}
		}
		if best == nil {
			break
		}
		best.standby += t.Weight
		hosts = append(hosts, best)
	}
	return hosts
}

// nearer reports whether x is a better host than y: in a rack that has no replica yet, with more of the state, with less
// to stand by for.
func (p *plan) nearer(t Task, x, y *load, hosts []*load) bool {
	c := cmp.Or(
		cmp.Compare(p.crowd(t, x, hosts), p.crowd(t, y, hosts)),
		cmp.Compare(p.class(t, x), p.class(t, y)),
	)
	if c == 0 && p.class(t, x) == behind {
		c = cmp.Or(cmp.Compare(x.lag(t), y.lag(t)), falseFirst(!x.open(t), !y.open(t)))
	}
	return c < 0 || c == 0 && x.lighter(y, x.standby+t.Weight, y.standby+t.Weight)
}

// How good a host is for a standby.
const (
	caughtUp = iota // it stands by already
	leaving         // it works on the task until it has given it up
	behind
)

func (p *plan) class(t Task, l *load) int {
	switch {
	case l.member.State[t.ID].Ready:
		return caughtUp
	case p.owner[t.ID] == l && p.ready(l, t):
		return leaving
	}
	return behind
}

// crowd is how many replicas of a task are in a member's rack, as far as racks are known.
func (p *plan) crowd(t Task, l *load, hosts []*load) (n int) {
	if l.member.Rack == "" {
		return 0
	}
	for _, o := range append(slices.Clone(hosts), p.home(t)) {
		if o != nil && o != l && o.member.Rack == l.member.Rack {
			n++
		}
	}
	return n
}

// levelStandbys moves one standby from a member with more of them to one with less, and reports whether that was possible.
func (p *plan) levelStandbys(hosts map[int][]*load, may func(*load, Task) bool) bool {
	byLoad := slices.Clone(p.loads)
	slices.SortStableFunc(byLoad, func(x, y *load) int {
		return cmp.Compare(y.standby*x.member.Capacity, x.standby*y.member.Capacity)
	})
	for _, from := range byLoad {
		for i := len(byLoad) - 1; i >= 0; i-- {
			if p.moveStandby(from, byLoad[i], hosts, may) {
				return true
			}
		}
	}
	return false
}

func (p *plan) moveStandby(from, to *load, hosts map[int][]*load, may func(*load, Task) bool) bool {
	best := -1
	if !to.lighter(from, to.standby+1, from.standby) {
		return false // whatever is moved
	}
	for i, t := range p.tasks {
		at := slices.Index(hosts[i], from)
		if at < 0 || !may(to, t) || !p.free(to, t, hosts[i]) || !to.lighter(from, to.standby+t.Weight, from.standby) {
			continue
		}
		others := slices.Delete(slices.Clone(hosts[i]), at, at+1)
		if p.crowd(t, to, others) > p.crowd(t, from, others) {
			continue
		}
		if best < 0 || p.before(t, p.tasks[best], to) {
			best = i
		}
	}
	if best < 0 {
		return false
	}
	w := p.tasks[best].Weight
	from.standby, to.standby = from.standby-w, to.standby+w
	hosts[best][slices.Index(hosts[best], from)] = to
	return true
}

// handOver lets hosts that are not ready wait while there are others that are, which are to be relieved by them.
func (p *plan) handOver(t Task, hosts []*load) {
	var relieved []*load
	for _, l := range p.loads {
		if p.free(l, t, hosts) && p.class(t, l) != behind {
			relieved = append(relieved, l)
		}
	}
	for _, l := range hosts {
		if p.ready(l, t) || len(relieved) == 0 {
			p.stand[t.ID] = append(p.stand[t.ID], l)
			continue
		}
		p.stand[t.ID] = append(p.stand[t.ID], relieved[0])
		relieved = relieved[1:]
		p.wishes = append(p.wishes, wish{t, l})
	}
}
