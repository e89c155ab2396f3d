package oracle_test

import (
	"testing"

	"github.com/millrace-streams/millrace/oracle/scenario"
	"github.com/millrace-streams/millrace/store/bolt"
	"github.com/millrace-streams/millrace/store/memory"
)

// TestLive runs some of testdata, of each kind one scenario, on the application and a broker, with restarts in between.
func TestLive(t *testing.T) {
	var some, keyed []golden
	files := goldens(t)
	for _, file := range sorted(files) {
		for i, g := range files[file] {
			if g.Answer.Error != "" {
				continue // the application would stop, and the others with it
			}
			switch {
			case i%8 == 0:
				some = append(some, g)
			case i%16 == 1 && byKey(g.Scenario):
				keyed = append(keyed, g)
			}
		}
	}
	for name, run := range map[string]struct {
		list []golden
		set  setting
	}{
		"memory":              {some[:len(some)/2], setting{opener: memory.Opener{}, partitions: 1}},
		"bbolt":               {some[len(some)/2:], setting{opener: bolt.Opener{}, partitions: 1}},
		"bbolt, 3 partitions": {keyed, setting{opener: bolt.Opener{}, partitions: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newFlock(t, 1, run.list, run.set).run()
		})
	}
}

// byKey reports whether a scenario's outcome does not depend on what becomes of other keys.
func byKey(s scenario.Scenario) bool {
	switch scenario.Family(s.ID) {
	case "stateless", "aggregate", "table", "join", "foreign":
		return true
	}
	return false
}
