//go:build chaos

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/internal/seed"
)

func init() {
	if text := os.Getenv(processVariable); text != "" { // before the tests' own broker
		os.Exit(serve(text))
	}
}

// The run of CI: both backends at once, at least 200 faults, on a broker of its own.
func TestChaos(t *testing.T) {
	n := seed.Of(t)
	const faults, limit = 200, 20 * time.Minute // it takes 3 minutes on two cores with little other work
	o, err := parse([]string{"-seed", fmt.Sprint(n), "-faults", fmt.Sprint(faults), "-for", limit.String(), "-round", "60", "-mean", "500ms", "-quiet"})
	if err != nil {
		t.Fatal(err)
	}
	o.script = filepath.Join("..", "..", "scripts", "kafka", "broker.sh")
	ctx, cancel := context.WithTimeout(t.Context(), limit+5*time.Minute) // before the test's own end, which would leave the broker
	defer cancel()
	s, err := perform(ctx, o, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.faults(); got < faults {
		t.Errorf("%d faults took effect in %v, want %d", got, limit, faults)
	}
}
