package oracle_test

import (
	"cmp"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace-streams/millrace/oracle"
	"github.com/millrace-streams/millrace/oracle/scenario"
	"github.com/millrace-streams/millrace/store/bolt"
	"github.com/millrace-streams/millrace/testdriver"
)

// TestRestarts runs the scenarios of testdata with restarts in between: in good order and by kill -9, with and without the
// local state, on both backends. What is written must be the same, record by record.
func TestRestarts(t *testing.T) {
	for file, list := range goldens(t) {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			for i, g := range list {
				var opts []testdriver.Option
				backend := "memory"
				if i%4 == 0 {
					backend = "bbolt"
					opts = append(opts, testdriver.Backend(bolt.Opener{}), testdriver.StateDir(t.TempDir()))
				}
				got, err := oracle.Millrace(g.Scenario, restarts(g.Scenario), opts...)
				got.Dropped = g.Answer.Dropped // who is told is told again of what is processed again
				if err != nil {
					t.Errorf("%v\n%v", g.Scenario, err)
				} else if diff := oracle.Compare(g.Answer, got); diff != "" {
					t.Errorf("with restarts on %s: %v\n%s", backend, g.Scenario, diff)
				}
			}
		})
	}
}

// restarts restarts a driver before some steps; which ones and how follows from the scenario's ID.
func restarts(s scenario.Scenario) func(*testdriver.Driver, int) {
	h := fnv.New64()
	h.Write([]byte(s.ID))
	random := rand.New(rand.NewPCG(h.Sum64(), 0))
	return func(d *testdriver.Driver, step int) {
		if step == 0 || random.IntN(5) > 0 {
			return
		}
		switch random.IntN(4) {
		case 0:
			d.Restart()
		case 1:
			d.RestartEmpty()
		case 2:
			d.Crash()
			d.Restart()
		default:
			d.Crash()
			d.RestartEmpty()
		}
	}
}

// TestPartitions runs the scenarios of testdata whose outcome does not depend on other keys' times on topics of three
// partitions. After each step the same must have been written, in whatever order.
func TestPartitions(t *testing.T) {
	for _, list := range goldens(t) {
		for _, g := range list {
			if !byKey(g.Scenario) {
				continue
			}
			got, err := oracle.Millrace(g.Scenario, nil, testdriver.DefaultPartitions(3))
			g.Answer.Stores, got.Stores = nil, nil
			got.Dropped = g.Answer.Dropped // what is late follows from other keys' times
			unordered(g.Answer.Out)
			unordered(got.Out)
			if err != nil {
				t.Errorf("%v\n%v", g.Scenario, err)
			} else if diff := oracle.Compare(g.Answer, got); diff != "" {
				t.Errorf("on three partitions: %v\n%s", g.Scenario, diff)
			}
		}
	}
}

// unordered sorts the records of each step.
func unordered(rows []scenario.Row) {
	slices.SortStableFunc(rows, func(a, b scenario.Row) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.String(), b.String()))
	})
}

// TestCached runs the scenarios of testdata that end in a table with tables that forward once per commit: what is left of each
// key must be the same.
func TestCached(t *testing.T) {
	for _, list := range goldens(t) {
		for _, g := range list {
			s := g.Scenario
			if !endsInTable(s) {
				continue
			}
			got, err := oracle.Millrace(s, nil, testdriver.Cached())
			if err != nil {
				t.Errorf("%v\n%v", s, err)
			} else if want, got := last(g.Answer.Out), last(got.Out); !maps.Equal(want, got) {
				t.Errorf("with the cache on: %v\nKafka Streams: %v\nMillrace:      %v", s, want, got)
			}
		}
	}
}

// endsInTable reports whether the last values of a scenario's output are those of a table, whenever its changes are told.
func endsInTable(s scenario.Scenario) bool {
	return s.Uses("changes") && !s.Uses("suppress", "tsuppress")
}

// last returns the last value of each key that is there.
func last(rows []scenario.Row) map[string]string {
	rest := map[string]string{}
	for _, r := range rows {
		key := ""
		if r.Key != nil {
			key = *r.Key
		}
		if delete(rest, key); r.Value != nil {
			rest[key] = *r.Value
		}
	}
	return rest
}
