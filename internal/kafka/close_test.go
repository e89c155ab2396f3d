package kafka

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/goleak"

	"github.com/millrace-streams/millrace/eos"
	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
)

// TestNothingIsLeftBehind runs before the parallel tests, which would look like leaks.
func TestNothingIsLeftBehind(t *testing.T) {
	before := goleak.IgnoreCurrent()
	broker, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.SeedTopics(2, "in", "out"))
	must(t, err)
	brokertest.Produce(t, broker.ListenAddrs(), "in", brokertest.Record{Value: []byte("v")})
	for _, orderly := range []bool{true, false} {
		ctx, stop := context.WithCancel(t.Context())
		c, err := Open(ctx, options(broker.ListenAddrs(), "app", "p"))
		must(t, err)
		ports, err := c.Start(ctx, tasks("in", 2, ""))
		must(t, err)
		p := ports[0]
		leases(t, p, 2)
		p.Fetch(processor.TopicPartition{Topic: "in"}, 0)
		mustCommit(t, p, processor.Commit{Records: [][]processor.Output{{output("out", 0, "k", "v"), output("out", 1, "k", "v")}}, Positions: []processor.Position{position("in", 0, 1)}})
		ran := make(chan struct{})
		p.Background(func() { close(ran) })
		<-ran
		if orderly {
			stop()
			until(t, p, "the call to stop", func(e runtime.Events) bool { return e.Stop })
			p.Release(processor.TaskID{Partition: 0})
			must(t, p.(*Port).Close()) // releases the other
		}
		must(t, c.Close())
		must(t, c.Close())
		stop()
		if info := broker.GroupInfo("app"); info != nil && len(info.Members) > 0 {
			t.Errorf("orderly %v: the process is still a member", orderly)
		}
	}
	broker.Close()
	goleak.VerifyNone(t, before)
}

// TestCloseWithoutBroker: closing ends though nobody answers, and so does a commit.
func TestCloseWithoutBroker(t *testing.T) {
	t.Parallel()
	broker := fake(t)
	c, err := Open(t.Context(), options(broker.ListenAddrs(), "app", "p"))
	must(t, err)
	ports, err := c.Start(t.Context(), tasks("in", 2, ""))
	must(t, err)
	leases(t, ports[0], 2)
	broker.Close()
	ports[0].Commit(processor.Commit{Records: [][]processor.Output{{output("out", 0, "k", "v")}}})
	began := time.Now()
	_ = c.Close()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("closing took %v", took)
	}
	until(t, ports[0], "the outcome", func(e runtime.Events) bool {
		if e.Commit != nil && e.Commit.Outcome != eos.Aborted {
			t.Errorf("outcome %s", e.Commit.Outcome)
		}
		return e.Commit != nil
	})
	if _, err := c.Start(t.Context(), nil); !errors.Is(err, ErrClosed) {
		t.Errorf("start after close: %v", err)
	}
}

// TestOpenWithASilentBroker: a request that is never answered does not outlast the context.
func TestOpenWithASilentBroker(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := Open(ctx, options([]string{l.Addr().String()}, "app", "p")); err == nil {
		t.Error("a broker that says nothing is taken for one")
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("giving up took %v", took)
	}
}

func TestOpenWithoutBroker(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, l.Close())
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := Open(ctx, options([]string{l.Addr().String()}, "app", "p")); err == nil {
		t.Error("opened without a broker")
	}
}

// TestADeadSeed: one of several brokers to start from is enough.
func TestADeadSeed(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, l.Close())
	seeds := append([]string{l.Addr().String()}, brokertest.Brokers(t)...)
	in := brokertest.Topic(t, "in", 1)
	proc := start(t, options(seeds, brokertest.UniqueName(t, "app"), "p"), tasks(in, 1, "")...)
	if counts, err := proc.cluster.PartitionCounts(t.Context(), []string{in}); err != nil || counts[in] != 1 {
		t.Errorf("counts %v, %v", counts, err)
	}
	leases(t, proc.ports[0], 1)
}
