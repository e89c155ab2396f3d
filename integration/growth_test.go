package integration

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace"
	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/topology"
)

// grow adds partitions to a topic.
func grow(t *testing.T, topic string, partitions int32) {
	t.Helper()
	if err := admin(t).CreatePartitions(topic, partitions, nil, false); err != nil {
		t.Fatal(err)
	}
}

// often makes clients refresh their metadata often.
func often(c *sarama.Config) { c.Metadata.RefreshFrequency = 100 * time.Millisecond }

// spread returns n records for each of the partitions from first up to last.
func spread(n int, first, last int32) (records []brokertest.Record) {
	for p := first; p < last; p++ {
		for i := range n {
			records = append(records, brokertest.Record{Partition: p, Key: fmt.Appendf(nil, "p%d-%d", p, i), Value: []byte("x")})
		}
	}
	return records
}

// produceNew writes to partitions that have just been made.
func produceNew(t *testing.T, topic string, records ...brokertest.Record) {
	t.Helper()
	c := client(t, brokertest.Brokers(t))
	brokertest.Eventually(t, patience, func() (bool, string) {
		if err := c.RefreshMetadata(topic); err != nil {
			return false, err.Error()
		}
		for _, r := range records {
			if _, err := c.Leader(topic, r.Partition); err != nil {
				return false, err.Error()
			}
		}
		return true, ""
	})
	brokertest.Produce(t, brokertest.Brokers(t), topic, records...)
}

// Partitions that are added to the input of an application without state are read from their first record on, wherever
// input without a committed offset is to begin.
func TestFieldReport59InputGrows(t *testing.T) {
	t.Parallel()
	for name, reset := range map[string]millrace.OffsetReset{"earliest": millrace.Earliest, "latest": millrace.Latest} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, out := brokertest.Topic(t, "in", 2), brokertest.Topic(t, "out", 1)
			cfg := config(t)
			cfg.OffsetReset, cfg.Configure = reset, often
			topo := build(t, func(b *topology.Builder) { topology.To(topology.From(b, text(in)), text(out)) })
			app := start(t, topo, cfg)
			app.eventually(func() (bool, string) {
				at := brokertest.GroupOffsets(t, cfg.Brokers, cfg.ApplicationID, in)
				return len(at) == 2, fmt.Sprintf("reading has begun at %v", at)
			})
			brokertest.Produce(t, cfg.Brokers, in, spread(10, 0, 2)...)
			grow(t, in, 4)
			produceNew(t, in, spread(50, 2, 4)...)
			app.eventually(func() (bool, string) {
				n := len(brokertest.ReadCommitted(t, cfg.Brokers, out))
				return n >= 120, fmt.Sprintf("%d of 120 records", n)
			})
			app.stop()
			seen := map[string]int{}
			for _, r := range settled(t, cfg.Brokers, out) {
				seen[string(r.Key)]++
			}
			for key, n := range seen {
				if n != 1 {
					t.Errorf("%s was processed %d times", key, n)
				}
			}
			if len(seen) != 120 {
				t.Errorf("%d records were processed, want 120", len(seen))
			}
		})
	}
}

// Where there is state, equal keys would meet different tasks: the application refuses, while it runs and at the next start,
// and nothing of the new partitions is processed.
func TestFieldReport60InputOfStateGrows(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 2), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	cfg.Configure = often
	app := start(t, counting(t, in, out), cfg)
	app.restores(2)
	brokertest.Produce(t, cfg.Brokers, in, spread(10, 0, 2)...)
	app.drain()
	grow(t, in, 4)
	produceNew(t, in, spread(10, 2, 4)...)
	for when, err := range map[string]error{"running": app.join(), "start": refused(t, counting(t, in, out), cfg)} {
		var internal *topology.InternalTopicError
		if !errors.As(err, &internal) || internal.Found != 2 || internal.Needed != 4 {
			t.Errorf("%s: got %v, want an InternalTopicError", when, err)
			continue
		}
		names(t, err, cfg.ApplicationID+"-counts-changelog", "2 partitions", "needs 4")
	}
	if n := len(settled(t, cfg.Brokers, out)); n != 20 {
		t.Errorf("%d results, want 20", n)
	}
}

// Inputs that must share partitions and do not are refused at the start.
func TestFieldReport60JoinOfUnequalInputs(t *testing.T) {
	t.Parallel()
	left, right, out := brokertest.Topic(t, "left", 2), brokertest.Topic(t, "right", 3), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	err := refused(t, joining(t, left, right, out), cfg)
	var mismatch *topology.PartitionMismatchError
	if !errors.As(err, &mismatch) {
		t.Errorf("got %v, want a PartitionMismatchError", err)
	}
	names(t, err, left+" has 2", right+" has 3")
}

// Partitions that are added to the topic of a global table are part of the table.
func TestGlobalTableGrows(t *testing.T) {
	t.Parallel()
	orders, names, out := brokertest.Topic(t, "orders", 1), brokertest.Topic(t, "names", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	cfg.Configure = often
	app := start(t, named(t, orders, names, out), cfg)
	send(t, names, "a", "ann")
	app.drain()
	grow(t, names, 3)
	produceNew(t, names, brokertest.Record{Partition: 2, Key: []byte("z"), Value: []byte("zoe")})
	app.eventually(func() (bool, string) {
		send(t, orders, "1", "z")
		got := show(t, out)
		return len(got) > 0 && got[len(got)-1] == "1=zoe!", fmt.Sprintf("joined %v", got)
	})
}
