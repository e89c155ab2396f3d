package oracle

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/millrace-streams/millrace/oracle/scenario"
)

// Compare returns what is different between the answers of Kafka Streams and Millrace, as text for people; "" if nothing is.
// Compared are all written records with their order, the number of those that were dropped, and the contents of the stores that both have told, in whatever order.
func Compare(want, got scenario.Answer) string {
	var b strings.Builder
	if want.Error != "" || got.Error != "" {
		fmt.Fprintf(&b, "errors: Kafka Streams %q, Millrace %q\n", want.Error, got.Error)
	}
	b.WriteString(columns("records", want.Out, got.Out))
	if want.Dropped != got.Dropped {
		fmt.Fprintf(&b, "records that were late or had no key: Kafka Streams %d, Millrace %d\n", want.Dropped, got.Dropped)
	}
	for _, name := range slices.Sorted(maps.Keys(got.Stores)) {
		if rows, both := want.Stores[name]; both {
			b.WriteString(columns("store "+name, ordered(rows), ordered(got.Stores[name])))
		}
	}
	return b.String()
}

// columns shows two lists beside each other if they differ, with a mark where they do first.
func columns(what string, want, got []scenario.Row) string {
	left, right := lines(want), lines(got)
	if slices.Equal(left, right) {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s:\n    %-46s %s\n", what, "Kafka Streams", "Millrace")
	marked := false
	for i := range max(len(left), len(right)) {
		l, r := at(left, i), at(right, i)
		mark := "  "
		if l != r && !marked {
			mark, marked = "->", true
		}
		fmt.Fprintf(&b, " %s %-46s %s\n", mark, l, r)
	}
	return b.String()
}

func ordered(rows []scenario.Row) []scenario.Row {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b scenario.Row) int { return strings.Compare(a.String(), b.String()) })
	return rows
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

func lines(rows []scenario.Row) (out []string) {
	for _, r := range rows {
		out = append(out, r.String())
	}
	return out
}
