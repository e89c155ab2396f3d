package kafka

import (
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/internal/brokertest"
)

// unreachable refuses the next connections, as a broker does that is being restarted.
type unreachable struct {
	next    atomic.Int64 // how many
	refused atomic.Int64
}

// Dial implements sarama's proxy.Dialer.
func (u *unreachable) Dial(network, addr string) (net.Conn, error) {
	if u.next.Add(-1) >= 0 {
		u.refused.Add(1)
		return nil, errors.New("connection refused")
	}
	return net.Dial(network, addr)
}

// An application that starts while its brokers are restarted waits for them, at whichever step they go away.
func TestStartWaitsForTheBroker(t *testing.T) {
	t.Parallel()
	const outage = 6 // dials: more than sarama itself tries
	away := &unreachable{}
	cfg := options(brokertest.Brokers(t), brokertest.UniqueName(t, "app"), "p")
	cfg.Configure = func(c *sarama.Config) {
		c.Net.Proxy.Enable, c.Net.Proxy.Dialer = true, away
		c.Metadata.Retry.Max = 1
	}
	step := func(name string, do func() error) {
		t.Helper()
		away.refused.Store(0)
		away.next.Store(outage)
		if err := do(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if away.refused.Load() == 0 {
			t.Fatalf("%s: no connection was refused", name)
		}
	}
	var c *Cluster
	step("open", func() (err error) {
		c, err = Open(t.Context(), cfg)
		return err
	})
	t.Cleanup(func() { _ = c.Close() })
	step("create topics", func() error {
		return c.CreateTopics(t.Context(), []NewTopic{{Name: brokertest.UniqueName(t, "new"), Partitions: 1}})
	})
}
