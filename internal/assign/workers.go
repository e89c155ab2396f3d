package assign

import (
	"cmp"
	"slices"

	"github.com/millrace-streams/millrace/processor"
)

// Workers chooses a worker, from 0 up to n, for each of the fresh tasks: the one that had the task last if that keeps its
// load within a fair share, else the least loaded. held says which worker has which task; they stay. weights may leave out
// tasks, whose weight then is 1.
func Workers(n int, fresh []processor.TaskID, held, last map[processor.TaskID]int, weights map[processor.TaskID]int) map[processor.TaskID]int {
	load := make([]int, n)
	total := 0
	weight := func(id processor.TaskID) int { return max(weights[id], 1) }
	for id, w := range held {
		load[w] += weight(id)
		total += weight(id)
	}
	for _, id := range fresh {
		total += weight(id)
	}
	fair := (total + n - 1) / n

	order := slices.Clone(fresh)
	slices.SortFunc(order, func(a, b processor.TaskID) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), Compare(a, b))
	})
	chosen := make(map[processor.TaskID]int, len(order))
	give := func(id processor.TaskID, w int) {
		chosen[id] = w
		load[w] += weight(id)
	}
	for _, id := range order {
		if w, had := last[id]; had && w < n && load[w]+weight(id) <= fair {
			give(id, w)
		}
	}
	for _, id := range order {
		if _, done := chosen[id]; !done {
			give(id, slices.Index(load, slices.Min(load)))
		}
	}
	return chosen
}
