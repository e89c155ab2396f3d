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
}

// Differences returns all of them, in the order of docs/DIFFERENCES.md.
func Differences() []Difference {
	return []Difference{
		{Name: "null-value", Ops: []string{"map", "mapvalues", "flatmap", "flatmapvalues", "filter", "filternot", "selectkey", "split", "groupby"}},
		{Name: "through-null-key", Ops: []string{"through"}},
		{Name: "grace-null-key", Ops: []string{"streamtableleft"}, When: func(s scenario.Scenario) bool {
			return slices.ContainsFunc(s.Ops, func(op scenario.Op) bool { _, grace := op.N["grace"]; return grace })
		}},
		{Name: "close-keeps-all", Ops: windowed(), When: func(s scenario.Scenario) bool {
			return slices.ContainsFunc(s.Ops, func(op scenario.Op) bool { return op.Emit == "close" })
		}},
	}
}

// Imitate returns the scenario with the names of the differences that concern it.
func Imitate(s scenario.Scenario) scenario.Scenario {
	s.Diff = nil
	for _, d := range Differences() {
		if s.Uses(d.Ops...) && (d.When == nil || d.When(s)) {
			s.Diff = append(s.Diff, d.Name)
		}
	}
	return s
}

// windowed returns the names of all aggregations in windows.
func windowed() (ops []string) {
	for _, window := range []string{"tumbling", "hopping", "sliding", "session"} {
		for _, aggregation := range []string{"count", "reduce", "aggregate", "cogroup"} {
			ops = append(ops, window+"."+aggregation)
		}
	}
	return ops
}
