package assign

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/millrace-streams/millrace/internal/seed"
	"github.com/millrace-streams/millrace/processor"
)

// TestGroupsComeToRest lets random groups with state of all sizes lose and gain members. Whatever happens, every plan is a
// proper one (see check), the group comes to rest in balance, and then stays as it is.
func TestGroupsComeToRest(t *testing.T) {
	t.Parallel()
	rng := seed.Rand(t)
	for range 60 {
		w := newWorld(t, Settings{Standbys: rng.IntN(3), MaxWarmups: 1 + rng.IntN(3), AcceptableLag: 100})
		for n := range 1 + rng.IntN(20) {
			task := Task{ID: id(n), Weight: rng.IntN(4)}
			if rng.IntN(4) > 0 {
				task.Stateful, task.Size = true, int64(rng.IntN(3)*rng.IntN(1000))
			}
			w.tasks = append(w.tasks, task)
		}
		for n := range 1 + rng.IntN(5) {
			w.join(Member{ID: fmt.Sprint("m", n), Capacity: rng.IntN(3), Rack: []string{"", "x", "y"}[rng.IntN(3)]})
		}
		speed := int64(1 + rng.IntN(300))
		rest := func() {
			w.settle(speed)
			w.settled()
			before := w.members()
			w.settle(speed)
			for _, m := range before {
				if !reflect.DeepEqual(m.Owned, w.procs[m.ID].Owned) {
					t.Fatalf("a rebalance for no reason moved tasks of %s: %v, %v", m.ID, m.Owned, w.procs[m.ID].Owned)
				}
			}
		}
		rest()
		for range 4 {
			w.upset(rng, speed)
			rest()
		}
		for _, m := range w.moves {
			if m.lag > w.set.AcceptableLag {
				t.Fatalf("working task %s of size %d was moved to a member that lacked %d", m.task.ID, m.task.Size, m.lag)
			}
		}
	}
}

// upset changes the group, maybe in the middle of its last change.
func (w *world) upset(rng *rand.Rand, speed int64) {
	present := slices.Sorted(maps.Keys(w.procs))
	one := present[rng.IntN(len(present))]
	switch rng.IntN(4) {
	case 0:
		w.join(Member{ID: fmt.Sprint("n", w.round), Capacity: 1})
	case 1:
		if len(present) > 1 {
			w.die(one)
		}
	case 2:
		if len(present) > 1 {
			back := w.leave(one, int64(rng.IntN(300)))
			for range rng.IntN(4) {
				w.rebalance()
				w.read(speed)
			}
			w.procs[one] = back
		}
	case 3:
		w.procs[one].Capacity = 1 + rng.IntN(3)
	}
	for range rng.IntN(4) {
		w.rebalance()
		w.read(speed)
	}
}

func TestStatelessTasksMoveAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Settings{MaxWarmups: 1})
	w.add(10, -1)
	for n, name := range names(4) {
		w.join(Member{ID: name})
		w.moves = nil
		rounds := 0
		for w.rebalance() {
			rounds++
		}
		if want := 10 / (n + 1); n > 0 && (len(w.moves) != want || rounds != 1) {
			t.Errorf("member %d joined: %d tasks moved in %d rounds, want %d", n+1, len(w.moves), rounds, want)
		}
	}
}

// TestSmallStateNeedsNoWarmUp: what can be read faster than a warm-up can be arranged moves at once too.
func TestSmallStateNeedsNoWarmUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Settings{MaxWarmups: 1, AcceptableLag: 100})
	w.add(6, 100)
	w.join(Member{ID: "a"})
	w.settle(10)
	w.join(Member{ID: "b"})
	w.rebalance()
	if w.rebalance(); len(w.procs["b"].Owned) != 3 {
		t.Errorf("b has %v", w.procs["b"].Owned)
	}
}

// TestATaskMovesWhenItsNewOwnerIsReady: until then it stays, and no more than MaxWarmups are under way.
func TestATaskMovesWhenItsNewOwnerIsReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Settings{MaxWarmups: 2, AcceptableLag: 10})
	w.add(8, 1000)
	a := w.join(Member{ID: "a"})
	w.settle(1000)
	b := w.join(Member{ID: "b"})
	for moved := 0; moved < 4; moved += 2 {
		for range 9 {
			if w.rebalance() || len(a.Owned) != 8-moved || len(b.Owned) != moved || b.count() != 2+moved {
				t.Fatalf("before: a has %v, b has %v and reads %v", a.Owned, b.Owned, b.open)
			}
			w.read(100)
		}
		w.read(90)
		if !w.rebalance() || len(a.Owned) != 6-moved || b.count() < 2+moved {
			t.Fatalf("when two are ready: a has %v, b reads %v", a.Owned, b.open)
		}
		if w.rebalance() || len(b.Owned) != 2+moved {
			t.Fatalf("after: b has %v", b.Owned)
		}
	}
	if w.settle(1000); len(w.moves) != 4 {
		t.Errorf("%d moves", len(w.moves))
	}
}

func (p *proc) count() (n int) {
	for _, open := range p.open {
		if open {
			n++
		}
	}
	return n
}

// TestADeadMembersTasksGoToTheirStandbys, at once and wherever they are; then they are spread again.
func TestADeadMembersTasksGoToTheirStandbys(t *testing.T) {
	t.Parallel()
	rng := seed.Rand(t)
	for range 100 {
		w := newWorld(t, Settings{Standbys: 1, MaxWarmups: 2, AcceptableLag: 10})
		w.add(1+rng.IntN(12), 1000)
		for _, name := range names(3 + rng.IntN(3)) {
			w.join(Member{ID: name})
		}
		w.settle(1000)
		standby, owned := map[processor.TaskID]string{}, w.procs["m1"].Owned
		for _, task := range owned {
			standby[task] = w.standbys(task)[0]
		}
		w.die("m1")
		w.rebalance()
		for _, task := range owned {
			if got := w.owner(task); got != standby[task] {
				t.Fatalf("task %s goes to %s, its standby is %s", task, got, standby[task])
			}
		}
		w.settle(1000)
		w.settled()
	}
}

