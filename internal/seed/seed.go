// Package seed gives random tests a seed that they print and that can be set again.
package seed

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// Of returns the seed that the environment has in MILLRACE_SEED, or else a new one, and logs it.
func Of(t testing.TB) uint64 {
	t.Helper()
	n := uint64(time.Now().UnixNano())
	if s := os.Getenv("MILLRACE_SEED"); s != "" {
		var err error
		if n, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("MILLRACE_SEED: %v", err)
		}
	}
	t.Logf("MILLRACE_SEED=%d", n)
	return n
}

// Rand returns a source of randomness with that seed.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(Of(t), 0))
}
