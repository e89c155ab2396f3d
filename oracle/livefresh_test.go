//go:build oracle

package oracle_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"

	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/internal/seed"
	"github.com/millrace-streams/millrace/oracle/scenario"
	"github.com/millrace-streams/millrace/store/bolt"
	"github.com/millrace-streams/millrace/store/memory"
)

var live = flag.Int("live", 180, "number of fresh scenarios on the broker, at the least")

// TestLiveGolden runs all of testdata on the application and a broker, with restarts in between.
func TestLiveGolden(t *testing.T) {
	var list []golden
	files := goldens(t)
	for _, file := range sorted(files) {
		list = append(list, files[file]...)
	}
	flocks(t, seed.Of(t), list)
}

// TestLiveFresh does so with random scenarios, as many of each kind.
func TestLiveFresh(t *testing.T) {
	first := seed.Of(t)
	var list []golden
	asked(t, start(t), fresh(first+1_000_000, *live), func(s scenario.Scenario, a scenario.Answer) {
		list = append(list, golden{s, a})
	})
	flocks(t, first, list)
}

// flocks runs scenarios in flocks of many settings.
func flocks(t *testing.T, seed uint64, list []golden) {
	t.Logf("broker: %s", brokertest.Kind(t))
	var left []string
	list = slices.DeleteFunc(list, func(g golden) bool {
		fails := g.Answer.Error != "" // the application would stop, and the others with it
		if fails {
			left = append(left, g.Scenario.ID)
		}
		return fails
	})
	t.Logf("%d scenarios on the broker; left out, since they end with an error: %v", len(list), left)
	var spread, cached, rest []golden
	for i, g := range list {
		switch {
		case i%6 == 0 && byKey(g.Scenario):
			spread = append(spread, g)
		case i%6 == 1 && endsInTable(g.Scenario) && !g.Scenario.Uses("treduce", "taggregate"): // those show each change that they were told
			cached = append(cached, g)
		default:
			rest = append(rest, g)
		}
	}
	n := 0
	run := func(name string, list []golden, set setting) {
		for part := range slices.Chunk(list, 40) {
			n++
			seed := seed + uint64(n)
			t.Run(fmt.Sprintf("%s %d", name, n), func(t *testing.T) {
				t.Parallel()
				newFlock(t, seed, part, set).run()
			})
		}
	}
	half := len(rest) / 2
	run("memory", rest[:half], setting{opener: memory.Opener{}, partitions: 1})
	run("bbolt", rest[half:], setting{opener: bolt.Opener{}, partitions: 1})
	run("bbolt, 3 partitions", spread, setting{opener: bolt.Opener{}, partitions: 3})
	run("bbolt, cached", cached, setting{opener: bolt.Opener{}, partitions: 1, cached: true})
}
