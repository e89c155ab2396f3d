package assign

import (
	"reflect"
	"slices"
	"testing"

	"github.com/millrace-streams/millrace/internal/seed"
	"github.com/millrace-streams/millrace/processor"
)

func TestWorkers(t *testing.T) {
	t.Parallel()
	rng := seed.Rand(t)
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

// TestLevel: after any change of their number, all tasks are with workers that there are, in balance, and no more of them
// have moved than that takes.
func TestLevel(t *testing.T) {
	t.Parallel()
	rng := seed.Rand(t)
	for range 200 {
		held, weights := map[processor.TaskID]int{}, map[processor.TaskID]int{}
		before, n := 1+rng.IntN(5), 1+rng.IntN(5)
		for k := range rng.IntN(40) {
			held[id(k)], weights[id(k)] = rng.IntN(before), rng.IntN(4)
		}
		moves := Level(n, held, weights)
		loads := make([]int, n)
		for task, w := range held {
			if to, moved := moves[task]; moved && to == w {
				t.Fatalf("task %s moves from %d to %d", task, w, to)
			} else if moved {
				w = to
			}
			if w >= n {
				t.Fatalf("task %s stays with worker %d of %d", task, w, n)
			}
			held[task] = w
			loads[w] += max(weights[task], 1)
		}
		if len(loads) > 0 && slices.Max(loads)-slices.Min(loads) > 3 {
			t.Fatalf("loads %v", loads)
		}
		if again := Level(n, held, weights); len(again) != 0 {
			t.Fatalf("%v are moved for no reason", again)
		}
	}
	held := map[processor.TaskID]int{}
	for k := range 6 {
		held[id(k)] = k % 2
	}
	if moves := Level(3, held, nil); len(moves) != 2 {
		t.Errorf("to a third worker go %v, want two of six tasks", moves)
	}
}
