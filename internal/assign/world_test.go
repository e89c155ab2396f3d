package assign

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/millrace-streams/millrace/processor"
)

func id(n int) processor.TaskID {
	return processor.TaskID{Subtopology: int32(n / 10), Partition: int32(n % 10)}
}

// world is a group whose members keep to the protocol: they give up what they are not to have any more before others get
// it, keep on disk what they once had, and read what they are told to follow.
type world struct {
	t     *testing.T
	tasks []Task
	set   Settings
	procs map[string]*proc
	round int32
	paths map[processor.TaskID][]string // owners of each task, one after the other
	moves []move                        // given up by somebody who lives and works
}

// proc is a member with its local state.
type proc struct {
	Member
	lag  map[processor.TaskID]int64 // of everything that it has state of
	open map[processor.TaskID]bool  // follows, or owns
}

type move struct {
	task Task
	lag  int64 // of the new owner as it took over
}

func newWorld(t *testing.T, set Settings) *world {
	return &world{t: t, set: set, procs: map[string]*proc{}, paths: map[processor.TaskID][]string{}}
}

func (w *world) join(m Member) *proc {
	p := &proc{Member: m, lag: map[processor.TaskID]int64{}, open: map[processor.TaskID]bool{}}
	w.procs[m.ID] = p
	return p
}

// stateless adds n tasks of the same kind.
func (w *world) add(n int, size int64) {
	for range n {
		w.tasks = append(w.tasks, Task{ID: id(len(w.tasks)), Stateful: size >= 0, Size: max(size, 0)})
	}
}

func (w *world) members() (all []Member) {
	for _, p := range w.procs {
		m := p.Member
		m.State = map[processor.TaskID]State{}
		for task, lag := range p.lag {
			owned := slices.Contains(m.Owned, task)
			if !owned || lag > 0 {
				m.State[task] = State{Lag: lag, Open: p.open[task], Ready: !owned && p.open[task] && lag <= w.set.AcceptableLag}
			}
		}
		all = append(all, m)
	}
	return all // in a random order
}

func (w *world) owner(task processor.TaskID) string {
	for _, p := range w.procs {
		if slices.Contains(p.Owned, task) {
			return p.ID
		}
	}
	return ""
}

// rebalance makes a plan and lets everybody take it up. It reports whether somebody has given up a task, which makes the
// group rebalance again.
func (w *world) rebalance() (again bool) {
	w.t.Helper()
	members := w.members()
	plan := Plan(w.tasks, members, w.set)
	slices.Reverse(members)
	if other := Plan(w.tasks, members, w.set); !reflect.DeepEqual(plan, other) {
		w.t.Fatalf("the plan depends on the order of the members: %v and %v", plan, other)
	}
	w.check(plan)
	w.round++
	for _, t := range w.tasks {
		again = w.hand(t, plan) || again
	}
	for name, p := range w.procs {
		p.Generation, p.Promised = w.round, plan[name].Promised
		follow := slices.Concat(plan[name].Standby, plan[name].Warmup, plan[name].Active)
		for _, t := range w.tasks {
			if p.open[t.ID] = t.Stateful && slices.Contains(follow, t.ID); !p.open[t.ID] {
				continue
			}
			if _, some := p.lag[t.ID]; !some {
				p.lag[t.ID] = t.Size
			}
		}
	}
	return again
}

// hand lets a task change its owner.
func (w *world) hand(t Task, plan map[string]Share) (givenUp bool) {
	from, to := w.owner(t.ID), ""
	for name, s := range plan {
		if slices.Contains(s.Active, t.ID) {
			to = name
		}
	}
	if from == to {
		return false
	}
	if from != "" {
		p := w.procs[from]
		p.Owned = slices.DeleteFunc(p.Owned, func(o processor.TaskID) bool { return o == t.ID })
		if p.lag[t.ID] == 0 {
			w.moves = append(w.moves, move{t, -1})
		}
		return true
	}
	p := w.procs[to]
	p.Owned = append(p.Owned, t.ID)
	lag, some := p.lag[t.ID]
	if !some || lag > t.Size {
		lag = t.Size
	}
	for i := range w.moves {
		if m := &w.moves[i]; m.task.ID == t.ID && m.lag < 0 {
			m.lag = lag
		}
	}
	w.paths[t.ID] = append(w.paths[t.ID], to)
	return false
}