// TestAShortAbsence: who comes back with its state gets its tasks back, and its standbys, without anybody else reading
// them from the start in vain for long.
func TestAShortAbsence(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Settings{Standbys: 1, MaxWarmups: 2, AcceptableLag: 10})
	w.add(9, 100_000)
	for _, name := range names(3) {
		w.join(Member{ID: name})
	}
	w.settle(100_000)
	before := len(w.procs["m1"].Owned)
	back := w.leave("m1", 50)
	w.rebalance()
	w.read(100)
	w.procs["m1"] = back
	rounds := w.settle(100)
	w.settled()
	if len(back.Owned) != before || rounds > 8 {
		t.Errorf("m1 had %d tasks and got %d back in %d rounds", before, len(back.Owned), rounds)
	}
}

// TestOneThatRestoresAnyhow: a task whose owner does not work on it yet goes to who has more of its state, at once.
func TestOneThatRestoresAnyhow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Settings{MaxWarmups: 1, AcceptableLag: 10})
	w.add(6, 1000)
	w.join(Member{ID: "a"})
	w.rebalance()
	w.read(100)
	b := w.join(Member{ID: "b"})
	for n := range 3 {
		b.lag[id(n+1)] = 50
	}
	w.rebalance()
	w.rebalance()
	if want := []processor.TaskID{id(1), id(2), id(3)}; !slices.Equal(b.Owned, want) {
		t.Errorf("b gets %v, want %v", b.Owned, want)
	}
}

// TestStandbysPreferOtherRacks, but are in the same one rather than nowhere.
func TestStandbysPreferOtherRacks(t *testing.T) {
	t.Parallel()
	rng := seed.Rand(t)
	for range 100 {
		w := newWorld(t, Settings{Standbys: 1 + rng.IntN(2), MaxWarmups: 2, AcceptableLag: 10})
		w.add(1+rng.IntN(12), 1000)
		racks := []string{"x", "y", "z"}[:2+rng.IntN(2)]
		for i, name := range names(4 + rng.IntN(3)) {
			w.join(Member{ID: name, Rack: racks[i%len(racks)]})
		}
		w.settle(300)
		w.settled()
		for _, task := range w.tasks {
			seen := map[string]bool{w.procs[w.owner(task.ID)].Rack: true}
			for _, name := range w.standbys(task.ID) {
				seen[w.procs[name].Rack] = true
			}
			if want := min(len(racks), 1+w.set.Standbys); len(seen) != want {
				t.Fatalf("task %s is in %d racks of %d, with %d standbys", task.ID, len(seen), len(racks), w.set.Standbys)
			}
		}
	}
	w := newWorld(t, Settings{Standbys: 1, AcceptableLag: 10, MaxWarmups: 2})
	w.add(3, 1000)
	for _, name := range names(2) {
		w.join(Member{ID: name, Rack: "x"})
	}
	w.settle(1000)
	w.settled()
}

// TestStandbysAreSpread among equal members, and one stays where it is until the other is ready.
func TestStandbysAreSpread(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Settings{Standbys: 1, MaxWarmups: 2, AcceptableLag: 10})
	w.add(12, 1000)
	for _, name := range names(2) {
		w.join(Member{ID: name})
	}
	w.settle(1000)
	w.join(Member{ID: "m2"})
	for w.rebalance() || len(w.procs["m2"].Owned) < 4 {
		for _, task := range w.tasks {
			if owner := w.owner(task.ID); owner != "" && !slices.ContainsFunc(w.standbys(task.ID), func(name string) bool { return w.procs[name].lag[task.ID] == 0 }) {
				t.Fatalf("task %s of %s has no standby that has caught up: %v", task.ID, owner, w.standbys(task.ID))
			}
		}
		w.read(100)
	}
	w.settle(100)
	w.settled()
	w.even(1, func(p *proc) int { return p.count() - len(p.Owned) })
}

func TestCapacity(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Settings{})
	w.add(8, -1)
	big, small := w.join(Member{ID: "big", Capacity: 3}), w.join(Member{ID: "small", Capacity: 1})
	if w.settle(1); len(big.Owned) != 6 || len(small.Owned) != 2 {
		t.Errorf("3 to 1: %d to %d", len(big.Owned), len(small.Owned))
	}
}

func TestConflictingClaims(t *testing.T) {
	t.Parallel()
	tasks := []Task{{ID: id(0)}, {ID: id(1)}}
	stale := []Member{
		{ID: "a", Generation: 3, Owned: []processor.TaskID{id(0)}},
		{ID: "b", Generation: 5, Owned: []processor.TaskID{id(0)}},
	}
	plan := Plan(tasks, stale, Settings{})
	if !slices.Equal(plan["b"].Active, []processor.TaskID{id(0)}) || !slices.Equal(plan["a"].Active, []processor.TaskID{id(1)}) {
		t.Errorf("the newer claim does not win: %v", plan)
	}
	stale[0].Generation = 5
	plan = Plan(tasks, stale, Settings{})
	for member, got := range plan {
		if slices.Contains(got.Active, id(0)) {
			t.Errorf("%s gets a task that two members claim", member)
		}
	}
	if got := Plan(tasks, nil, Settings{}); len(got) != 0 {
		t.Errorf("without members: %v", got)
	}
}
