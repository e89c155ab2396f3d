package kafka

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
)

// puppet plays the only worker of a process. It gives back what it is told to at once, and reads the changelogs of what it
// stands by for as far as the test lets it.
type puppet struct {
	*process
	port    runtime.Port
	roles   map[processor.TaskID]runtime.Role
	logs    map[processor.TaskID]runtime.Changelog
	reads   bool
	history []string // what it was told, but for the first grants
	commits int
}

// play polls all puppets until done.
func play(t *testing.T, puppets []*puppet, what string, done func() bool) {
	t.Helper()
	brokertest.Eventually(t, patience, func() (bool, string) {
		for _, p := range puppets {
			p.turn()
		}
		if done() {
			return true, ""
		}
		state := what
		for _, p := range puppets {
			state += fmt.Sprintf("; %s: %v, told %v", p.cluster.cfg.ProcessID, p.roles, p.history)
		}
		return false, state
	})
}

func (p *puppet) turn() {
	e := p.port.Poll(10 * time.Millisecond)
	told := func(what string, id processor.TaskID) { p.history = append(p.history, what+" "+id.String()) }
	for _, id := range e.Lost {
		told("lost", id)
		delete(p.roles, id)
		p.port.Closed(id)
	}
	for _, id := range e.Demoted {
		told("demoted", id)
		p.roles[id] = runtime.Standby
		p.port.Release(id)
	}
	for _, id := range e.Revoked {
		told("revoked", id)
		if p.roles[id] == runtime.Active {
			p.port.Release(id)
		}
		delete(p.roles, id)
		p.port.Closed(id)
	}
	for _, l := range e.Granted {
		if l.Role == runtime.Active {
			told("granted", l.Task)
			p.port.(runtime.Follower).Working(l.Task)
		}
		p.roles[l.Task], p.logs[l.Task] = l.Role, l.Changelogs[0]
	}
	for id, role := range p.roles {
		if at := p.logs[id].Start; role == runtime.Standby {
			if p.reads {
				at = p.logs[id].End
			}
			p.port.(runtime.Follower).Followed(p.logs[id].TopicPartition, at)
		}
	}
	if e.Commit != nil {
		p.commits++
	}
}

// count returns how many tasks the puppet has in a role.
func (p *puppet) count(role runtime.Role) (n int) {
	for r := range maps.Values(p.roles) {
		if r == role {
			n++
		}
	}
	return n
}

func raise(t *testing.T, cfg Config, tasks ...TaskInfo) *puppet {
	t.Helper()
	p := start(t, cfg, tasks...)
	return &puppet{process: p, port: p.ports[0], roles: map[processor.TaskID]runtime.Role{}, logs: map[processor.TaskID]runtime.Changelog{}}
}

// TestATaskMovesWhenItsNewOwnerHasCaughtUp: a newcomer first reads the changelogs of what it is to get, two at a time. The
// owner hears nothing of that, and works on; when the newcomer has caught up, the tasks move, and no others.
func TestATaskMovesWhenItsNewOwnerHasCaughtUp(t *testing.T) {
	t.Parallel()
	brokers := brokertest.Brokers(t)
	in, log, app := brokertest.Topic(t, "in", 6), brokertest.Topic(t, "log", 6), brokertest.UniqueName(t, "app")
	settings := func(id string) Config {
		cfg := options(brokers, app, id)
		cfg.AcceptableLag, cfg.MaxWarmups = 10, 2
		return cfg
	}
	a := raise(t, settings("a"), tasks(in, 6, log)...)
	all := []*puppet{a}
	play(t, all, "a gets all tasks", func() bool { return a.count(runtime.Active) == 6 })
	fill(t, log, 6, 50)
	a.history = nil
	b := raise(t, settings("b"), tasks(in, 6, log)...)
	all = append(all, b)
	play(t, all, "b reads two changelogs", func() bool { return b.count(runtime.Standby) == 2 })
	for range 20 { // while it reads, for however long
		a.port.Commit(processor.Commit{Positions: []processor.Position{position(in, 5, 1)}})
		play(t, all, "a commits", func() bool { return a.commits > 0 })
		a.commits = 0
	}
	if len(a.history) > 0 || b.count(runtime.Active) > 0 || b.count(runtime.Standby) != 2 {
		t.Fatalf("before b has caught up: a was told %v, b %v", a.history, b.history)
	}
	b.reads = true
	play(t, all, "b gets its share", func() bool { return b.count(runtime.Active) == 3 && a.count(runtime.Active) == 3 })
	if len(a.history) != 3 || slices.ContainsFunc(a.history, func(s string) bool { return s[:4] == "lost" }) {
		t.Errorf("a was told %v, want the end of three tasks", a.history)
	}
}

