package runtime_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// port is a worker's world that a test makes up: what it polls next, and jobs beside the loop that end when the test says.
type port struct {
	next     runtime.Events
	jobs     []func()
	commits  int                                // begun and not answered
	fetching map[processor.TopicPartition]int64 // from where partitions are read
	released []processor.TaskID
	closed   []processor.TaskID
}

func (p *port) Poll(time.Duration) runtime.Events {
	e := p.next
	p.next = runtime.Events{}
	return e
}
func (p *port) Commit(processor.Commit)                         { p.commits++ }
func (p *port) Release(id processor.TaskID)                     { p.released = append(p.released, id) }
func (p *port) Closed(id processor.TaskID)                      { p.closed = append(p.closed, id) }
func (p *port) Background(fn func())                            { p.jobs = append(p.jobs, fn) }
func (p *port) Fetch(tp processor.TopicPartition, offset int64) { p.fetching[tp] = offset }
func (p *port) StopFetch(tp processor.TopicPartition)           { delete(p.fetching, tp) }
func (p *port) Consumed(tp processor.TopicPartition, bytes int) {}

// world is a worker of an application that counts, in a world that the test makes up.
type world struct {
	t        *testing.T
	port     *port
	worker   *runtime.Worker
	restores *runtime.Restores
	told     []runtime.Restore
	log      bytes.Buffer
	now      time.Time
}

const app = "app"

// newWorld counts into some stores, "counts" unless they are named.
func newWorld(t *testing.T, opener store.Opener, partitions int32, restoreBytes int, stores ...string) *world {
	t.Helper()
	if len(stores) == 0 {
		stores = []string{"counts"}
	}
	b := topology.NewBuilder()
	lines := topology.GroupByKey(topology.From(b, topology.NewTopic("lines", serde.String, serde.String)))
	counts := map[string]int32{"lines": partitions}
	for _, name := range stores {
		topology.Count(lines, store.NewKeyValue(name, serde.String, serde.Int64), topology.Named(name))
		counts[logOf(name, 0).Topic] = partitions
	}
	topo, err := b.Build()
	must(t, err)
	w := &world{t: t, port: &port{fetching: map[processor.TopicPartition]int64{}}, restores: runtime.NewRestores(restoreBytes), now: time.UnixMilli(0)}
	w.worker = runtime.NewWorker(runtime.Config{
		App: app, Specs: topo.Specs(), Partitions: counts,
		Opener: opener, StateDir: t.TempDir(), CommitInterval: time.Second, DrainInterval: time.Second,
		StagedBytes: 1 << 20, FlushBytes: 1 << 20, FlushInterval: time.Minute, Restores: w.restores,
		Restoring:       func(r runtime.Restore) { w.told = append(w.told, r) },
		DeleteRetention: map[string]time.Duration{logOf("counts", 0).Topic: time.Hour},
		Now:             func() time.Time { return w.now }, Logger: slog.New(slog.NewTextHandler(&w.log, nil)),
	}, w.port)
	t.Cleanup(w.worker.Crash)
	return w
}

// turn is a turn of the loop on what the port has to tell.
func (w *world) turn(e runtime.Events) {
	w.t.Helper()
	w.port.next = e
	w.worker.Turn(0)
	if err := w.worker.Failure(); err != nil {
		w.t.Fatal(err)
	}
}

// open grants leases, and opens their stores.
func (w *world) open(leases ...runtime.Lease) {
	w.t.Helper()
	w.turn(granted(leases...))
	w.work()
}

// work does the jobs that have been begun, and takes up what came of them, until there are none.
func (w *world) work() {
	w.t.Helper()
	for len(w.port.jobs) > 0 {
		w.job()
		w.turn(runtime.Events{})
	}
}

// job does the oldest job.
func (w *world) job() {
	w.t.Helper()
	if len(w.port.jobs) == 0 {
		w.t.Fatal("no job was begun")
	}
	job := w.port.jobs[0]
	w.port.jobs = w.port.jobs[1:]
	job()
}

func taskOf(partition int32) processor.TaskID { return processor.TaskID{Partition: partition} }

func logOf(store string, partition int32) processor.TopicPartition {
	return processor.TopicPartition{Topic: app + "-" + store + "-changelog", Partition: partition}
}

// lease is one of a task whose changelogs hold so many records each.
func lease(role runtime.Role, partition int32, end int64, stores ...string) runtime.Lease {
	l := runtime.Lease{Task: taskOf(partition), Role: role}
	for _, name := range stores {
		l.Changelogs = append(l.Changelogs, runtime.Changelog{TopicPartition: logOf(name, partition), Store: name, End: end})
	}
	if role == runtime.Active {
		l.Inputs = []runtime.Input{{TopicPartition: processor.TopicPartition{Topic: "lines", Partition: partition}}}
	}
	return l
}

func granted(leases ...runtime.Lease) runtime.Events { return runtime.Events{Granted: leases} }

// fetched is a batch of n records of a changelog.
func fetched(store string, partition int32, from, n int64) runtime.Events {
	f := runtime.Fetched{TopicPartition: logOf(store, partition), Next: from + n}
	for at := from; at < from+n; at++ {
		f.Records = append(f.Records, processor.Raw{Offset: at, Key: fmt.Appendf(nil, "key-%06d", at), Value: make([]byte, 8)})
	}
	return runtime.Events{Fetched: []runtime.Fetched{f}}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
