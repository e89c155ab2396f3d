package integration

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/topology"
)

// A user's function that panics stops the application with the name of its node, not that of the source.
func TestPanicNamesItsNode(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	brokertest.Produce(t, brokertest.Brokers(t), in, brokertest.KV("k", "v"))
	i := start(t, build(t, func(b *topology.Builder) {
		bad := topology.MapValues(topology.From(b, text(in)), func(string) string { panic("no luck") }, topology.Named("bad"))
		topology.To(bad, text(out))
	}), config(t))
	err := i.join()
	var e *processor.RecordError
	if !errors.As(err, &e) || e.Node != "bad" || e.Topic != in || e.Offset != 0 {
		t.Fatalf("got %v", err)
	}
}

// A user's function that ends the goroutine, as a test's FailNow does, stops the application with an error.
func TestGoexitIsAnError(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	brokertest.Produce(t, brokertest.Brokers(t), in, brokertest.KV("k", "v"))
	i := start(t, build(t, func(b *topology.Builder) {
		topology.To(topology.Peek(topology.From(b, text(in)), func(string, string) { runtime.Goexit() }), text(out))
	}), config(t))
	if err := i.join(); err == nil || !strings.Contains(err.Error(), "Goexit") {
		t.Fatalf("got %v", err)
	}
}

// A user's function that hangs does not keep Run from returning, nor the group from giving its tasks to others.
func TestHangingFunctionIsLeftBehind(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	brokertest.Produce(t, brokertest.Brokers(t), in, brokertest.KV("k", "v"))
	cfg := config(t)
	cfg.ShutdownTimeout = 100 * time.Millisecond
	hangs, over := make(chan struct{}), make(chan struct{})
	i := start(t, build(t, func(b *topology.Builder) {
		topology.To(topology.Peek(topology.From(b, text(in)), func(string, string) {
			close(hangs)
			<-over
		}), text(out))
	}), cfg)
	<-hangs
	i.cancel()
	err := i.join()
	close(over)
	if err == nil || !strings.Contains(err.Error(), "does not return") {
		t.Fatalf("got %v", err)
	}
	if state, n := members(t, cfg.ApplicationID); n != 0 {
		t.Errorf("the group is %s with %d members", state, n)
	}
	if n := len(brokertest.ReadCommitted(t, cfg.Brokers, out)); n != 0 {
		t.Errorf("%d records were committed", n)
	}
}

// A record too large to be written is its input record's fault: it can be skipped, and what follows is processed.
func TestTooLargeOutputIsSkipped(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	brokertest.Produce(t, brokertest.Brokers(t), in, brokertest.KV("a", "x"), brokertest.KV("b", strings.Repeat("x", 200_000)), brokertest.KV("c", "x"))
	cfg := config(t)
	cfg.Errors.Process = processor.Skip
	i := start(t, build(t, func(b *topology.Builder) {
		grown := topology.MapValues(topology.From(b, text(in)), func(v string) string { return strings.Repeat(v, 10) })
		topology.To(grown, text(out))
	}), cfg)
	i.drain()
	i.stop()
	var keys []string
	for _, r := range brokertest.ReadCommitted(t, brokertest.Brokers(t), out) {
		keys = append(keys, string(r.Key))
	}
	if strings.Join(keys, "") != "ac" {
		t.Fatalf("written: %v", keys)
	}
	var large *processor.TooLargeError
	if d := i.drops(); len(d) != 1 || !errors.As(d[0].err, &large) || large.Size != 2_000_001 {
		t.Fatalf("dropped: %v", d)
	}
}