// TestStandbysAreInOtherRacks, and take over when their task's owner leaves, each in the worker that has it.
func TestStandbysAreInOtherRacks(t *testing.T) {
	t.Parallel()
	brokers := brokertest.Brokers(t)
	in, log, app := brokertest.Topic(t, "in", 6), brokertest.Topic(t, "log", 6), brokertest.UniqueName(t, "app")
	var all []*puppet
	racks := []string{"x", "x", "y"}
	for n, rack := range racks {
		cfg := options(brokers, app, fmt.Sprint("p", n))
		cfg.Standbys, cfg.AcceptableLag, cfg.Rack = 1, 10, rack
		p := raise(t, cfg, tasks(in, 6, log)...)
		p.reads = true
		all = append(all, p)
		if n == 0 {
			play(t, all, "the first gets all tasks", func() bool { return p.count(runtime.Active) == 6 })
			fill(t, log, 6, 50)
		}
	}
	play(t, all, "every process has two tasks, every task a standby", func() bool {
		active, standby := 0, 0
		for _, p := range all {
			if p.count(runtime.Active) != 2 {
				return false
			}
			active, standby = active+2, standby+p.count(runtime.Standby)
		}
		return active == 6 && standby == 6 && wellPlaced(all, racks)
	})
	last := all[2]
	stood := map[processor.TaskID]int{}
	for id, role := range last.roles {
		for n, p := range all[:2] {
			if r, has := p.roles[id]; role == runtime.Active && has && r == runtime.Standby {
				stood[id] = n
			}
		}
	}
	if len(stood) != 2 {
		t.Fatalf("the tasks of the last process have standbys %v", stood)
	}
	last.stop()
	play(t, []*puppet{last}, "it is told to stop", func() bool {
		for id, role := range last.roles {
			if role == runtime.Active {
				last.port.Release(id)
			}
			last.port.Closed(id)
			delete(last.roles, id)
		}
		return len(last.roles) == 0
	})
	play(t, all[:2], "the standbys take over", func() bool {
		for id, n := range stood {
			if all[n].roles[id] != runtime.Active {
				return false
			}
		}
		return true
	})
}

// wellPlaced reports whether every standby is in another rack than its task, as far as that is possible.
func wellPlaced(all []*puppet, racks []string) bool {
	for n, p := range all {
		for id, role := range p.roles {
			for m, q := range all {
				r, has := q.roles[id]
				if m != n && has && r != role && racks[m] == racks[n] {
					return false
				}
			}
		}
	}
	return true
}

// TestALostMembershipKeepsStandbys: who was thrown out of the group loses what it works on, and not what it stands by for.
func TestALostMembershipKeepsStandbys(t *testing.T) {
	t.Parallel()
	brokers := brokertest.Brokers(t)
	in, log, app := brokertest.Topic(t, "in", 2), brokertest.Topic(t, "log", 2), brokertest.UniqueName(t, "app")
	var all []*puppet
	for n := range 2 {
		cfg := options(brokers, app, fmt.Sprint("p", n))
		cfg.Standbys = 1
		p := raise(t, cfg, tasks(in, 2, log)...)
		p.reads = true
		all = append(all, p)
	}
	rest := func() bool {
		for _, p := range all {
			if p.count(runtime.Active) != 1 || p.count(runtime.Standby) != 1 {
				return false
			}
		}
		return true
	}
	play(t, all, "each works on a task and stands by for the other", rest)
	for _, p := range all {
		p.history = nil
	}
	m := joined(t, all[1].cluster)
	must(t, all[1].cluster.group.sendLeave(m, "a test"))
	play(t, all, "it loses its task", func() bool { return len(all[1].history) > 0 })
	play(t, all, "and all is as before", rest)
	for _, told := range all[1].history {
		if told[:7] == "revoked" {
			t.Errorf("it was told %v", all[1].history)
		}
	}
}
