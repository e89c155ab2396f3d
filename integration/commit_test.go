package integration

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// A commit that holds offsets alone moves the position.
func TestFieldReport3OffsetsOnly(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	var seen atomic.Int64
	topo := build(t, func(b *topology.Builder) {
		all := topology.Peek(topology.From(b, text(in)), func(string, string) { seen.Add(1) })
		topology.To(topology.Filter(all, func(string, string) bool { return false }), text(out))
	})
	brokertest.Produce(t, cfg.Brokers, in, numbered(100, 10)...)
	first := start(t, topo, cfg)
	first.drain()
	first.stop()
	if got, want := brokertest.GroupOffsets(t, cfg.Brokers, cfg.ApplicationID, in), map[int32]int64{0: 100}; !maps.Equal(got, want) {
		t.Errorf("committed %v, want %v", got, want)
	}

	again := start(t, topo, cfg)
	send(t, in, "k", "one more")
	again.drain()
	if n := seen.Load(); n != 101 {
		t.Errorf("the processor saw %d records, want 101", n)
	}
	if got := show(t, out); len(got) > 0 {
		t.Errorf("output: %v", got)
	}
}

// ticker counts the firings of a wall-clock punctuation in a store, and tells of each, and of what it found at first.
func ticker(b *topology.Builder, in string, tell func(string)) {
	ticks := store.NewKeyValue("ticks", serde.String, serde.Int64)
	topology.Process(topology.From(b, text(in)), "ticker", func() processor.Processor[string, string, string, string] {
		return &tickerNode{store: ticks, tell: tell}
	}, ticks)
}

type tickerNode struct {
	store *store.KeyValue[string, int64]
	tell  func(string)
}

// Init implements processor.Processor.
func (n *tickerNode) Init(ctx *processor.Context[string, string]) error {
	view, err := n.store.View(ctx)
	if err != nil {
		return err
	}
	found, _, err := view.Get("n")
	if err != nil {
		return err
	}
	n.tell(fmt.Sprintf("found %d", found))
	ctx.Schedule(20*time.Millisecond, processor.WallClockTime, func(int64) error {
		at, _, err := view.Get("n")
		if err != nil {
			return err
		}
		n.tell(fmt.Sprintf("tick %d", at+1))
		return view.Put("n", at+1)
	})
	return nil
}

// Process implements processor.Processor.
func (n *tickerNode) Process(processor.Record[string, string]) error { return nil }

// What a punctuation writes is committed though there is no input.
func TestFieldReport4PunctuationOnly(t *testing.T) {
	t.Parallel()
	in := brokertest.Topic(t, "in", 1)
	cfg := config(t)
	log := cfg.ApplicationID + "-ticks-changelog"
	killed := spawn(t, spec{Kind: "ticker", Brokers: cfg.Brokers, App: cfg.ApplicationID, In: in, StateDir: cfg.StateDir,
		CommitInterval: cfg.CommitInterval, SessionTimeout: time.Second, TransactionTimeout: 2 * time.Second})
	killed.hears("tick 5")
	committed := int64(0)
	brokertest.Eventually(t, patience, func() (bool, string) {
		for _, r := range brokertest.ReadCommitted(t, cfg.Brokers, log) {
			committed = count(t, r)
		}
		return committed >= 5, fmt.Sprintf("the changelog holds %d", committed)
	})
	killed.kill()
	if got := brokertest.GroupOffsets(t, cfg.Brokers, cfg.ApplicationID, in); len(got) > 0 && got[0] != 0 {
		t.Errorf("committed offsets %v without any input", got)
	}

	cfg.StateDir = t.TempDir()
	told := make(chan string, 1000)
	app := start(t, build(t, func(b *topology.Builder) { ticker(b, in, func(line string) { told <- line }) }), cfg)
	if r := app.restores(1)[0]; r.Records == 0 {
		t.Errorf("restored %+v, want records", r)
	}
	found := int64(0)
	if _, err := fmt.Sscanf(<-told, "found %d", &found); err != nil || found < committed {
		t.Errorf("found %d (%v), want at least %d", found, err, committed)
	}
}

