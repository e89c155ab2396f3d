package brokertest

import (
	"testing"
	"time"
)

// Eventually calls cond until it reports true, and fails the test with cond's last text when the time is over. Between
// calls it waits a little longer each time, up to 100 ms. The timeout only bounds a failing test: choose it generously.
func Eventually(t testing.TB, timeout time.Duration, cond func() (ok bool, state string)) {
	t.Helper()
	deadline := time.Now().Add(timeout)
	pause := time.Millisecond
	for {
		ok, state := cond()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("brokertest: not within %v: %s", timeout, state)
		}
		time.Sleep(pause)
		pause = min(2*pause, 100*time.Millisecond)
	}
}
