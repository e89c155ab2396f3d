package main

import (
	"slices"
	"strings"
	"time"
)

// entry is a record as text.
type entry struct{ Key, Value string }

// input is all that the application was given.
type input struct {
	lines         []string
	lefts, rights []timed
	users         map[string]string
	rows          []entry // "" deletes
}

// timed is a record of a stream that is joined.
type timed struct {
	entry
	at time.Time
}

// results is what must come out. Bags hold how often a record occurs.
type results struct {
	words  map[string]int64 // how often each word occurs
	joined map[entry]int
	named  map[entry]int
	lefts  map[entry]int // what the join's stores have kept
	rights map[entry]int

	history map[entry]int     // changes of rows
	rows    map[string]string // as they are at last, deleted ones as ""
}

// compute is the batch computation: the same results from the whole input at once, by other means.
func compute(in input) results {
	r := results{words: map[string]int64{}, joined: map[entry]int{}, named: map[entry]int{}, lefts: bag(in.lefts), rights: bag(in.rights)}
	r.follow(in.rows)
	for _, line := range in.lines {
		for _, word := range strings.Fields(line) {
			r.words[word]++
		}
	}
	for _, left := range in.lefts {
		name, exists := in.users[userOf(left.Value)]
		r.named[entry{left.Key, withName(left.Value, name, exists)}]++
	}
	rights := map[string][]timed{}
	for _, right := range in.rights {
		rights[right.Key] = append(rights[right.Key], right)
	}
	for _, all := range rights {
		slices.SortFunc(all, func(a, b timed) int { return a.at.Compare(b.at) })
	}
	for _, left := range in.lefts {
		for _, right := range within(rights[left.Key], left.at) {
			r.joined[entry{left.Key, pair(left.Value, right.Value)}]++
		}
	}
	return r
}

// follow computes how the rows change.
func (r *results) follow(rows []entry) {
	r.rows, r.history = map[string]string{}, map[entry]int{}
	for _, row := range rows {
		r.history[entry{row.Key, change(r.rows[row.Key], row.Value)}]++
		r.rows[row.Key] = row.Value
	}
}

func bag(records []timed) map[entry]int {
	all := map[entry]int{}
	for _, r := range records {
		all[r.entry]++
	}
	return all
}

// within returns the records, sorted by time, that the join's windows allow beside one of this time.
func within(sorted []timed, at time.Time) []timed {
	from, _ := slices.BinarySearchFunc(sorted, at.Add(-joinWithin), func(r timed, t time.Time) int { return r.at.Compare(t) })
	to := from
	for to < len(sorted) && !sorted[to].at.After(at.Add(joinWithin)) {
		to++
	}
	return sorted[from:to]
}
