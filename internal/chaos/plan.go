package main

import (
	"math/rand/v2"
	"time"
)

// planned is a fault and how long after the one before it begins. Faults that take their time overlap.
type planned struct {
	after time.Duration
	fault fault
}

// kinds are what can be drawn, and how often.
var kinds = []struct {
	weight int
	draw   draw
}{
	{3, drawKilled},
	{1, drawFrozen},
	{8, drawLossy},
}

// plan chooses n faults for so many processes. The same source gives the same plan.
func plan(r *rand.Rand, n, processes int, mean time.Duration) []planned {
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	all := make([]planned, 0, n)
	for range n {
		after := time.Duration(min(r.ExpFloat64(), 4) * float64(mean))
		if r.IntN(5) == 0 {
			after = 0 // two at once
		}
		at := r.IntN(total)
		for _, k := range kinds {
			if at -= k.weight; at < 0 {
				all = append(all, planned{after, k.draw(r, processes)})
				break
			}
		}
	}
	return all
}
