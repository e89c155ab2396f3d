package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/millrace-streams/millrace"
	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/internal/statedir"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// refused runs an application that must not start, and returns why.
func refused(t *testing.T, topo *topology.Topology, cfg millrace.Config) error {
	t.Helper()
	app, err := millrace.New(topo, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err = app.Run(ctx); err == nil {
		t.Fatal("the application ran until it was stopped")
	}
	return err
}

func names(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %q", err, part)
		}
	}
}

// A state directory has one user, in this process or another; the next is refused with the path and the holder.
func TestFieldReport49StateDirectoryInUse(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	first := start(t, counting(t, in, out), cfg)
	first.restores(1)
	inUse := func(pid int) {
		t.Helper()
		err := refused(t, counting(t, in, out), cfg)
		if !errors.Is(err, statedir.ErrLocked) {
			t.Errorf("got %v, want ErrLocked", err)
		}
		names(t, err, filepath.Join(cfg.StateDir, cfg.ApplicationID), fmt.Sprint(pid))
	}
	inUse(os.Getpid())
	first.stop()

	other := spawn(t, spec{Kind: "counting", Brokers: cfg.Brokers, App: cfg.ApplicationID, In: in, Out: out, StateDir: cfg.StateDir,
		CommitInterval: cfg.CommitInterval})
	send(t, in, "k", "x")
	other.hears("k x")
	inUse(other.cmd.Process.Pid)
	other.kill()

	again := start(t, counting(t, in, out), cfg) // a killed holder is none
	send(t, in, "k", "x")
	again.drain()
	exactlyCounted(t, out, map[string]int64{"k": 2})
}

func TestMissingTopicsAreRefused(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	in, out := brokertest.UniqueName(t, "in"), brokertest.UniqueName(t, "out")
	cfg.Errors = processor.DeadLetter(brokertest.UniqueName(t, "dead"))
	err := refused(t, counting(t, in, out), cfg)
	var missing *topology.MissingTopicsError
	if !errors.As(err, &missing) || len(missing.Topics) != 3 {
		t.Errorf("got %v, want three missing topics", err)
	}
	names(t, err, in, out, cfg.Errors.DeadLetterTopic)
}

func TestPartitionCountsThatDoNotFitAreRefused(t *testing.T) {
	t.Parallel()
	left, right, out := brokertest.Topic(t, "left", 2), brokertest.Topic(t, "right", 3), brokertest.Topic(t, "out", 1)
	both := build(t, func(b *topology.Builder) {
		countEach(topology.Merge(topology.From(b, text(left)), topology.From(b, text(right))), out)
	})
	cfg := config(t)
	err := refused(t, both, cfg)
	var mismatch *topology.PartitionMismatchError
	if !errors.As(err, &mismatch) {
		t.Errorf("got %v, want a PartitionMismatchError", err)
	}
	names(t, err, left+" has 2", right+" has 3", `"counts"`)

	log := changelog(t, cfg.ApplicationID, "counts") // of one partition
	err = refused(t, counting(t, left, out), cfg)
	var internal *topology.InternalTopicError
	if !errors.As(err, &internal) {
		t.Errorf("got %v, want an InternalTopicError", err)
	}
	names(t, err, log, "1 partitions", "needs 2")
}

// After a stop in order everything is committed and the group is empty, so that the next process starts at once.
func TestStopCommitsAndLeavesTheGroup(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 4), brokertest.Topic(t, "out", 4)
	cfg := config(t)
	first := start(t, counting(t, in, out), cfg)
	first.restores(4)
	brokertest.Produce(t, cfg.Brokers, in, numbered(5000, 50)...)
	first.eventually(func() (bool, string) { // somewhere in the middle
		return len(brokertest.ReadCommitted(t, cfg.Brokers, out)) > 0, "nothing was committed"
	})
	first.stop()
	if state, n := members(t, cfg.ApplicationID); n != 0 {
		t.Errorf("the group is %s with %d members", state, n)
	}
	done := int64(0)
	for _, at := range brokertest.GroupOffsets(t, cfg.Brokers, cfg.ApplicationID, in) {
		done += at
	}
	if n := len(settled(t, cfg.Brokers, out)); int64(n) != done {
		t.Errorf("%d records are committed, %d results", done, n)
	}

	cfg.StateDir = t.TempDir() // another process
	second := start(t, counting(t, in, out), cfg)
	second.drain()
	exactlyCounted(t, out, numberedCounts(5000, 50))
}

// births tells which process made which task's processor.
type births struct {
	mu  sync.Mutex
	all map[string]map[int32]int // by process and partition
}

func (b *births) add(process string, partition int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[string]map[int32]int{}
	}
	if b.all[process] == nil {
		b.all[process] = map[int32]int{}
	}
	b.all[process][partition]++
}

// of returns the partitions that a process has had, and how often each.
func (b *births) of(process string) map[int32]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	had := map[int32]int{}
	for p, n := range b.all[process] {
		had[p] = n
	}
	return had
}

// born is a ledger node that reports its birth.
type born struct {
	ledgerNode
	init func(partition int32)
}

// Init implements processor.Processor.
func (n *born) Init(ctx *processor.Context[string, string]) error {
	n.init(ctx.Task().Partition)
	return n.ledgerNode.Init(ctx)
}

// shared counts, with a node that reports to b.
func shared(t *testing.T, in, out string, b *births, process string) *topology.Topology {
	declared := store.NewKeyValue("ledger", serde.String, serde.String)
	return build(t, func(builder *topology.Builder) {
		stream := topology.From(builder, text(in))
		topology.Process(stream, "born", func() processor.Processor[string, string, string, string] {
			return &born{ledgerNode{store: declared}, func(p int32) { b.add(process, p) }}
		}, declared)
		countEach(stream, out)
	})
}

// Two processes share four partitions. One leaves and comes back: the other keeps what it had without a pause.
func TestTwoProcessesShareThePartitions(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 4), brokertest.Topic(t, "out", 4)
	one, two := config(t), config(t)
	two.ApplicationID = one.ApplicationID
	var b births
	sent := 0
	more := func() {
		brokertest.Produce(t, one.Brokers, in, numbered(400, 40)...)
		sent += 400
	}
	has := func(i *instance, process string, n int) {
		t.Helper()
		i.eventually(func() (bool, string) {
			return len(b.of(process)) == n, fmt.Sprintf("process %s had the partitions %v, want %d", process, b.of(process), n)
		})
	}
	more()
	a := start(t, shared(t, in, out, &b, "a"), one)
	has(a, "a", 4)
	more()
	first := start(t, shared(t, in, out, &b, "b"), two)
	has(first, "b", 2)
	more()
	a.drain()
	first.stop()
	more()
	a.drain() // b's partitions came back
	again := start(t, shared(t, in, out, &b, "c"), two)
	has(again, "c", 2)
	more()
	a.drain()
	for p, n := range b.of("a") {
		moved := b.of("b")[p] + b.of("c")[p]
		if moved == 0 && n != 1 {
			t.Errorf("partition %d never left process a, but was begun %d times", p, n)
		}
	}
	a.stop()
	more()
	again.drain()
	exactlyCounted(t, out, numberedCounts(sent, 40))
	if kept := slices.Collect(partitionsOnlyOf(&b)); len(kept) == 0 {
		t.Error("no partition stayed where it was")
	}
}

// partitionsOnlyOf yields the partitions that process a had once, and kept until it ended.
func partitionsOnlyOf(b *births) func(func(int32) bool) {
	return func(yield func(int32) bool) {
		for p, n := range b.of("a") {
			if n == 1 && !yield(p) {
				return
			}
		}
	}
}
