package model

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Print writes the calculation as a table, one section after the other.
func (c Costs) Print(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	section := ""
	for _, x := range c {
		if x.Section != section {
			section = x.Section
			fmt.Fprintf(t, "%s\t\t\n", strings.ToUpper(section[:1])+section[1:])
		}
		fmt.Fprintf(t, "  %s\t%s\t= %s\n", x.Name, strings.TrimSpace(Number(x.Value)+" "+x.Unit), x.Formula)
	}
	return t.Flush()
}

// Number writes three digits that count, and thousands with commas.
func Number(x float64) string {
	if math.Abs(x) < 100 {
		return strconv.FormatFloat(x, 'g', 3, 64)
	}
	s := strconv.FormatFloat(x, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Simulate places the cluster's tasks, lets a process die and another one join, and writes down what that moves and costs.
func (c Cluster) Simulate(out io.Writer, seed uint64) error {
	g := NewGroup(c, seed)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "Simulated group\ttasks\tstandbys\tmillions of changelog records\trebalances\ttaken over\tmoved\tuntil all tasks go on\tuntil all replicas are there\n")
	steps := []struct {
		name   string
		change func() Change
	}{
		{"all start", func() Change { return g.Join(c.Processes) }},
		{"one dies", func() Change { return g.Die(0) }},
		{"one joins", func() Change { return g.Join(1) }},
	}
	for i, s := range steps {
		if i == 1 && c.Processes == 1 {
			break
		}
		change := s.change()
		b := g.Balance()
		fmt.Fprintf(t, "  %s\t%d to %d\t%d to %d\t%s to %s\t%d\t%d\t%d\t%s s\t%s s\n", s.name,
			b.Tasks[0], b.Tasks[1], b.Standbys[0], b.Standbys[1], Number(float64(b.State[0])/1e6), Number(float64(b.State[1])/1e6),
			change.Rebalances, change.Taken, change.Moved, Number(c.Pause(change, i == 1)), Number(c.Catching(change)))
	}
	return t.Flush()
}

// Pause is how long the tasks rest that have lost their owner: until the group has noticed, if that has died, and until the process
// that has most to restore has done it.
func (c Cluster) Pause(x Change, died bool) float64 {
	s := rebalanceSeconds + float64(x.MostOfOne)/c.restoreRate()
	if died {
		s += c.SessionTimeout.Seconds()
	}
	return s
}

// Catching is how long replicas are read beside the work, round after round.
func (c Cluster) Catching(x Change) float64 {
	return float64(x.Rebalances)*warmupCheck + float64(x.Catching)/c.restoreRate()
}

// restoreRate is that of a process with at least as many tasks to restore as it has workers.
func (c Cluster) restoreRate() float64 { return restoreRate * float64(c.Workers) }
