package oracle_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-streams/millrace/oracle"
)

// TestDifferencesAreDocumented wants the same entries in docs/DIFFERENCES.md, in the same order.
func TestDifferencesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/DIFFERENCES.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented, known []string
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "## "); ok {
			documented = append(documented, strings.TrimSpace(name))
		}
	}
	for _, d := range oracle.Differences() {
		known = append(known, d.Name)
	}
	if !slices.Equal(documented, known) {
		t.Errorf("documented: %q\nknown:      %q", documented, known)
	}
}
