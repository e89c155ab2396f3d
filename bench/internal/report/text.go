package report

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/millrace-streams/millrace/bench/internal/work"
)

// Print writes a workload's table.
func (s *Section) Print(out io.Writer) {
	all := columns(s.Workload)
	fmt.Fprintf(out, "%s: %s", s.Workload.Name, s.Workload.Title)
	if s.Workload.Records > 0 {
		fmt.Fprintf(out, "; %s records", work.Thousands(s.Workload.Records))
	}
	fmt.Fprintln(out)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "contender\truns\t")
	for _, c := range all {
		fmt.Fprint(t, c.head, "\t")
	}
	fmt.Fprintln(t)
	for _, x := range s.Rows {
		fmt.Fprintf(t, "%s\t%d\t", x.Contender, len(x.Runs))
		for i, c := range all {
			cell := c.cell(s, x)
			switch {
			case i == 0 && len(x.Runs) == 0:
				cell = "no figure"
			case cell == "":
				cell = "-"
			}
			fmt.Fprint(t, cell, "\t")
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush()
	fmt.Fprintln(out)
}