// The position counts past a trailing commit marker.
func TestFieldReport5TrailingMarker(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	app := start(t, counting(t, in, out), cfg)
	newTransactions(t).write(in, true, numbered(10, 1)...)
	brokertest.Eventually(t, patience, func() (bool, string) { // the marker may follow its answer
		_, end := logRange(t, in, 0)
		return end == 11, fmt.Sprintf("the input ends at %d", end)
	})
	app.drain()
	if got, want := brokertest.GroupOffsets(t, cfg.Brokers, cfg.ApplicationID, in), map[int32]int64{0: 11}; !maps.Equal(got, want) {
		t.Errorf("committed %v, want %v", got, want)
	}
	exactlyCounted(t, out, map[string]int64{"k0": 10})
}

// The answer to EndTxn is lost, or the request is: the commit is asked for again, and never guessed.
func TestFieldReport8CommitWithoutAnswer(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*wire, func(int16, []byte) fate){
		"answer lost and connection cut":  func(w *wire, f func(int16, []byte) fate) { w.response = f },
		"request lost and connection cut": func(w *wire, f func(int16, []byte) fate) { w.request = f },
		"answer never comes": func(w *wire, f func(int16, []byte) fate) {
			w.response = func(key int16, frame []byte) fate {
				if f(key, frame) == cut {
					return swallow
				}
				return pass
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, out := brokertest.Topic(t, "in", 2), brokertest.Topic(t, "out", 2)
			cfg := config(t)
			var ends, losses atomic.Int64
			w := &wire{}
			lose(w, func(key int16, _ []byte) fate {
				if key != keyEndTxn {
					return pass
				}
				if n := ends.Add(1); n%2 == 0 && n <= 6 {
					losses.Add(1)
					return cut
				}
				return pass
			})
			cfg.Configure = w.configure
			app := start(t, counting(t, in, out), cfg)
			rounds := 0
			for ; losses.Load() < 3; rounds++ {
				brokertest.Produce(t, cfg.Brokers, in, numbered(100, 5)...)
				app.drain()
			}
			want := numberedCounts(100*rounds, 5)
			exactlyCounted(t, out, want)
			app.stop()
			cfg.Configure, cfg.StateDir = nil, t.TempDir() // the changelog holds the same
			again := start(t, counting(t, in, out), cfg)
			brokertest.Produce(t, cfg.Brokers, in, numbered(5, 5)...)
			again.drain()
			exactlyCounted(t, out, numberedCounts(100*rounds+5, 5))
		})
	}
}

// Transactions follow one another without a pause, and somebody takes the transactional id again and again: the
// application begins anew each time, and nothing is lost or doubled.
func TestFieldReport9TransactionalIDTaken(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	cfg.CommitInterval, cfg.Workers = time.Millisecond, 1
	app := start(t, counting(t, in, out), cfg)
	rounds := 0
	for ; rounds < 5; rounds++ {
		brokertest.Produce(t, cfg.Brokers, in, numbered(50, 5)...)
		app.drain()
		for i := range 40 {
			send(t, in, fmt.Sprintf("k%d", i%5), "x")
			if i%20 == 10 {
				fence(t, cfg.Brokers, transactionalID(t, cfg.StateDir, cfg.ApplicationID))
			}
		}
	}
	app.drain()
	exactlyCounted(t, out, numberedCounts(rounds*90, 5))
}

// transactionalID is that of the first worker.
func transactionalID(t *testing.T, stateDir, app string) string {
	t.Helper()
	id, err := os.ReadFile(filepath.Join(stateDir, app, "process-id"))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s-%s-0", app, strings.TrimSpace(string(id)))
}

// fence takes a transactional id away from whoever has it.
func fence(t *testing.T, brokers []string, id string) {
	t.Helper()
	c := client(t, brokers)
	brokertest.Eventually(t, patience, func() (bool, string) {
		coordinator, err := c.TransactionCoordinator(id)
		if err != nil {
			return false, err.Error()
		}
		resp, err := coordinator.InitProducerID(&sarama.InitProducerIDRequest{
			Version: 4, TransactionalID: &id, TransactionTimeout: 10 * time.Second, ProducerID: -1, ProducerEpoch: -1,
		})
		if err != nil {
			return false, err.Error()
		}
		return resp.Err == sarama.ErrNoError, resp.Err.Error()
	})
}
