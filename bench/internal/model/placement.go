package model

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/millrace-streams/millrace/internal/assign"
	"github.com/millrace-streams/millrace/processor"
)

// Group is a group of processes that share out tasks by the plan that a real group makes, in rounds: who is to lose a task
// gives it up, the group plans again, and who follows a changelog catches up.
type Group struct {
	tasks    []assign.Task
	settings assign.Settings
	members  []*member // in the order of joining
	joined   int
	racks    int
	workers  int
	round    int32
}

// member is a process with its local state.
type member struct {
	assign.Member
	rack int
	lag  map[processor.TaskID]int64 // of everything that it has state of
	open map[processor.TaskID]bool  // owns or follows
}

// Change is what a change of the group has cost.
type Change struct {
	Rebalances int
	Taken      int   // tasks that had no owner and were taken over
	Moved      int   // tasks that were given up by a process that lives
	Restored   int64 // changelog records to be read before tasks without an owner go on
	MostOfOne  int64 // of them, by the process that has the most
	Followed   int64 // changelog records read beside the work: standbys and warm-ups
	Catching   int64 // the sum, over the rounds, of what the process reads that has the most to follow
}

// NewGroup returns a group without members. The sizes of its tasks' changelogs lie between half and one and a half of what the
// calculation says, as the seed has it.
func NewGroup(c Cluster, seed uint64) *Group {
	g := &Group{
		racks: c.Racks, workers: c.Workers,
		settings: assign.Settings{Standbys: c.Standbys, MaxWarmups: maxWarmups, AcceptableLag: acceptableLag},
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	mean := 2 * c.Keys / float64(c.Partitions) // without the newest segment, of which nobody knows how full it is
	for n := range c.Partitions {
		g.tasks = append(g.tasks, assign.Task{
			ID: processor.TaskID{Partition: int32(n)}, Weight: 1, Stateful: true, Size: int64(mean * (0.5 + rng.Float64())),
		})
	}
	return g
}

// Join lets n processes join at once, and the group come to rest.
func (g *Group) Join(n int) Change {
	for range n {
		m := &member{lag: map[processor.TaskID]int64{}, open: map[processor.TaskID]bool{}}
		m.Member = assign.Member{ID: fmt.Sprintf("p%04d", g.joined), Capacity: g.workers}
		if g.racks > 1 {
			m.rack = g.emptiest()
			m.Rack = fmt.Sprint("r", m.rack)
		}
		g.joined++
		g.members = append(g.members, m)
	}
	return g.settle()
}

// emptiest is the rack with the fewest processes.
func (g *Group) emptiest() int {
	in := make([]int, g.racks)
	for _, m := range g.members {
		in[m.rack]++
	}
	return slices.Index(in, slices.Min(in))
}

// Die takes the i-th process away for good, with all that it had, and lets the group come to rest.
func (g *Group) Die(i int) Change {
	g.members = slices.Delete(g.members, i, i+1)
	return g.settle()
}

// settle rebalances as often as the group would, until everybody has what it is to have and has caught up.
func (g *Group) settle() (c Change) {
	restored := map[*member]int64{}
	for {
		c.Rebalances++
		again := g.rebalance(&c, restored)
		if again {
			continue
		}
		if !g.catchUp(&c) {
			break
		}
	}
	for _, n := range restored {
		c.Restored, c.MostOfOne = c.Restored+n, max(c.MostOfOne, n)
	}
	return c
}

// rebalance makes a plan and lets everybody take it up. It reports whether somebody has given up a task, which makes the group
// rebalance again.
func (g *Group) rebalance(c *Change, restored map[*member]int64) (again bool) {
	plan := assign.Plan(g.tasks, g.report(), g.settings)
	g.round++
	owned := map[processor.TaskID]bool{}
	for _, m := range g.members {
		for _, id := range m.Owned {
			owned[id] = true
		}
	}
	for _, m := range g.members {
		share := plan[m.ID]
		kept := slices.DeleteFunc(slices.Clone(m.Owned), func(id processor.TaskID) bool { return !slices.Contains(share.Active, id) })
		c.Moved += len(m.Owned) - len(kept)
		again = again || len(kept) < len(m.Owned)
		for _, id := range share.Active {
			if !owned[id] {
				kept = append(kept, id)
				c.Taken++
				restored[m] += g.lacks(m, id)
				m.lag[id] = 0
			}
		}
		m.Owned, m.Generation, m.Promised = kept, g.round, share.Promised
		clear(m.open)
		for _, id := range slices.Concat(share.Active, share.Standby, share.Warmup) {
			m.lag[id], m.open[id] = g.lacks(m, id), true
		}
	}
	return again
}

// lacks is how many changelog records a member lacks of a task.
func (g *Group) lacks(m *member, id processor.TaskID) int64 {
	if lag, some := m.lag[id]; some {
		return lag
	}
	return g.tasks[id.Partition].Size
}

// catchUp lets everybody read what it follows, and reports whether there was anything.
func (g *Group) catchUp(c *Change) bool {
	most := int64(0)
	for _, m := range g.members {
		sum := int64(0)
		for id := range m.open {
			sum += m.lag[id]
			m.lag[id] = 0
		}
		c.Followed, most = c.Followed+sum, max(most, sum)
	}
	c.Catching += most
	return most > 0
}

// report is what the members say of themselves. What nobody follows any more grows old, and counts for nothing here.
func (g *Group) report() (all []assign.Member) {
	for _, m := range g.members {
		told := m.Member
		told.State = map[processor.TaskID]assign.State{}
		for id := range m.open {
			if lag := m.lag[id]; !slices.Contains(m.Owned, id) {
				told.State[id] = assign.State{Lag: lag, Open: true, Ready: lag <= acceptableLag}
			}
		}
		all = append(all, told)
	}
	return all
}

// Balance is how evenly a group has shared out its tasks.
type Balance struct {
	Tasks    [2]int   // the fewest and the most of a process
	Standbys [2]int   //
	State    [2]int64 // changelog records of tasks and standbys
	Crowded  int      // tasks with a standby in the rack of their owner or of another standby
}

// Balance measures it.
func (g *Group) Balance() (b Balance) {
	for i, m := range g.members {
		state := int64(0)
		for id := range m.open {
			state += g.tasks[id.Partition].Size
		}
		tasks, standbys := len(m.Owned), len(m.open)-len(m.Owned)
		if i == 0 {
			b = Balance{Tasks: [2]int{tasks, tasks}, Standbys: [2]int{standbys, standbys}, State: [2]int64{state, state}}
		}
		b.Tasks = [2]int{min(b.Tasks[0], tasks), max(b.Tasks[1], tasks)}
		b.Standbys = [2]int{min(b.Standbys[0], standbys), max(b.Standbys[1], standbys)}
		b.State = [2]int64{min(b.State[0], state), max(b.State[1], state)}
	}
	b.Crowded = g.crowded()
	return b
}

// crowded counts the tasks two of whose replicas are in one rack.
func (g *Group) crowded() (n int) {
	if g.racks < 2 {
		return 0
	}
	racks := map[processor.TaskID][]string{}
	for _, m := range g.members {
		for id := range m.open {
			racks[id] = append(racks[id], m.Rack)
		}
	}
	for _, of := range racks {
		slices.Sort(of)
		if len(slices.Compact(slices.Clone(of))) < len(of) {
			n++
		}
	}
	return n
}
