package integration

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/millrace-streams/millrace"
	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/bolt"
	"github.com/millrace-streams/millrace/store/memory"
	"github.com/millrace-streams/millrace/topology"
)

// backends are what every store test runs on.
var backends = map[string]store.Opener{"bolt": bolt.Opener{}, "memory": memory.Opener{}}

// A key that was only ever written by a process that was killed before its commit does not exist.
func TestFieldReport2UncommittedKeyIsGoneAfterKill(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	first := start(t, keeping(t, in, out), cfg)
	send(t, in, "old", "put=kept")
	first.drain()
	first.stop()

	killed := spawn(t, spec{Kind: "ledger", Brokers: cfg.Brokers, App: cfg.ApplicationID, In: in, Out: out, StateDir: cfg.StateDir,
		CommitInterval: time.Hour, FlushInterval: time.Millisecond})
	send(t, in, "ghost", "put=seen")
	killed.hears("ghost put=seen")
	killed.kill()

	again := start(t, build(t, func(b *topology.Builder) {
		ledger(topology.Filter(topology.From(b, text(in)), func(_, v string) bool { return v != "put=seen" }), out, nil)
	}), cfg)
	send(t, in, "ghost", "get")
	send(t, in, "old", "get")
	again.drain()
	if got, want := show(t, out), []string{"ghost=null", "old=kept"}; !slices.Equal(got, want) {
		t.Errorf("the store holds %v, want %v", got, want)
	}
}

// Logs whose records are all gone: nothing is restored, at once.
func TestFieldReport14EmptiedChangelog(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	log := changelog(t, cfg.ApplicationID, "counts", rows(0, 20)...)
	setOffset(t, cfg.ApplicationID, in, 0, 0)
	first := start(t, counting(t, in, out), cfg)
	first.restores(1)
	first.stop()
	old := t.TempDir() // a state directory that holds offset 20
	if err := os.CopyFS(old, os.DirFS(cfg.StateDir)); err != nil {
		t.Fatal(err)
	}
	brokertest.Produce(t, cfg.Brokers, log, rows(20, 30)...)
	deleteUpTo(t, log, 0, 50)

	for n, dir := range []string{t.TempDir(), old} {
		cfg.StateDir = dir
		app := start(t, counting(t, in, out), cfg)
		if r := app.restores(1)[0]; r.Records != 0 || r.To != 50 {
			t.Errorf("state directory %d: restored %+v, want no record up to 50", n, r)
		}
		if n == 1 {
			send(t, in, "k1", "x")
			app.drain()
		}
		app.stop()
	}
	exactlyCounted(t, out, map[string]int64{"k1": 1})
}

// A log with holes, whose end is an aborted transaction and its marker.
func TestFieldReport14Holes(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	log := changelog(t, cfg.ApplicationID, "counts", rows(0, 17)...)
	setOffset(t, cfg.ApplicationID, in, 0, 0)
	tx := newTransactions(t)
	tx.write(log, true, row("a", 1))
	tx.write(log, false, rows(100, 20)...)
	tx.write(log, true, row("a", 2), row("b", 5))
	tx.write(log, false, rows(100, 40)...)
	brokertest.Produce(t, cfg.Brokers, log, row("c", 7))
	tx.write(log, false, row("a", 99))
	_, end := logRange(t, log, 0)
	deleteUpTo(t, log, 0, 17)

	app := start(t, counting(t, in, out), cfg)
	if r := app.restores(1)[0]; r.Records != 4 || r.To != end {
		t.Errorf("restored %+v, want 4 records up to %d", r, end)
	}
	for _, key := range []string{"a", "b", "c", "k3"} {
		send(t, in, key, "x")
	}
	app.drain()
	for _, r := range settled(t, cfg.Brokers, out) {
		if got, want := count(t, r), map[string]int64{"a": 3, "b": 6, "c": 8, "k3": 1}[string(r.Key)]; got != want {
			t.Errorf("%s is counted %d, want %d", r.Key, got, want)
		}
	}
}

// A log that was compacted for real. Only the embedded broker does it when asked.
func TestFieldReport14Compacted(t *testing.T) {
	t.Parallel()
	broker := brokertest.Embedded(t)
	brokertest.CreateTopic(t, broker.Addrs(), "in", 1, nil)
	brokertest.CreateTopic(t, broker.Addrs(), "out", 1, nil)
	cfg := config(t)
	cfg.Brokers = broker.Addrs()
	log := cfg.ApplicationID + "-counts-changelog"
	first := start(t, counting(t, "in", "out"), cfg)
	for range 5 { // as many commits
		brokertest.Produce(t, cfg.Brokers, "in", numbered(30, 3)...)
		first.drain()
	}
	first.stop()
	broker.Cluster().Compact()
	left := int64(len(settled(t, cfg.Brokers, log)))

	cfg.StateDir = t.TempDir()
	again := start(t, counting(t, "in", "out"), cfg)
	if r := again.restores(1)[0]; r.Records != left || r.To < 15 {
		t.Errorf("restored %+v, want %d records", r, left)
	}
	brokertest.Produce(t, cfg.Brokers, "in", brokertest.KV("k1", "x"))
	again.drain()
	all := settled(t, cfg.Brokers, "out")
	if last := all[len(all)-1]; string(last.Key) != "k1" || count(t, last) != 51 {
		t.Errorf("the count of %s is %d, want 51 of k1", last.Key, count(t, last))
	}
}

