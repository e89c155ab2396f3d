package oracle

import (
	"slices"

	"github.com/millrace-streams/millrace/oracle/scenario"
)

// Difference is an entry of docs/DIFFERENCES.md that scenarios can meet. The Java program knows it by its name and builds, for
// the operators concerned, the topology of Kafka Streams that gives what Millrace gives.
type Difference struct {
	Name string
	Ops  []string // operators concerned
	// When, if not nil, further restricts the scenarios concerned.
	When func(scenario.Scenario) bool
	// Without, if not nil, takes out of a scenario what would meet the difference: there is no topology that gives the same.
	Without func(scenario.Scenario) scenario.Scenario
}

// Differences returns all of them, in the order of docs/DIFFERENCES.md.
func Differences() []Difference {
	all := windowOps()
	ignoring := slices.Concat([]string{"count", "reduce", "aggregate", "cogroup"}, aggregationsIn("sliding"), []string{
		"streamjoin", "streamleft", "streamouter", "streamtablejoin", "streamtableleft", "streamglobaljoin", "streamgloballeft",
		"tablejoin", "tableleft", "tableouter", "foreignjoin", "foreignleft",
	})
	return []Difference{
		{Name: "null-value", Ops: []string{"map", "mapvalues", "flatmap", "flatmapvalues", "filter", "filternot", "selectkey", "split", "groupby"}},
		{Name: "through-null-key", Ops: []string{"through"}},
		{Name: "grace-null-key", Ops: []string{"streamtableleft"}, When: has("grace")},
		{Name: "old-value", Ops: append([]string{"aggregate", "count", "cogroup", "suppress", "tsuppress"}, all...), When: oldValuesMatter},
		{Name: "foreign-empty-value", Ops: []string{"foreignjoin", "foreignleft"}},
		{Name: "window-null-value", Ops: all},
		{Name: "session-headers", Ops: aggregationsIn("session")},
		{Name: "retention-edge", Ops: aggregationsIn("sliding", "session")},
		{Name: "join-same-time", Ops: []string{"streamjoin", "streamleft", "streamouter"}},
		{Name: "join-headers", Ops: []string{"streamleft", "streamouter"}},
		{Name: "versioned-delete-same-time", Ops: []string{"table", "totable"}, When: has("history"), Without: withoutDeletesAtSameTime},
		{Name: "close-keeps-all", Ops: all, When: emitsOnClose},
		{Name: "close-headers", Ops: all, When: emitsOnClose},
		{Name: "ignored-records", Ops: ignoring},
	}
}

// Imitate returns the scenario with the names of the differences that concern it.
func Imitate(s scenario.Scenario) scenario.Scenario {
	s.Diff = nil
	for _, d := range Differences() {
		if !s.Uses(d.Ops...) || d.When != nil && !d.When(s) {
			continue
		}
		s.Diff = append(s.Diff, d.Name)
		if d.Without != nil {
			s = d.Without(s)
		}
	}
	return s
}

// has reports whether an operator has a number of that name.
func has(name string) func(scenario.Scenario) bool {
	return func(s scenario.Scenario) bool {
		return slices.ContainsFunc(s.Ops, func(op scenario.Op) bool { _, has := op.N[name]; return has })
	}
}

func emitsOnClose(s scenario.Scenario) bool {
	return slices.ContainsFunc(s.Ops, func(op scenario.Op) bool { return op.Emit == "close" })
}

// withoutDeletesAtSameTime leaves out tombstones with the timestamp of the latest record of their key and topic.
func withoutDeletesAtSameTime(s scenario.Scenario) scenario.Scenario {
	latest := map[string]int64{}
	var kept []scenario.Step
	for _, step := range s.In {
		if step.Key != nil {
			row := step.Topic + " " + *step.Key
			if at, seen := latest[row]; step.Value == nil && seen && at == step.Time {
				continue
			}
			latest[row] = max(latest[row], step.Time)
		}
		kept = append(kept, step)
	}
	s.In = kept
	return s
}

// oldValuesMatter reports whether a table is read by more than what shows its changes.
func oldValuesMatter(s scenario.Scenario) bool {
	return s.Uses("tgroupby", "tfilter", "tfilternot", "tablejoin", "tableleft", "tableouter", "foreignjoin", "foreignleft")
}

// windowOps returns the names of all aggregations in windows.
func windowOps() []string { return aggregationsIn("tumbling", "hopping", "sliding", "session") }

func aggregationsIn(windows ...string) (ops []string) {
	for _, window := range windows {
		for _, aggregation := range []string{"count", "reduce", "aggregate", "cogroup"} {
			ops = append(ops, window+"."+aggregation)
		}
	}
	return ops
}
