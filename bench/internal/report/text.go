package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/millrace-streams/millrace/bench/internal/work"
)

// Print writes a workload's table.
func (s *Section) Print(out io.Writer) {
	head, lines := s.table()
	fmt.Fprintf(out, "%s: %s", s.Workload.Name, s.Workload.Title)
	if s.Workload.Records > 0 {
		fmt.Fprintf(out, "; %s records", work.Thousands(s.Workload.Records))
	}
	fmt.Fprintln(out)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, line := range append([][]string{head}, lines...) {
		fmt.Fprintln(t, strings.Join(line, "\t")+"\t")
	}
	_ = t.Flush()
	fmt.Fprintln(out)
}
