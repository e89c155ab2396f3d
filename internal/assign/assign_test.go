package assign

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/millrace-streams/millrace/processor"
)

// random returns a source of randomness that is printed and can be set again with MILLRACE_SEED.
func random(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	if s := os.Getenv("MILLRACE_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("MILLRACE_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func id(n int) processor.TaskID {
	return processor.TaskID{Subtopology: int32(n / 10), Partition: int32(n % 10)}
}

// world is a group whose members keep to the protocol.
type world struct {
	tasks   []Task
	members []Member
}

// rebalance makes a plan and lets every member take it up, as often as members have to give something up first.
func (w *world) rebalance(t *testing.T) (rounds, moved int) {
	t.Helper()
	before := w.owners()
	for rounds = 1; ; rounds++ {
		plan := Plan(w.tasks, w.members)
		w.check(t, plan)
		gaveUp := false
		for i := range w.members {
			m := &w.members[i]
			for _, owned := range m.Owned {
				gaveUp = gaveUp || !slices.Contains(plan[m.ID], owned)
			}
			m.Owned, m.Generation = plan[m.ID], int32(rounds)
		}
		if !gaveUp {
			break
		}
		if rounds > 3 {
			t.Fatal("the group does not come to rest")
		}
	}
	for task, m := range w.owners() {
		if b, had := before[task]; had && b != m {
			moved++
		}
	}
	return rounds, moved
}

func (w *world) owners() map[processor.TaskID]string {
	owners := map[processor.TaskID]string{}
	for _, m := range w.members {
		for _, task := range m.Owned {
			owners[task] = m.ID
		}
	}
	return owners
}

// check wants every task at most once, none that another member still has, and the same plan however it is asked.
func (w *world) check(t *testing.T, plan map[string][]processor.TaskID) {
	t.Helper()
	owners := w.owners()
	seen := map[processor.TaskID]string{}
	for member, tasks := range plan {
		for _, task := range tasks {
			if other, twice := seen[task]; twice {
				t.Fatalf("task %s goes to %s and to %s", task, other, member)
			}
			if owner, owned := owners[task]; owned && owner != member {
				t.Fatalf("task %s goes to %s before %s has given it up", task, member, owner)
			}
			seen[task] = member
		}
	}
	shuffled := slices.Clone(w.members)
	slices.Reverse(shuffled)
	if again := Plan(w.tasks, shuffled); !reflect.DeepEqual(plan, again) {
		t.Fatalf("the plan depends on the order of the members: %v and %v", plan, again)
	}
}

// settled wants every task assigned, and loads that differ by no more than the heaviest task.
func (w *world) settled(t *testing.T) {
	t.Helper()
	weights, heaviest := map[processor.TaskID]int{}, 0
	for _, task := range w.tasks {
		weights[task.ID] = max(task.Weight, 1)
		heaviest = max(heaviest, weights[task.ID])
	}
	if n := len(w.owners()); n != len(w.tasks) {
		t.Fatalf("%d of %d tasks are assigned", n, len(w.tasks))
	}
	load := func(m Member) (sum int) {
		for _, task := range m.Owned {
			sum += weights[task]
		}
		return sum
	}
	for _, a := range w.members {
		for _, b := range w.members {
			// One more task must not leave b less loaded than a is.
			if len(a.Owned) > 0 && (load(b)+heaviest)*max(a.Capacity, 1) < load(a)*max(b.Capacity, 1) {
				t.Fatalf("%s has %d, %s has %d, the heaviest task is %d", a.ID, load(a), b.ID, load(b), heaviest)
			}
		}
	}
}

func TestGroupsComeToRestBalancedAndSticky(t *testing.T) {
	t.Parallel()
	rng := random(t)
	for range 300 {
		w := &world{}
		for n := range 1 + rng.IntN(30) {
			w.tasks = append(w.tasks, Task{ID: id(n), Weight: rng.IntN(4)})
		}
		for n := range 1 + rng.IntN(6) {
			w.members = append(w.members, Member{ID: fmt.Sprint("m", n), Capacity: rng.IntN(3)})
		}
		w.rebalance(t)
		w.settled(t)
		if _, moved := w.rebalance(t); moved != 0 {
			t.Fatalf("a rebalance for no reason moved %d tasks", moved)
		}
		if len(w.members) > 1 { // a member goes: only its tasks find new owners
			gone := rng.IntN(len(w.members))
			w.members = slices.Delete(w.members, gone, gone+1)
			w.rebalance(t)
			w.settled(t)
		}
		w.members = append(w.members, Member{ID: "new", Capacity: 1})
		w.rebalance(t)
		w.settled(t)
	}
}

func TestEqualTasksAreBalancedWithinOneAndMoveOnlyToNewcomers(t *testing.T) {
	t.Parallel()
	w := &world{}
	for n := range 10 {
		w.tasks = append(w.tasks, Task{ID: id(n)})
	}
	for n := range 4 {
		w.members = append(w.members, Member{ID: fmt.Sprint("m", n)})
		rounds, moved := w.rebalance(t)
		if n > 0 && (moved != 10/(n+1) || rounds != 2) {
			t.Errorf("member %d joined: %d tasks moved in %d rounds", n+1, moved, rounds)
		}
		for _, m := range w.members {
			if want := 10 / (n + 1); len(m.Owned) != want && len(m.Owned) != want+1 {
				t.Errorf("%d members: %s has %d tasks", n+1, m.ID, len(m.Owned))
			}
		}
	}
}

func TestCapacity(t *testing.T) {
	t.Parallel()
	w := &world{members: []Member{{ID: "big", Capacity: 3}, {ID: "small", Capacity: 1}}}
	for n := range 8 {
		w.tasks = append(w.tasks, Task{ID: id(n)})
	}
	w.rebalance(t)
	if big, small := len(w.members[0].Owned), len(w.members[1].Owned); big != 6 || small != 2 {
		t.Errorf("3 to 1: %d to %d", big, small)
	}
}

func TestAReturningMemberGetsWhatItHasStateFor(t *testing.T) {
	t.Parallel()
	w := &world{members: []Member{{ID: "a"}, {ID: "b", Prior: []processor.TaskID{id(0), id(2)}}}}
	for n := range 4 {
		w.tasks = append(w.tasks, Task{ID: id(n)})
	}
	w.rebalance(t)
	if got := w.members[1].Owned; !slices.Equal(got, []processor.TaskID{id(0), id(2)}) {
		t.Errorf("b gets %v", got)
	}
}

func TestConflictingClaims(t *testing.T) {
	t.Parallel()
	tasks := []Task{{ID: id(0)}, {ID: id(1)}}
	stale := []Member{
		{ID: "a", Generation: 3, Owned: []processor.TaskID{id(0)}},
		{ID: "b", Generation: 5, Owned: []processor.TaskID{id(0)}},
	}
	plan := Plan(tasks, stale)
	if !slices.Equal(plan["b"], []processor.TaskID{id(0)}) || !slices.Equal(plan["a"], []processor.TaskID{id(1)}) {
		t.Errorf("the newer claim does not win: %v", plan)
	}
	stale[0].Generation = 5
	plan = Plan(tasks, stale)
	for member, got := range plan {
		if slices.Contains(got, id(0)) {
			t.Errorf("%s gets a task that two members claim", member)
		}
	}
	if got := Plan(tasks, nil); len(got) != 0 {
		t.Errorf("without members: %v", got)
	}
}

func TestWorkers(t *testing.T) {
	t.Parallel()
	rng := random(t)
	for range 200 {
		n := 1 + rng.IntN(5)
		weights, held, last := map[processor.TaskID]int{}, map[processor.TaskID]int{}, map[processor.TaskID]int{}
		var all []processor.TaskID
		for k := range rng.IntN(40) {
			all = append(all, id(k))
			weights[id(k)] = rng.IntN(4)
		}
		first := Workers(n, all, held, last, weights)
		loads := make([]int, n)
		for _, task := range all {
			loads[first[task]] += max(weights[task], 1)
		}
		if len(first) != len(all) || slices.Max(loads)-slices.Min(loads) > 3 {
			t.Fatalf("%d tasks on %d workers: loads %v", len(all), n, loads)
		}
		if again := Workers(n, all, held, first, map[processor.TaskID]int{}); len(again) != len(all) {
			t.Fatalf("%d of %d tasks have a worker", len(again), len(all))
		}
	}
	last := map[processor.TaskID]int{id(0): 1, id(1): 1, id(2): 0, id(3): 0}
	got := Workers(2, []processor.TaskID{id(0), id(1), id(2), id(3)}, nil, last, nil)
	if !reflect.DeepEqual(got, last) {
		t.Errorf("workers are not kept: %v, had %v", got, last)
	}
}
