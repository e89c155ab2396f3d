package model_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/bench/internal/model"
)

// The calculation agrees with what was measured, within the factor that stands beside each point.
func TestMeasured(t *testing.T) {
	t.Parallel()
	for _, p := range model.Measured() {
		must(t, p.Cluster.Check())
		within(t, p.Name+": "+p.Term, p.Cluster.Costs().Of(p.Term), p.Value, p.Factor)
	}
}

// Whatever the cluster, no term is less than nothing or no number, and the process that has most has no less than its share.
func TestAllClusters(t *testing.T) {
	t.Parallel()
	for _, processes := range []int{1, 7, 100} {
		for _, partitions := range []int{1, 60, 2_000} {
			for _, rate := range []float64{0.01, 1_000, 1e7} {
				c := model.Default()
				c.Processes, c.Partitions, c.Rate, c.Standbys = processes, partitions, rate, processes%2
				costs := c.Costs()
				for _, x := range costs {
					if math.IsNaN(x.Value) || math.IsInf(x.Value, 0) || x.Value < 0 {
						t.Errorf("%d processes, %d partitions, %g records/s: %s is %g", processes, partitions, rate, x.Name, x.Value)
					}
				}
				if all := costs.Of("records") * float64(processes); all < rate*(1-1e-9) {
					t.Errorf("%d processes with %d partitions work on %g of %g records/s", processes, partitions, all, rate)
				}
			}
		}
	}
}

func TestSettingsMatter(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		change func(*model.Cluster)
		term   string
		more   bool
	}{
		"keys fill disks":                         {func(c *model.Cluster) { c.Keys *= 2 }, "disk", true},
		"standbys fill disks":                     {func(c *model.Cluster) { c.Standbys++ }, "disk", true},
		"standbys read":                           {func(c *model.Cluster) { c.Standbys++ }, "bytes out", true},
		"memory has no files":                     {func(c *model.Cluster) { c.Memory = true }, "disk", false},
		"rarer commits":                           {func(c *model.Cluster) { c.CommitInterval = 2 * time.Second }, "transactions", false},
		"rarer commits of backlogs":               {func(c *model.Cluster) { c.Backlog = true }, "transactions", false},
		"small segments":                          {func(c *model.Cluster) { c.SegmentBytes /= 20 }, "take-over without", false},
		"short sessions":                          {func(c *model.Cluster) { c.SessionTimeout /= 2 }, "take-over by standbys", false},
		"more processes":                          {func(c *model.Cluster) { c.Processes *= 2 }, "peak memory", false},
		"more processes with the same partitions": {func(c *model.Cluster) { c.Processes *= 2 }, "requests", true},
	} {
		before, after := model.Default(), model.Default()
		want.change(&after)
		a, b := before.Costs().Of(want.term), after.Costs().Of(want.term)
		if a == b || (b > a) != want.more {
			t.Errorf("%s: %s goes from %g to %g", name, want.term, a, b)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	must(t, model.Default().Check())
	c := model.Default()
	c.Processes, c.Replicas, c.Keys, c.CommitTime = 0, 9, math.NaN(), 0
	err := c.Check()
	if !errors.Is(err, model.ErrCluster) || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("four mistakes are %v", err)
	}
}