// A restore ends at the end that the log had when it began, though a batch goes on.
func TestFieldReport15EndIsExclusive(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	log := changelog(t, cfg.ApplicationID, "ledger")
	setOffset(t, cfg.ApplicationID, in, 0, 0)
	entries := func(from, n int) (all []brokertest.Record) {
		for i := range n {
			all = append(all, brokertest.Record{Key: fmt.Appendf(nil, "k%d", from+i), Value: []byte("v")})
		}
		return all
	}
	brokertest.Produce(t, cfg.Brokers, log, entries(0, 100)...)
	var once sync.Once
	meanwhile := &wire{request: func(key int16, frame []byte) fate {
		if key == keyFetch && bytes.Contains(frame, []byte(log)) {
			once.Do(func() { brokertest.Produce(t, cfg.Brokers, log, entries(100, 10)...) })
		}
		return pass
	}}
	cfg.Configure = meanwhile.configure
	app := start(t, keeping(t, in, out), cfg)
	if r := app.restores(1)[0]; r.Records != 100 || r.To != 100 {
		t.Errorf("restored %+v, want 100 records up to 100", r)
	}
	once.Do(func() { t.Error("the changelog was not fetched by its name") })
	send(t, in, "k99", "get")
	send(t, in, "k100", "get")
	app.drain()
	if got, want := show(t, out), []string{"k99=v", "k100=null"}; !slices.Equal(got, want) {
		t.Errorf("the store holds %v, want %v", got, want)
	}
}

// Restoring does not care where the input starts.
func TestFieldReport16RestoreIgnoresReset(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 1000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
			cfg := config(t)
			cfg.OffsetReset = millrace.Latest
			changelog(t, cfg.ApplicationID, "counts", rows(0, n)...)
			send(t, in, "skipped", "x")
			setOffset(t, cfg.ApplicationID, in, 0, 1)
			app := start(t, counting(t, in, out), cfg)
			if r := app.restores(1)[0]; r.Records != int64(n) || r.From != 0 || r.To != int64(n) {
				t.Errorf("restored %+v, want %d records", r, n)
			}
			last := fmt.Sprintf("k%d", n-1)
			app.eventually(func() (bool, string) { // until it is read from the end on
				send(t, in, last, "x")
				return len(show(t, out)) > 0, "nothing was processed"
			})
			first := settled(t, cfg.Brokers, out)[0]
			if string(first.Key) != last || count(t, first) != int64(n) {
				t.Errorf("the first count is %d of %s, want %d of %s", count(t, first), first.Key, n, last)
			}
		})
	}
}

// Empty keys and values are no nulls, in a store and after a restore.
func TestFieldReport46EmptyKeyAndValue(t *testing.T) {
	t.Parallel()
	for name, opener := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
			cfg := config(t)
			cfg.Store = opener
			topo := keeping(t, in, out)
			ask := func(app *instance) {
				for _, key := range []string{"", "empty", "gone"} {
					send(t, in, key, "get")
				}
				app.drain()
			}
			first := start(t, topo, cfg)
			send(t, in, "", "put=v")
			send(t, in, "empty", "put=")
			send(t, in, "gone", "put=x", "del")
			ask(first)
			first.stop()
			cfg.StateDir = t.TempDir()
			again := start(t, topo, cfg)
			ask(again)
			want := []string{"=v", "empty=", "gone=null"}
			if got := show(t, out); !slices.Equal(got, slices.Concat(want, want)) {
				t.Errorf("the store answered %q, want %q twice", got, want)
			}
		})
	}
}

// What the files hold is not read again: a restart replays only what came after the last flush.
func TestRestartReplaysOnlyTheTail(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	log := cfg.ApplicationID + "-ledger-changelog"
	first := start(t, keeping(t, in, out), cfg)
	brokertest.Produce(t, cfg.Brokers, in, puts(0, 1000)...)
	first.drain()
	first.stop() // flushes

	written := settled(t, cfg.Brokers, log)
	held := written[len(written)-1].Offset + 1
	killed := spawn(t, spec{Kind: "ledger", Brokers: cfg.Brokers, App: cfg.ApplicationID, In: in, Out: out, StateDir: cfg.StateDir,
		CommitInterval: cfg.CommitInterval, FlushInterval: time.Hour})
	brokertest.Produce(t, cfg.Brokers, in, puts(1000, 10)...)
	waitCommitted(t, cfg.Brokers, cfg.ApplicationID, []string{in}, func() error { return nil })
	killed.kill()

	again := start(t, keeping(t, in, out), cfg)
	if r := again.restores(1)[0]; r.From != held || r.Records != 10 {
		t.Errorf("after a kill: restored %+v, want 10 records from %d on", r, held)
	}
	send(t, in, "k5", "get")
	send(t, in, "k1005", "get")
	again.drain()
	again.stop()
	if got, want := show(t, out), []string{"k5=5", "k1005=1005"}; !slices.Equal(got, want) {
		t.Errorf("the store holds %v, want %v", got, want)
	}

	stopped := start(t, keeping(t, in, out), cfg)
	if r := stopped.restores(1)[0]; r.Records != 0 {
		t.Errorf("after a stop in order: restored %+v, want no record", r)
	}
}

func puts(from, n int) []brokertest.Record {
	var all []brokertest.Record
	for i := range n {
		all = append(all, brokertest.KV(fmt.Sprintf("k%d", from+i), fmt.Sprintf("put=%d", from+i)))
	}
	return all
}
