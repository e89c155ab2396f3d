//go:build unix

package integration

import (
	"syscall"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/internal/brokertest"
)

// A process is frozen with uncommitted work until others have taken its task and finished. When it wakes up, what it had
// is refused.
func TestFieldReport10FrozenProcess(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	cfg.SessionTimeout, cfg.TransactionTimeout = 2*time.Second, 2*time.Second
	// The other's commits wait for 300 ms after its first record.
	frozen := spawn(t, spec{Kind: "counting", Brokers: cfg.Brokers, App: cfg.ApplicationID, In: in, Out: out, StateDir: t.TempDir(),
		CommitInterval: 3 * time.Second, SessionTimeout: 2 * time.Second, TransactionTimeout: 2 * time.Second})
	brokertest.Produce(t, cfg.Brokers, in, numbered(100, 1)...)
	frozen.hears("k0 x")
	frozen.signal(syscall.SIGSTOP)

	other := start(t, counting(t, in, out), cfg)
	brokertest.Produce(t, cfg.Brokers, in, numbered(50, 1)...)
	other.drain()
	exactlyCounted(t, out, map[string]int64{"k0": 150})
	frozen.signal(syscall.SIGCONT)
	brokertest.Eventually(t, patience, func() (bool, string) { // it is a member again
		_, n := members(t, cfg.ApplicationID)
		return n == 2, "the process that woke up does not join the group"
	})
	brokertest.Produce(t, cfg.Brokers, in, numbered(50, 1)...)
	other.drain()
	other.stop()
	brokertest.Produce(t, cfg.Brokers, in, numbered(10, 1)...)
	waitCommitted(t, cfg.Brokers, cfg.ApplicationID, []string{in}, func() error { return nil })
	frozen.stop()
	exactlyCounted(t, out, map[string]int64{"k0": 210})
}
