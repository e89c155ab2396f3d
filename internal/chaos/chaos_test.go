//go:build chaos

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

func init() {
	if text := os.Getenv(processVariable); text != "" { // before the tests' own broker
		os.Exit(serve(text))
	}
}

// The run of CI: both backends at once, at least 200 faults, on a broker of its own.
func TestChaos(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("MILLRACE_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("MILLRACE_SEED: %v", err)
		}
	}
	o, err := parse([]string{"-seed", fmt.Sprint(seed), "-faults", "200", "-round", "60", "-mean", "500ms", "-quiet"})
	if err != nil {
		t.Fatal(err)
	}
	o.script = filepath.Join("..", "..", "scripts", "kafka", "broker.sh")
	if err := perform(t.Context(), o, os.Stderr); err != nil {
		t.Fatalf("MILLRACE_SEED=%d: %v", seed, err)
	}
}
