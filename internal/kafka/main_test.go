package kafka

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/eos"
	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

// patience bounds a wait of a failing test.
const patience = 30 * time.Second

// options returns the settings of a process of the application.
func options(brokers []string, app, process string) Config {
	return Config{
		App: app, Brokers: brokers, ProcessID: process,
		LossAfter: 200 * time.Millisecond, SessionTimeout: 6 * time.Second, HeartbeatInterval: 50 * time.Millisecond, RebalanceTimeout: 10 * time.Second,
		Logger: logger(process),
	}
}

func logger(process string) *slog.Logger {
	if testing.Verbose() {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).With("process", process)
	}
	return slog.New(slog.NewTextHandler(io.Discard, nil))
}

// process is an application process whose workers are played by the test.
type process struct {
	t       *testing.T
	cluster *Cluster
	ports   []runtime.Port
	stop    func() // asks it to stop
}

// start opens a cluster and joins the group with the tasks. The test's end closes it.
func start(t *testing.T, cfg Config, tasks ...TaskInfo) *process {
	t.Helper()
	c := open(t, cfg)
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	ports, err := c.Start(ctx, tasks)
	if err != nil {
		t.Fatal(err)
	}
	return &process{t: t, cluster: c, ports: ports, stop: stop}
}

func open(t *testing.T, cfg Config) *Cluster {
	t.Helper()
	c, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

// tasks returns one task per partition of a topic, each with an optional changelog partition.
func tasks(topic string, partitions int32, changelog string) []TaskInfo {
	var all []TaskInfo
	for p := range partitions {
		info := TaskInfo{ID: processor.TaskID{Partition: p}, Inputs: []processor.TopicPartition{{Topic: topic, Partition: p}}}
		if changelog != "" {
			info.Changelogs = []Changelog{{Store: "store", TopicPartition: processor.TopicPartition{Topic: changelog, Partition: p}}}
		}
		all = append(all, info)
	}
	return all
}

// until polls a port, handing every batch of events to see, until that reports true.
func until(t *testing.T, p runtime.Port, what string, see func(runtime.Events) bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		e := p.Poll(100 * time.Millisecond)
		if e.Fatal != nil {
			t.Fatalf("waiting for %s: fatal: %v", what, e.Fatal)
		}
		if see(e) {
			return
		}
	}
	t.Fatalf("waited in vain for %s", what)
}

// active returns the leases to work on tasks.
func active(granted []runtime.Lease) []runtime.Lease {
	return slices.DeleteFunc(slices.Clone(granted), func(l runtime.Lease) bool { return l.Role != runtime.Active })
}

// leases waits until a port has been granted n leases to work on tasks.
func leases(t *testing.T, p runtime.Port, n int) map[processor.TaskID]runtime.Lease {
	t.Helper()
	all := map[processor.TaskID]runtime.Lease{}
	until(t, p, fmt.Sprintf("%d leases", n), func(e runtime.Events) bool {
		for _, l := range active(e.Granted) {
			all[l.Task] = l
		}
		return len(all) >= n
	})
	return all
}

// joined waits until a process is a member of the group.
func joined(t *testing.T, c *Cluster) (m member) {
	t.Helper()
	brokertest.Eventually(t, patience, func() (ok bool, state string) {
		m, ok = c.group.membership()
		return ok, "not a member of the group"
	})
	return m
}

// outcome commits and waits for how it ends.
func outcome(t *testing.T, p runtime.Port, c processor.Commit) *runtime.CommitDone {
	t.Helper()
	p.Commit(c)
	var done *runtime.CommitDone
	until(t, p, "the outcome of a commit", func(e runtime.Events) bool {
		done = e.Commit
		return done != nil
	})
	return done
}

// committed commits and wants success.
func mustCommit(t *testing.T, p runtime.Port, c processor.Commit) *runtime.CommitDone {
	t.Helper()
	done := outcome(t, p, c)
	if done.Outcome != eos.Committed {
		t.Fatalf("commit: %s: %v", done.Outcome, done.Err)
	}
	return done
}

// fetched reads a partition from an offset until its position is at least end.
func fetched(t *testing.T, p runtime.Port, tp processor.TopicPartition, from, end int64) []processor.Raw {
	t.Helper()
	var all []processor.Raw
	at := from
	p.Fetch(tp, from)
	until(t, p, fmt.Sprintf("%s to be read up to %d", tp, end), func(e runtime.Events) bool {
		for _, f := range e.Failed {
			t.Fatalf("reading %s: %v", f.TopicPartition, f.Err)
		}
		for _, f := range e.Fetched {
			if f.TopicPartition != tp {
				continue
			}
			if f.Next < at {
				t.Fatalf("position went back from %d to %d", at, f.Next)
			}
			all, at = append(all, f.Records...), f.Next
			p.Consumed(tp, f.Bytes)
		}
		return at >= end
	})
	p.StopFetch(tp)
	return all
}

func output(topic string, partition int32, key, value string) processor.Output {
	return processor.Output{Topic: topic, Partition: partition, Key: []byte(key), Value: []byte(value), Timestamp: 1000}
}

func position(topic string, partition int32, offset int64) processor.Position {
	return processor.Position{TopicPartition: processor.TopicPartition{Topic: topic, Partition: partition}, Offset: offset}
}

func writes(topic string, partition int32, pairs ...string) processor.Writes {
	set := store.NewWriteSet()
	for i := 0; i < len(pairs); i += 2 {
		set.Put([]byte(pairs[i]), []byte(pairs[i+1]), 1000, nil)
	}
	return processor.Writes{Changelog: processor.TopicPartition{Topic: topic, Partition: partition}, Set: set}
}
