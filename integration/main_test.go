package integration

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/internal/seed"
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
	n := seed.Of(t)
	fmt.Fprintf(os.Stderr, "%s: MILLRACE_SEED=%d\n", t.Name(), n) // also of a test that never ends
	return rand.New(rand.NewPCG(n, 0))
}
