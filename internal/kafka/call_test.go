package kafka

import (
	"fmt"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
)

// TestCallForRebalance: any member can make the group rebalance, once, alone or with others; nobody loses anything by it,
// what is being read goes on where it is, and commits succeed.
func TestCallForRebalance(t *testing.T) {
	t.Parallel()
	brokers := brokertest.Brokers(t)
	in, app := brokertest.Topic(t, "in", 4), brokertest.UniqueName(t, "app")
	produce(t, in, 10, 10)
	var procs []*process
	for n := range 3 {
		p := start(t, options(brokers, app, fmt.Sprint("p", n)), tasks(in, 4, "")...)
		procs = append(procs, p)
		quiet(t, procs, 4)
		before := joined(t, procs[0].cluster).generation
		caller := procs[n/2].cluster.group // the group's leader, and one that is not
		must(t, caller.callForRebalance(t.Context()))
		brokertest.Eventually(t, patience, func() (bool, string) {
			for _, p := range procs {
				if m, ok := p.cluster.group.membership(); !ok || m.generation == before {
					return false, fmt.Sprintf("a member is at generation %d", m.generation)
				}
			}
			return true, ""
		})
		if after := joined(t, procs[0].cluster).generation; after != before+1 {
			t.Errorf("%d members: generation %d became %d", n+1, before, after)
		}
		for i, p := range procs {
			if e := p.ports[0].Poll(0); len(e.Lost)+len(e.Revoked)+len(e.Granted) > 0 {
				t.Errorf("%d members: p%d hears of %+v", n+1, i, e)
			}
			mustCommit(t, p.ports[0], processor.Commit{Positions: []processor.Position{position(in, 0, int64(n))}})
		}
	}
}

// quiet plays the workers until n tasks are shared out among all and nobody has anything to give back.
func quiet(t *testing.T, procs []*process, n int) {
	t.Helper()
	brokertest.Eventually(t, patience, func() (bool, string) {
		moving := false
		for _, p := range procs {
			e := p.ports[0].Poll(20 * time.Millisecond)
			for _, id := range e.Revoked {
				p.ports[0].Release(id)
				p.ports[0].Closed(id)
			}
			moving = moving || len(e.Granted)+len(e.Revoked) > 0
		}
		has, all := 0, true
		for _, p := range procs {
			has += p.working()
			all = all && p.working() > 0
		}
		return !moving && all && has == n, fmt.Sprintf("%d tasks are leased", has)
	})
}

// working is how many leases to work on tasks the process's workers have.
func (p *process) working() (n int) {
	g := p.cluster.group
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, l := range g.leases {
		if l.role == runtime.Active && l.state == held {
			n++
		}
	}
	return n
}
