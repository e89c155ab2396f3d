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

// widen gives a topic more partitions.
func widen(t *testing.T, topic string, partitions int32) {
	t.Helper()
	admin, err := sarama.NewClusterAdmin(brokertest.Brokers(t), brokertest.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	if err := admin.CreatePartitions(topic, partitions, nil, false); err != nil {
		t.Fatal(err)
	}
}

// watchful returns settings under which a process notices soon that a topic has got more partitions.
func watchful(t *testing.T) millrace.Config {
	cfg := config(t)
	cfg.Configure = func(c *sarama.Config) { c.Metadata.RefreshFrequency = 100 * time.Millisecond }
	return cfg
}

// The input of a stateless application grows while it runs. What is written to the new partitions before it notices is
// processed all the same, even if it was told to begin with the latest: with one process, and with two that share the tasks.
func TestFieldReport59InputGrows(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 2), brokertest.Topic(t, "out", 1)
	cfg := watchful(t)
	cfg.OffsetReset = millrace.Latest
	copying := build(t, func(b *topology.Builder) {
		topology.To(topology.From(b, text(in)), text(out))
	})
	one := start(t, copying, cfg)
	one.logged(1, "joined the group")
	widen(t, in, 4)
	sent := 0
	fresh := func() {
		var records []brokertest.Record
		for range 100 {
			records = append(records, brokertest.Record{Partition: int32(2 + sent%2), Key: fmt.Append(nil, sent), Value: []byte("x")})
			sent++
		}
		brokertest.Produce(t, cfg.Brokers, in, records...)
	}
	fresh()
	one.logged(1, "more partitions")
	one.eventually(func() (bool, string) {
		n := len(settled(t, cfg.Brokers, out))
		return n == sent, fmt.Sprintf("%d of %d records are copied", n, sent)
	})
	cfg.StateDir = t.TempDir()
	two := start(t, copying, cfg)
	two.logged(1, "joined the group")
	fresh()
	one.drain()
	one.stop()
	two.stop()
	if n := len(settled(t, cfg.Brokers, out)); n != sent {
		t.Errorf("%d records are copied, want %d", n, sent)
	}
}

// The input of a stateful application grows: keys move to other partitions than their state. A running application ends
// with an error that names the topics and the counts, and one that is started does not begin.
func TestFieldReport60InputGrowsUnderState(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 2), brokertest.Topic(t, "out", 1)
	cfg := watchful(t)
	app := start(t, counting(t, in, out), cfg)
	brokertest.Produce(t, cfg.Brokers, in, numbered(100, 10)...)
	app.drain()
	widen(t, in, 4)
	err := app.join()
	var internal *topology.InternalTopicError
	if !errors.As(err, &internal) || internal.Topic != cfg.ApplicationID+"-counts-changelog" || internal.Found != 2 || internal.Needed != 4 {
		t.Fatalf("the running application: %v", err)
	}
	before := len(settled(t, cfg.Brokers, out))
	brokertest.Produce(t, cfg.Brokers, in, brokertest.Record{Partition: 3, Key: []byte("k1"), Value: []byte("x")})
	if err := start(t, counting(t, in, out), cfg).join(); !errors.As(err, &internal) {
		t.Fatalf("the started one: %v", err)
	}
	if n := len(settled(t, cfg.Brokers, out)); n != before {
		t.Errorf("%d outputs became %d", before, n)
	}
}

// Inputs of 2 and 3 partitions that reach one store.
func TestFieldReport60UnequalInputs(t *testing.T) {
	t.Parallel()
	a, b, out := brokertest.Topic(t, "a", 2), brokertest.Topic(t, "b", 3), brokertest.Topic(t, "out", 1)
	joining := build(t, func(bl *topology.Builder) { countEach(topology.Merge(topology.From(bl, text(a)), topology.From(bl, text(b))), out) })
	err := start(t, joining, config(t)).join()
	var unequal *topology.PartitionMismatchError
	if !errors.As(err, &unequal) || unequal.Counts[a] != 2 || unequal.Counts[b] != 3 {
		t.Fatalf("got %v", err)
	}
}