// check wants what must hold of every single plan.
func (w *world) check(plan map[string]Share) {
	w.t.Helper()
	active, replicas, warmups := map[processor.TaskID]string{}, map[processor.TaskID][]string{}, 0
	for name, s := range plan {
		for _, task := range s.Active {
			if other, twice := active[task]; twice {
				w.t.Fatalf("task %s goes to %s and to %s", task, other, name)
			}
			active[task] = name
		}
		warmups += len(s.Warmup)
		for _, task := range slices.Concat(s.Active, s.Standby, s.Warmup) {
			if slices.Contains(replicas[task], name) {
				w.t.Fatalf("%s has task %s twice: %+v", name, task, s)
			}
			replicas[task] = append(replicas[task], name)
		}
	}
	withheld := 0
	for _, t := range w.tasks {
		owner := w.owner(t.ID)
		switch {
		case active[t.ID] == "" && owner == "":
			w.t.Fatalf("nobody has task %s, and nobody gets it", t.ID)
		case active[t.ID] == "":
			withheld++
		case owner != "" && owner != active[t.ID]:
			w.t.Fatalf("task %s goes to %s before %s has given it up", t.ID, active[t.ID], owner)
		}
		if n := len(replicas[t.ID]) - 1; !t.Stateful && n > 0 || n > w.set.Standbys+2 {
			w.t.Fatalf("task %s, stateful %v, has %d replicas", t.ID, t.Stateful, n)
		}
	}
	if warmups > w.set.MaxWarmups+withheld {
		w.t.Fatalf("%d warm-ups, %d tasks withheld: %v", warmups, withheld, plan)
	}
}

// read lets everybody catch up with what it follows. It reports whether somebody got ready.
func (w *world) read(n int64) (ready bool) {
	for _, p := range w.procs {
		for task, lag := range p.lag {
			if p.open[task] && lag > 0 {
				p.lag[task] = max(0, lag-n)
				ready = ready || lag > w.set.AcceptableLag && p.lag[task] <= w.set.AcceptableLag
			}
		}
	}
	return ready
}

// settle rebalances as often as the group would, until nothing changes any more.
func (w *world) settle(n int64) (rounds int) {
	w.t.Helper()
	for before := ""; ; {
		if rounds++; rounds > 10*len(w.tasks)+20 {
			w.t.Fatal("the group does not come to rest")
		}
		if w.rebalance() {
			continue
		}
		now := w.state()
		if w.caughtUp() && now == before {
			return rounds
		}
		for before = now; !w.read(n) && !w.caughtUp(); {
		}
	}
}

// state is who has what.
func (w *world) state() (all string) {
	for _, name := range slices.Sorted(maps.Keys(w.procs)) {
		all += fmt.Sprintln(name, w.procs[name].Owned, w.procs[name].open)
	}
	return all
}

func (w *world) caughtUp() bool {
	for _, p := range w.procs {
		for task, lag := range p.lag {
			if p.open[task] && lag > 0 {
				return false
			}
		}
	}
	return true
}

// settled wants all tasks to be owned, loads that differ by no more than the heaviest task, and all standbys that there
// can be.
func (w *world) settled() {
	w.t.Helper()
	weights, heaviest := map[processor.TaskID]int{}, 0
	for _, t := range w.tasks {
		weights[t.ID] = max(t.Weight, 1)
		heaviest = max(heaviest, weights[t.ID])
		replicas := 0
		for _, p := range w.procs {
			if p.open[t.ID] && !slices.Contains(p.Owned, t.ID) {
				replicas++
			}
		}
		if want := min(w.set.Standbys, len(w.procs)-1); t.Stateful && replicas != want {
			w.t.Fatalf("task %s has %d standbys, want %d", t.ID, replicas, want)
		}
		if w.owner(t.ID) == "" {
			w.t.Fatalf("task %s has no owner", t.ID)
		}
	}
	w.even(heaviest, func(p *proc) (sum int) {
		for _, task := range p.Owned {
			sum += weights[task]
		}
		return sum
	})
}

// even wants loads that cannot be made more equal by moving anything as heavy as the heaviest task.
func (w *world) even(heaviest int, load func(*proc) int) {
	w.t.Helper()
	for a, p := range w.procs {
		for b, q := range w.procs {
			if (load(q)+heaviest)*max(p.Capacity, 1) < load(p)*max(q.Capacity, 1) {
				w.t.Fatalf("%s has %d, %s has %d, the heaviest task is %d", a, load(p), b, load(q), heaviest)
			}
		}
	}
}

// standbys returns who stands by for a task.
func (w *world) standbys(task processor.TaskID) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(w.procs)) {
		if p := w.procs[name]; p.open[task] && !slices.Contains(p.Owned, task) {
			names = append(names, name)
		}
	}
	return names
}

// die takes a member away, with all that it had.
func (w *world) die(name string) { delete(w.procs, name) }

// leave takes a member away for a while: its state grows old.
func (w *world) leave(name string, behind int64) *proc {
	p := w.procs[name]
	delete(w.procs, name)
	p.Owned, p.Promised = nil, nil
	for task := range p.lag {
		p.lag[task] += behind
	}
	clear(p.open)
	return p
}

func names(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint("m", i))
	}
	return all
}
