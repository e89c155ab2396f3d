package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

// fault is one thing that goes wrong. strike makes it happen, and returns when it is over: what is left to do then is the
// application's. met is false if there was nothing to break, which does not count.
type fault interface {
	kind() string
	String() string
	strike(ctx context.Context, e *experiment) (met bool)
}

// victim chooses the process that a fault is about, of those that are wanted at the time.
type victim int

func (v victim) slot(e *experiment) *slot {
	all := e.wanted()
	return all[int(v)%len(all)]
}

// met returns a victim that runs, having told what is going to happen to it.
func (v victim) met(ctx context.Context, e *experiment, f fault) (s *slot, l *life, ok bool) {
	s = v.slot(e)
	if l = s.alive(ctx, metWithin); l == nil {
		return s, nil, false
	}
	e.tell("%s: %s", s, f)
	return s, l, true
}

// metWithin is how long a fault waits for its victim to run, and for what is armed to be met.
const metWithin = 5 * time.Second

// planned is a fault and how long after the one before it begins. Faults that take their time overlap.
type planned struct {
	after time.Duration
	fault fault
}

// drawing makes faults of one kind.
type drawing struct {
	weight   int // how often
	boltOnly bool
	draw     func(r *rand.Rand) fault
}

var drawings = []drawing{
	{20, false, drawKilled},
	{14, false, drawCaught},
	{9, false, drawFrozen},
	{10, false, drawCrashed},
	{5, false, drawSlow},
	{8, false, drawRestarted},
	{6, false, drawAdded},
	{6, false, drawRemoved},
	{2, false, drawRolled},
	{70, false, drawLossy},
	{6, false, drawSplit},
	{6, false, drawOutrun},
	{6, false, drawCut},
	{12, true, drawSick},
	{10, true, drawDamaged},
	{3, false, drawHomeless},
	{3, false, drawStall},
}

// torn is drawn too with options.anyPage.
var torn = drawing{30, true, drawTorn}

// plan chooses the n faults of a round. The same source gives the same plan. Some are sure to be among them: an outage of the
// broker, which takes longer than the others, and transactions that are undone, without which one mistake about commits is
// hardly ever found.
func plan(r *rand.Rand, n int, o options, bolt bool) []planned {
	choice, total := drawings, 0
	if o.anyPage {
		choice = append(slices.Clone(drawings), torn)
	}
	for _, d := range choice {
		total += d.weight
	}
	sure := sureFaults(r, n)
	var all []planned
	for len(all) < n {
		after := time.Duration(min(r.ExpFloat64(), 4) * float64(o.mean))
		if r.IntN(5) == 0 {
			after = 0 // two at once
		}
		d := pick(choice, r.IntN(total))
		if draw := sure[len(all)]; draw != nil {
			d = drawing{draw: draw}
			delete(sure, len(all))
		}
		if f := d.draw(r); (bolt || !d.boltOnly) && (o.only == nil || o.only.MatchString(f.kind())) {
			all = append(all, planned{after, f})
		}
	}
	return all
}

// undoneOf is how many faults of a round there are for each transaction that is undone.
const undoneOf = 15

// sureFaults are the faults that a round of n is sure to have, by their place in it.
func sureFaults(r *rand.Rand, n int) map[int]func(*rand.Rand) fault {
	sure := map[int]func(*rand.Rand) fault{}
	for i, place := range r.Perm(n)[:min(n, 1+max(2, n/undoneOf))] {
		sure[place] = drawUndone
		if i == 0 {
			sure[place] = drawOutage
		}
	}
	return sure
}

// pick returns the drawing at a place in the sum of the weights.
func pick(choice []drawing, at int) drawing {
	for _, d := range choice {
		if at -= d.weight; at < 0 {
			return d
		}
	}
	panic("chaos: a weight beyond all drawings")
}

// anyone draws a victim.
func anyone(r *rand.Rand) victim { return victim(r.IntN(1000)) }

// between returns a duration in whole milliseconds.
func between(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64((to-from)/time.Millisecond)))*time.Millisecond
}
