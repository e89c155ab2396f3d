package integration

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/internal/brokertest"
)

func TestMain(m *testing.M) {
	if spec := os.Getenv(childVariable); spec != "" {
		os.Exit(runChild(spec))
	}
	slog.SetLogLoggerLevel(slog.LevelWarn)
	brokertest.Main(m)
}

// patience bounds what a broken application could make endless. It is no measure of anything.
const patience = 60 * time.Second

// seeded returns the test's source of randomness, and prints how to have the same again.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("MILLRACE_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("MILLRACE_SEED: %v", err)
		}
	}
	fmt.Fprintf(os.Stderr, "%s: MILLRACE_SEED=%d\n", t.Name(), seed)
	return rand.New(rand.NewPCG(seed, 0))
}
