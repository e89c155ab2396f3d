package kafka

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace-streams/millrace/eos"
	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
)

// fake starts a broker in this process that can be told to fail.
func fake(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(2, "in", "out")}, opts...)...)
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

// TestRefusalsAreRetried: whatever call is refused for the moment, everything comes out as if it had not been.
func TestRefusalsAreRetried(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key kmsg.Key
		err *kerr.Error
	}{
		{kmsg.InitProducerID, kerr.ConcurrentTransactions},
		{kmsg.InitProducerID, kerr.NotCoordinator},
		{kmsg.AddPartitionsToTxn, kerr.ConcurrentTransactions},
		{kmsg.AddPartitionsToTxn, kerr.CoordinatorLoadInProgress},
		{kmsg.Produce, kerr.NotEnoughReplicas},
		{kmsg.Produce, kerr.NotLeaderForPartition},
		{kmsg.Produce, kerr.RequestTimedOut},
		{kmsg.Produce, kerr.ConcurrentTransactions},
		{kmsg.AddOffsetsToTxn, kerr.ConcurrentTransactions},
		{kmsg.AddOffsetsToTxn, kerr.NotCoordinator},
		{kmsg.TxnOffsetCommit, kerr.CoordinatorLoadInProgress},
		{kmsg.TxnOffsetCommit, kerr.NotCoordinator},
		{kmsg.TxnOffsetCommit, kerr.IllegalGeneration}, // while the group is between two generations
		{kmsg.EndTxn, kerr.ConcurrentTransactions},
		{kmsg.EndTxn, kerr.NotCoordinator},
		{kmsg.EndTxn, kerr.CoordinatorNotAvailable},
		{kmsg.OffsetFetch, kerr.UnstableOffsetCommit},
		{kmsg.OffsetFetch, kerr.CoordinatorLoadInProgress},
		{kmsg.OffsetFetch, kerr.NotCoordinator},
		{kmsg.ListOffsets, kerr.NotLeaderForPartition},
		{kmsg.ListOffsets, kerr.OffsetNotAvailable},
		{kmsg.Fetch, kerr.NotLeaderForPartition},
		{kmsg.Fetch, kerr.UnknownTopicOrPartition},
		{kmsg.Fetch, kerr.FencedLeaderEpoch},
		{kmsg.JoinGroup, kerr.CoordinatorLoadInProgress},
		{kmsg.SyncGroup, kerr.NotCoordinator},
	} {
		t.Run(fmt.Sprintf("%v %v", c.key.Name(), c.err.Message), func(t *testing.T) {
			t.Parallel()
			broker := fake(t)
			brokers := broker.ListenAddrs()
			fault := broker.Fault(kfake.Fault{Keys: []kmsg.Key{c.key}, Err: c.err, Count: 2})
			defer fault.Remove()
			p := start(t, options(brokers, "app", "p"), tasks("in", 2, "")...).ports[0]
			leases(t, p, 2)
			for i := range 3 {
				v := fmt.Sprint(i)
				mustCommit(t, p, processor.Commit{
					Records:   [][]processor.Output{{output("out", 0, "a", v), output("out", 1, "b", v)}},
					Positions: []processor.Position{position("in", 0, int64(i)), position("in", 1, int64(i))},
				})
			}
			if got := fetched(t, p, processor.TopicPartition{Topic: "out"}, 0, 6); len(got) != 3 {
				t.Errorf("%d records in partition 0", len(got))
			}
			if got := values(brokertest.ReadCommitted(t, brokers, "out")); !slices.Equal(got, []string{"0", "1", "2", "0", "1", "2"}) {
				t.Errorf("committed %v", got)
			}
			if fault.Hits() == 0 {
				t.Error("the broker has refused nothing")
			}
		})
	}
}

func port(t *testing.T, addr string) int {
	t.Helper()
	_, p, err := net.SplitHostPort(addr)
	must(t, err)
	n, err := strconv.Atoi(p)
	must(t, err)
	return n
}

// TestBrokerRestart: a broker that goes away and comes back is found again by all parts.
func TestBrokerRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DataDir(dir), kfake.SeedTopics(2, "in", "out"))
	must(t, err)
	addr := broker.ListenAddrs()
	p := start(t, options(addr, "app", "p"), tasks("in", 2, "")...).ports[0]
	leases(t, p, 2)
	out := processor.TopicPartition{Topic: "out"}
	mustCommit(t, p, processor.Commit{Records: [][]processor.Output{{output("out", 0, "k", "before")}}, Positions: []processor.Position{position("in", 0, 1)}})
	p.Fetch(out, 0)

	broker.Close()
	p.Commit(processor.Commit{Records: [][]processor.Output{{output("out", 0, "k", "meanwhile")}}, Positions: []processor.Position{position("in", 0, 2)}})
	broker, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.DataDir(dir), kfake.Ports(port(t, addr[0])))
	must(t, err)
	t.Cleanup(broker.Close)

	// The commit either survives, or its leases are lost with the membership and it is to be made again.
	var read []string
	committed := false
	lost := 0
	restart := func() {
		p.Commit(processor.Commit{Records: [][]processor.Output{{output("out", 0, "k", "meanwhile")}}, Positions: []processor.Position{position("in", 0, 2)}})
	}
	until(t, p, "a commit after the restart", func(e runtime.Events) bool {
		lost += len(e.Lost) - len(e.Granted)
		for _, f := range e.Fetched {
			for _, r := range f.Records {
				read = append(read, string(r.Value))
			}
		}
		if e.Commit != nil && e.Commit.Outcome == eos.Committed {
			committed = true
		} else if e.Commit != nil {
			restart()
		}
		return committed && lost <= 0 && len(read) >= 2
	})
	if !slices.Equal(read, []string{"before", "meanwhile"}) {
		t.Errorf("read %v", read)
	}
}

// TestLeadersAndCoordinatorsMove: whoever is asked in vain says so, and the next try finds the right one.
func TestLeadersAndCoordinatorsMove(t *testing.T) {
	t.Parallel()
	broker := fake(t, kfake.NumBrokers(3), kfake.SeedTopics(6, "wide"))
	cfg := options(broker.ListenAddrs(), "app", "p")
	p := start(t, cfg, tasks("in", 2, "")...).ports[0]
	leases(t, p, 2)
	for round := range 4 {
		var c processor.Commit
		for partition := range int32(6) {
			c.Records = append(c.Records, []processor.Output{output("wide", partition, "k", fmt.Sprint(round))})
		}
		c.Positions = []processor.Position{position("in", 0, int64(round))}
		mustCommit(t, p, c)
		broker.ShufflePartitionLeaders()
		broker.RehashCoordinators()
	}
	for partition := range int32(6) {
		if got := fetched(t, p, processor.TopicPartition{Topic: "wide", Partition: partition}, 0, 8); len(got) != 4 {
			t.Errorf("partition %d: %d records", partition, len(got))
		}
		broker.ShufflePartitionLeaders()
	}
}
