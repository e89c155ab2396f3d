package oracle_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/millrace-streams/millrace/oracle/scenario"
)

// probed adds to each global table a stream that is joined with it: the application's lag does not say whether the table is
// up to date.
func probed(s scenario.Scenario) scenario.Scenario {
	for _, op := range slices.Clone(s.Ops) {
		if op.Op == "globaltable" {
			s.Ops = append(slices.Clip(s.Ops),
				scenario.Op{ID: op.ID + ".probe", Op: "stream", From: []string{op.From[0] + ".probe"}},
				scenario.Op{ID: op.ID + ".look", Op: "streamgloballeft", From: []string{op.ID + ".probe", op.ID}, Key: "same"},
				scenario.Op{ID: op.From[0] + ".found", Op: "to", From: []string{op.ID + ".look"}})
		}
	}
	return s
}

// global reports whether a topic is that of a global table.
func (f *flock) global(topic string) bool {
	return slices.ContainsFunc(f.list, func(p *placed) bool {
		return slices.ContainsFunc(p.Ops, func(op scenario.Op) bool { return op.Op == "globaltable" && op.From[0] == topic })
	})
}

// probe waits until what a round has sent to topics of global tables is in the tables.
func (f *flock) probe(i int) {
	f.t.Helper()
	missing := f.globalRows(i)
	for tries := 0; len(missing) > 0; tries++ {
		token := fmt.Sprintf("%d.%d", i, tries)
		for topic, rows := range missing {
			for key := range rows {
				f.send([]numbered{{scenario.Step{Topic: topic + ".probe", Key: &key, Value: &token}, i}})
			}
		}
		f.drain()
		for topic, rows := range missing {
			for _, r := range f.read(topic+".found", f.app.Outputs[topic+".found"]) {
				if *r.Value == token+"/"+rows[*r.Key] {
					delete(rows, *r.Key)
				}
			}
		}
		maps.DeleteFunc(missing, func(_ string, rows map[string]string) bool { return len(rows) == 0 })
	}
}

// globalRows returns the rows that a round writes, by topic and key, as a join shows them.
func (f *flock) globalRows(i int) map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, s := range f.round(i) {
		if s.Key == nil || !f.global(s.Topic) {
			continue
		}
		if all[s.Topic] == nil {
			all[s.Topic] = map[string]string{}
		}
		all[s.Topic][*s.Key] = "~"
		if s.Value != nil {
			all[s.Topic][*s.Key] = *s.Value
		}
	}
	return all
}
