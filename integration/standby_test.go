package integration

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace"
	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/store/memory"
)

// expire takes all members out of a group but the process of a state directory, as the end of their sessions would.
func expire(t *testing.T, cfg millrace.Config) {
	t.Helper()
	self, err := os.ReadFile(filepath.Join(cfg.StateDir, cfg.ApplicationID, "process-id"))
	if err != nil {
		t.Fatal(err)
	}
	conf := brokertest.Config()
	conf.Version = sarama.V2_4_0_0
	admin, err := sarama.NewClusterAdmin(cfg.Brokers, conf)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	groups, err := admin.DescribeConsumerGroups([]string{cfg.ApplicationID})
	if err != nil || len(groups) != 1 {
		t.Fatalf("group: %v, %v", groups, err)
	}
	for _, m := range groups[0].Members {
		id := strings.TrimPrefix(m.ClientId, cfg.ApplicationID+"-")
		if id == strings.TrimSpace(string(self)) {
			continue
		}
		if _, err := admin.RemoveMemberFromConsumerGroup(cfg.ApplicationID, []string{id}); err != nil {
			t.Fatal(err)
		}
	}
}

// newest returns the stores that were restored since there were n, when there are more.
func (i *instance) newest(n, more int) []millrace.Restored {
	i.t.Helper()
	i.restores(n + more)
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.restored[n:])
}

// A process joins and gets a task, not before it has caught up with it; the other task is not touched. The former owner
// stands by. When the newcomer is killed, the task comes back, to the store that is there, in memory too: only what it
// lacks is read.
func TestStandbyTakesOver(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bolt", "memory"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, out := brokertest.Topic(t, "in", 2), brokertest.Topic(t, "out", 2)
			cfg := config(t)
			cfg.Standbys, cfg.AcceptableLag = 1, 10
			if name == "memory" {
				cfg.Store = memory.Opener{}
			}
			brokertest.Produce(t, cfg.Brokers, in, numbered(1000, 100)...)
			live := start(t, counting(t, in, out), cfg)
			live.drain()
			live.restores(2)

			victim := spawn(t, spec{
				Kind: "counting", Brokers: cfg.Brokers, App: cfg.ApplicationID, In: in, Out: out, StateDir: t.TempDir(), Memory: name == "memory",
				CommitInterval: 20 * time.Millisecond, Standbys: 1, AcceptableLag: 10,
			})
			live.logged(1, "standing by") // one of the two tasks has moved
			brokertest.Produce(t, cfg.Brokers, in, numbered(1000, 100)...)
			live.drain()
			live.restores(2) // what has stayed was not touched
			victim.kill()
			expire(t, cfg)

			r := live.newest(2, 1)[0]
			if r.From == 0 || r.Records > 500 {
				t.Errorf("restored %+v: want what a standby lacks", r)
			}
			brokertest.Produce(t, cfg.Brokers, in, numbered(1000, 100)...)
			live.drain()
			live.stop()
			exactlyCounted(t, out, numberedCounts(3000, 100))
		})
	}
}

// The number of workers changes while they work: tasks go to new workers and back, one by one, and nothing is lost or
// counted twice.
func TestSetWorkers(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 4), brokertest.Topic(t, "out", 4)
	cfg := config(t)
	cfg.Workers = 1
	app := start(t, counting(t, in, out), cfg)
	brokertest.Produce(t, cfg.Brokers, in, numbered(400, 40)...)
	app.drain()
	restored := len(app.restores(4))
	for i, step := range []struct{ workers, moves int }{{3, 2}, {4, 1}, {2, 2}, {9, 2}, {1, 3}} {
		if err := app.app.SetWorkers(step.workers); err != nil {
			t.Fatal(err)
		}
		brokertest.Produce(t, cfg.Brokers, in, numbered(400, 40)...)
		for _, r := range app.newest(restored, step.moves) {
			if r.From == 0 {
				t.Errorf("change %d: restored %+v from the start", i, r)
			}
		}
		restored += step.moves
		app.drain()
	}
	if err := app.app.SetWorkers(0); err == nil {
		t.Error("no workers are accepted")
	}
	app.stop()
	exactlyCounted(t, out, numberedCounts(2400, 40))
	if err := app.app.SetWorkers(2); err == nil {
		t.Error("workers are accepted by an application that has stopped")
	}
}

// A transaction is open in a changelog, and others have committed behind it. A restore waits until it is decided: it ends at
// the high watermark, never before what was committed.
func TestFieldReport17OpenTransaction(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	log := changelog(t, cfg.ApplicationID, "counts", rows(0, 10)...)
	setOffset(t, cfg.ApplicationID, in, 0, 0)
	dead, other := newTransactions(t), newTransactions(t)
	if err := dead.p.BeginTxn(); err != nil {
		t.Fatal(err)
	}
	lost := row("k1", 1000)
	if _, _, err := dead.p.SendMessage(&sarama.ProducerMessage{Topic: log, Key: sarama.ByteEncoder(lost.Key), Value: sarama.ByteEncoder(lost.Value)}); err != nil {
		t.Fatal(err)
	}
	other.write(log, true, row("k1", 7), row("k2", 8))
	brokertest.Produce(t, cfg.Brokers, in, brokertest.KV("k1", "x"), brokertest.KV("k2", "x"))

	var fetches atomic.Int64
	w := &wire{request: func(key int16, frame []byte) fate {
		if key == keyFetch && bytes.Contains(frame, []byte(log)) {
			fetches.Add(1)
		}
		return pass
	}}
	cfg.Configure = w.configure
	app := start(t, counting(t, in, out), cfg)
	app.logged(1, "restoring")
	app.logged(1, "joined the group")
	app.eventually(func() (bool, string) { // what can be read has been: the next one asks for more
		return fetches.Load() >= 3, fmt.Sprintf("%d fetches of the changelog", fetches.Load())
	})
	if got := settled(t, cfg.Brokers, out); len(got) > 0 {
		t.Fatalf("processed before the open transaction was decided: %v", got)
	}
	if err := dead.p.AbortTxn(); err != nil {
		t.Fatal(err)
	}
	app.drain()
	if r := app.restores(1)[0]; r.Records != 12 {
		t.Errorf("restored %+v, want 12 records", r)
	}
	for _, r := range settled(t, cfg.Brokers, out) {
		if got, want := count(t, r), map[string]int64{"k1": 8, "k2": 9}[string(r.Key)]; got != want {
			t.Errorf("%s is counted %d, want %d", r.Key, got, want)
		}
	}
}
