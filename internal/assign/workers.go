package assign

import (
	"cmp"
	"maps"
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

// Level chooses new workers, from 0 up to n, for tasks that are held: for those of a worker that there is no more, and for
// as few others as it takes to make the loads differ by no more than one task would change. The others are left out.
func Level(n int, held map[processor.TaskID]int, weights map[processor.TaskID]int) map[processor.TaskID]int {
	weight := func(id processor.TaskID) int { return max(weights[id], 1) }
	stay := map[processor.TaskID]int{}
	var homeless []processor.TaskID
	for id, w := range held {
		if w >= 0 && w < n {
			stay[id] = w
		} else {
			homeless = append(homeless, id)
		}
	}
	moves := Workers(n, homeless, stay, nil, weights)

	maps.Copy(stay, moves)
	load := make([]int, n)
	for id, w := range stay {
		load[w] += weight(id)
	}
	movable := slices.Collect(maps.Keys(stay))
	slices.SortFunc(movable, func(a, b processor.TaskID) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), Compare(a, b))
	})
	for i := 0; i < len(movable); i++ {
		id := movable[i]
		from, to := stay[id], slices.Index(load, slices.Min(load))
		if load[to]+weight(id) >= load[from] {
			continue
		}
		load[from], load[to] = load[from]-weight(id), load[to]+weight(id)
		moves[id], stay[id] = to, to
		i = -1 // what did not help before may help now
	}
	for id, w := range moves {
		if w == held[id] {
			delete(moves, id) // there and back
		}
	}
	return moves
}
