package oracle_test

import (
	"math/rand/v2"
	"slices"

	"github.com/millrace-streams/millrace/oracle/scenario"
)

// numbered is a step with its number, which its record bears in a header.
type numbered struct {
	scenario.Step
	number int
}

// rounds cuts a scenario's steps where the outcome depends on their order: what is in a round may be on the broker at once.
// Records of one topic are processed in their order, if the topic has one partition. A join by foreign key sends a record
// on two ways to its end. The wall clock goes by itself, and no operator of scenarios looks at it.
func rounds(s scenario.Scenario, random *rand.Rand, alone bool) (all [][]numbered) {
	alone = alone || s.Uses("foreignjoin", "foreignleft")
	last := ""
	for i, step := range s.In {
		if step.Topic == scenario.Clock {
			continue
		}
		if alone || step.Topic != last || random.IntN(4) == 0 {
			all = append(all, nil)
		}
		last = step.Topic
		all[len(all)-1] = append(all[len(all)-1], numbered{step, i})
	}
	return all
}

// round returns what all scenarios send in a round.
func (f *flock) round(i int) (steps []numbered) {
	for _, p := range f.list {
		if i < len(p.rounds) {
			steps = append(steps, p.rounds[i]...)
		}
	}
	return steps
}

// global reports whether a topic is that of a global table.
func (f *flock) global(topic string) bool {
	return f.anyGlobal(func(op scenario.Op) bool { return op.From[0] == topic })
}

func (f *flock) globalStore(name string) bool {
	return f.anyGlobal(func(op scenario.Op) bool { return op.ID == name })
}

func (f *flock) anyGlobal(is func(scenario.Op) bool) bool {
	return slices.ContainsFunc(f.list, func(p *placed) bool {
		return slices.ContainsFunc(p.Ops, func(op scenario.Op) bool { return op.Op == "globaltable" && is(op) })
	})
}

// follow waits until global tables hold what a round has sent to their topics: no lag says so.
func (f *flock) follow(i int) {
	f.t.Helper()
	for _, p := range f.list {
		for _, op := range p.Ops {
			if op.Op == "globaltable" && i < len(p.rounds) && p.rounds[i][0].Topic == op.From[0] {
				f.wait(func() (bool, string) { return f.holds(p, op.ID, p.rounds[i]), "a global table is behind its topic" })
			}
		}
	}
}

// holds reports whether a store holds the latest values of records.
func (f *flock) holds(p *placed, name string, records []numbered) bool {
	f.t.Helper()
	want, rows := map[string]*string{}, map[string]*string{}
	for _, r := range records {
		if r.Key != nil {
			want[*r.Key] = r.Value
		}
	}
	for _, r := range f.stores(p)[name] {
		rows[*r.Key] = r.Value
	}
	for key, v := range want {
		if row := rows[key]; (row == nil) != (v == nil) || v != nil && *row != *v {
			return false
		}
	}
	return true
}

// fates draws how lives end: for each round, what becomes of the one that sees its records first.
func (f *flock) fates() (all []fate) {
	n := 0
	for _, p := range f.list {
		n = max(n, len(p.rounds))
	}
	all = make([]fate, n)
	for i := range all {
		if f.chance(8) {
			all[i] = stopped + fate(f.random.IntN(3))
		}
	}
	for i, place := range f.random.Perm(min(n, 9)) { // where many scenarios are still in work
		all[place] = []fate{stopped, dropped, dropped, unseen, on, on, on, on, on}[i]
	}
	return all
}

// next returns how the life ends that begins now.
func next(fates []fate) fate {
	for _, end := range fates {
		if end == unseen { // has a life of its own
			return stopped
		}
		if end != on {
			return end
		}
	}
	return stopped
}

// chance is true in percent of all cases.
func (f *flock) chance(percent int) bool { return f.random.IntN(100) < percent }
