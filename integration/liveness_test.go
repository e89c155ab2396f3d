package integration

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/millrace-streams/millrace"
	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/memory"
	"github.com/millrace-streams/millrace/topology"
)

// peeking counts each key behind a function that looks at each record.
func peeking(t *testing.T, in, out string, look func(key, value string)) *topology.Topology {
	t.Helper()
	return build(t, func(b *topology.Builder) {
		countEach(topology.Peek(topology.From(b, text(in)), look, topology.Named("look")), out)
	})
}

// A function that does not return ends the process, in order as far as that can be: what the other worker has done is
// committed, the group is left, and another process does the rest. What the function's worker does when it returns after all
// is refused.
func TestHungWorkerIsGivenUp(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 2), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	cfg.Workers, cfg.MaxPollInterval, cfg.Store = 2, 2*time.Second, memory.Opener{}
	over := make(chan struct{})
	release := sync.OnceFunc(func() { close(over) })
	defer release()
	app := start(t, peeking(t, in, out, func(_, value string) {
		if value == "hang" {
			<-over
		}
	}), cfg)
	app.restores(2)
	at := func(partition int32, key, value string) brokertest.Record {
		return brokertest.Record{Partition: partition, Key: []byte(key), Value: []byte(value)}
	}
	brokertest.Produce(t, cfg.Brokers, in, at(0, "a", "x"), at(0, "a", "hang"), at(0, "a", "x"), at(1, "b", "x"), at(1, "b", "x"))
	err := app.join()
	var hung *millrace.HungError
	if !errors.As(err, &hung) {
		t.Fatalf("got %v, want a HungError", err)
	}
	if hung.Task.Partition != 0 || hung.Node != "look" || hung.Topic != in || hung.Partition != 0 || hung.Offset != 1 || hung.For < cfg.MaxPollInterval {
		t.Errorf("got %+v", hung)
	}
	names(t, err, "task 0_0", `"look"`, in+"-0@1")
	if state, n := members(t, cfg.ApplicationID); n != 0 {
		t.Errorf("the group is %s with %d members", state, n)
	}
	if offsets := brokertest.GroupOffsets(t, cfg.Brokers, cfg.ApplicationID, in); offsets[1] != 2 {
		t.Errorf("the other worker's work is not committed: %v", offsets)
	}

	cfg.StateDir, cfg.MaxPollInterval = t.TempDir(), 0
	other := start(t, peeking(t, in, out, func(string, string) {}), cfg)
	other.drain()
	release()
	brokertest.Produce(t, cfg.Brokers, in, at(0, "a", "x"), at(1, "b", "x"))
	other.drain()
	exactlyCounted(t, out, map[string]int64{"a": 4, "b": 3})
}

// Records that take long are no hang, however many are at hand.
func TestSlowWorkerIsNotHung(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	cfg.MaxPollInterval, cfg.Store = time.Second, memory.Opener{}
	brokertest.Produce(t, cfg.Brokers, in, numbered(15, 1)...)
	app := start(t, peeking(t, in, out, func(string, string) { time.Sleep(100 * time.Millisecond) }), cfg)
	app.drain()
	app.stop()
	exactlyCounted(t, out, map[string]int64{"k0": 15})
}

// A function blocks for longer than the transaction timeout, with a commit in flight and records staged; the session goes
// on. Each result is committed once, and the process lives.
func TestFieldReport7ProcessorStalls(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	cfg.TransactionTimeout = time.Second
	var once sync.Once
	app := start(t, peeking(t, in, out, func(_, value string) {
		if value == "stall" {
			once.Do(func() { time.Sleep(1500 * time.Millisecond) })
		}
	}), cfg)
	records := slices.Concat(numbered(50, 5), []brokertest.Record{brokertest.KV("k0", "stall")}, numbered(49, 1))
	for _, r := range records { // one by one, so that commits follow one another
		brokertest.Produce(t, cfg.Brokers, in, r)
	}
	app.drain()
	app.stop()
	exactlyCounted(t, out, map[string]int64{"k0": 60, "k1": 10, "k2": 10, "k3": 10, "k4": 10})
}

// So it is with the function of a global table.
func TestHungGlobalTableIsGivenUp(t *testing.T) {
	t.Parallel()
	orders, names, out := brokertest.Topic(t, "orders", 1), brokertest.Topic(t, "names", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	cfg.MaxPollInterval = time.Second
	over := make(chan struct{})
	defer close(over)
	app := start(t, build(t, func(b *topology.Builder) {
		hangs := func(_, name string) (string, bool) {
			<-over
			return name, true
		}
		table := topology.GlobalTableOf(b, text(names), store.NewKeyValue("names", serde.String, serde.String), hangs)
		topology.To(topology.JoinGlobal(topology.From(b, text(orders)), table,
			func(_, customer string) (string, bool) { return customer, true },
			func(_, _, name string) string { return name }), text(out))
	}), cfg)
	app.eventually(func() (bool, string) {
		at := brokertest.GroupOffsets(t, cfg.Brokers, cfg.ApplicationID, orders)
		return len(at) == 1, fmt.Sprintf("reading has begun at %v", at)
	})
	send(t, names, "a", "ann")
	err := app.join()
	var hung *millrace.HungError
	if !errors.As(err, &hung) || hung.Worker != -1 {
		t.Fatalf("got %v, want a HungError", err)
	}
}
