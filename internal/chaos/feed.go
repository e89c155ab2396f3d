package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// writer makes up input, the same for the same seed, in the order of event times.
type writer struct {
	seed   uint64
	rng    *rand.Rand
	base   time.Time // event time of the first round
	round  int
	ticks  int // in this round
	number int // of the records that are joined
	lines  int
}

// What the input is like.
const (
	vocabulary   = 3000
	joinKeys     = 24 // over all partitions
	users        = 200
	usersMissing = 20  // are named and not in the table
	tableRows    = 400 // over all partitions; of a table that changes
	burstOnceIn  = 60  // batches
	burst        = 40
	tickTime     = 10 * time.Millisecond
	longestRound = int(roundSpan / tickTime) // in ticks
)

func newWriter(seed uint64, base time.Time) *writer {
	return &writer{seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), base: base}
}

// fed is a record for a partition of a topic.
type fed struct {
	topic     string
	partition int32
	entry
	at time.Time
}

// table returns the rows of the global table.
func (w *writer) table(a application) []fed {
	var rows []fed
	for i := range users {
		rows = append(rows, fed{a.users(), int32(i) % globalPartitions, entry{userName(i), fmt.Sprintf("name-%d", w.rng.IntN(1000))}, w.base})
	}
	return rows
}

func userName(i int) string { return fmt.Sprintf("u%d", i) }

// batch returns the records to write at once: now and then very many.
func (w *writer) batch(a application) []fed {
	all := w.next(a)
	if w.rng.IntN(burstOnceIn) == 0 {
		for range burst {
			all = append(all, w.next(a)...)
		}
	}
	return all
}

// next returns the records of the next moments, at least one for each partition of each input.
func (w *writer) next(a application) []fed {
	var all []fed
	for p := range int32(partitions) {
		for range 1 + w.rng.IntN(6) {
			all = append(all, fed{a.lines(), p, entry{"", w.line()}, w.time()})
		}
		all = append(all, w.row(a, p))
		for range 1 + w.rng.IntN(3) {
			all = append(all, w.left(a, p), w.right(a, p))
			if w.rng.IntN(3) > 0 {
				w.tick() // else the next ones have the same time
			}
		}
	}
	return all
}

// full reports whether the round has to come to its end, over whether its event times must not go further.
func (w *writer) full() bool { return w.ticks > longestRound*8/10 }
func (w *writer) over() bool { return w.ticks > longestRound }

// nextRound moves event time beyond what the join's stores retain.
func (w *writer) nextRound() { w.round, w.ticks = w.round+1, 0 }

func (w *writer) tick() { w.ticks++ }

func (w *writer) time() time.Time {
	return w.base.Add(time.Duration(w.round)*roundEvery + time.Duration(w.ticks)*tickTime)
}

// line returns one to five words, some of which are much more frequent than others.
func (w *writer) line() string {
	var words []string
	for range 1 + w.rng.IntN(5) {
		words = append(words, fmt.Sprintf("w%d", int(vocabulary*w.rng.Float64()*w.rng.Float64())))
	}
	w.lines++
	return strings.Join(words, " ")
}

func (w *writer) left(a application, p int32) fed {
	w.number++
	value := fmt.Sprintf("l%d %s", w.number, userName(w.rng.IntN(users+usersMissing)))
	return fed{a.lefts(), p, entry{w.joinKey(p), value}, w.time()}
}

func (w *writer) right(a application, p int32) fed {
	w.number++
	return fed{a.rights(), p, entry{w.joinKey(p), fmt.Sprintf("r%d", w.number)}, w.time()}
}

// row sets a row of the table that changes, or deletes it.
func (w *writer) row(a application, p int32) fed {
	w.number++
	key, value := fmt.Sprintf("row%d", w.rng.IntN(tableRows/partitions)*partitions+int(p)), fmt.Sprintf("v%d", w.number)
	if w.rng.IntN(3) == 0 {
		value = ""
	}
	return fed{a.rows(), p, entry{key, value}, w.time()}
}

// joinKey returns a key of a partition.
func (w *writer) joinKey(p int32) string {
	return fmt.Sprintf("k%d", w.rng.IntN(joinKeys/partitions)*partitions+int(p))
}
