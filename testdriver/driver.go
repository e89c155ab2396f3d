package testdriver

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/internal/sim"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/topology"
)

// Errors of the driver itself.
var (
	// ErrUnknownTopic is a topic that neither the topology nor an option names.
	ErrUnknownTopic = errors.New("testdriver: unknown topic")
	// ErrUnknownStore is a store that the topology does not have.
	ErrUnknownStore = errors.New("testdriver: unknown store")
	// ErrStarted is a store written to after something was processed.
	ErrStarted = errors.New("testdriver: stores can be preloaded before the first input only")
	// ErrRestless is a topology that does not come to rest: its records go round for ever.
	ErrRestless = errors.New("testdriver: the topology does not come to rest")
)

// Driver runs one topology. It is used from one goroutine.
type Driver struct {
	globals  *runtime.Globals
	globalAt map[processor.TopicPartition]int64 // how far they are read
	t        testing.TB                         // nil without a test
	cfg      config
	topo     *topology.Topology
	layout   *topology.Layout
	cluster  *sim.Cluster
	group    *sim.Group
	now      time.Time
	spread   map[string]int32 // the next partition of records without a key
	cleanup  func()

	opener   *sim.Opener
	port     *sim.Port
	worker   *runtime.Worker // nil before the start, and while crashed or closed
	stores   *runtime.Stores // that the worker has open
	started  bool
	ended    bool // stopped or failed
	closed   bool
	life     int // counts the restarts with an empty folder
	fuse     fuse
	crash    *sim.Crash
	err      error
	dropped  []Dropped
	late     []processor.Late
	restored []Restored
}

// Dropped is a bad record that the error policy let pass.
type Dropped struct {
	Err    *processor.RecordError
	Action processor.Action
}

// Restored says how a store came back: Records were read from its changelog, from offset From up to To, not included.
type Restored struct {
	Task     processor.TaskID
	Store    string
	From, To int64
	Records  int64
}

// New returns a driver for a test. A failure fails the test at once, see the package comment. The driver is closed with
// the test.
func New(t testing.TB, topo *topology.Topology, opts ...Option) *Driver {
	t.Helper()
	d, err := Open(topo, opts...)
	if err != nil {
		t.Fatal(err)
	}
	d.t = t
	t.Cleanup(d.Close)
	return d
}

// Open returns a driver without a test: failures are told by Err, and the caller closes it. An error is a topology whose
// topics do not fit each other, or a temporary folder that cannot be made.
func Open(topo *topology.Topology, opts ...Option) (*Driver, error) {
	d := &Driver{topo: topo, cfg: defaults(), cluster: sim.NewCluster(), spread: map[string]int32{}, cleanup: func() {}}
	for _, opt := range opts {
		opt(&d.cfg)
	}
	d.now = d.cfg.start
	if err := d.lay(); err != nil {
		return nil, fmt.Errorf("testdriver: %w", err)
	}
	if d.cfg.opener.Durable() && d.cfg.stateDir == "" {
		dir, err := os.MkdirTemp("", "millrace")
		if err != nil {
			return nil, fmt.Errorf("testdriver: %w", err)
		}
		d.cfg.stateDir = dir
		d.cleanup = func() { _ = os.RemoveAll(dir) }
	}
	return d, nil
}

// lay makes the topics.
func (d *Driver) lay() (err error) {
	if err := d.cfg.policy.Validate(); err != nil {
		return err
	}
	counts := maps.Clone(d.cfg.partitions)
	topics := append(d.topo.SourceTopics(), d.topo.SinkTopics()...)
	if dead := d.cfg.policy.DeadLetterTopic; dead != "" {
		topics = append(topics, processor.Topic{Name: dead})
	}
	for _, g := range d.topo.Globals() {
		topics = append(topics, g.Topic)
	}
	for _, topic := range topics {
		if !topic.Internal && counts[topic.Name] == 0 {
			counts[topic.Name] = d.cfg.fallback
		}
	}
	if d.layout, err = d.topo.Layout(d.cfg.app, counts, d.cfg.policy.DeadLetterTopic); err != nil {
		return err
	}
	for name, n := range d.layout.Partitions {
		if err := d.cluster.CreateTopic(name, n); err != nil {
			return err
		}
	}
	d.group = d.cluster.Group(d.cfg.app, sim.TasksOf(d.layout))
	d.group.Latest = d.cfg.latest
	return nil
}

// start begins a life of the worker, unless there is one or there must not be.
func (d *Driver) start() {
	if d.worker != nil || d.crash != nil || d.ended || d.closed {
		return
	}
	d.started = true
	d.opener = sim.NewOpener(d.cfg.opener, d.fuse.at)
	calls := 0
	if d.cfg.manual {
		calls = 1
	}
	d.port = sim.NewPort(d.group, sim.PortConfig{ID: d.cfg.app + "-0", Guarantee: d.cfg.guarantee, CallsPerPoll: calls, Hook: d.fuse.at})
	d.stores = runtime.NewStores(d.topo.Specs(), d.topo.Globals())
	d.openGlobals()
	d.worker = runtime.NewWorker(d.workerConfig(), d.port)
}

func (d *Driver) workerConfig() runtime.Config {
	return runtime.Config{
		App: d.cfg.app, Specs: d.topo.Specs(), Partitions: d.layout.Partitions, Policy: d.cfg.policy, EveryUpdate: !d.cfg.cached,
		Globals: d.globals.Rows(), Stores: d.stores, Opener: d.opener, StateDir: filepath.Join(d.cfg.stateDir, strconv.Itoa(d.life)),
		CommitInterval: commitInterval, StagedBytes: stagedBytes, FlushBytes: 1, FlushInterval: commitInterval,
		Now: func() time.Time { return d.now }, Logger: d.cfg.logger,
		Restored: func(r runtime.Restored) { d.restored = append(d.restored, Restored(r)) },
		Dropped:  d.drop,
		Late:     func(l processor.Late) { d.late = append(d.late, l) },
	}
}

func (d *Driver) drop(err *processor.RecordError, a processor.Action) {
	d.dropped = append(d.dropped, Dropped{err, a})
}

// Turn lets the loop turn once. One turn takes up what has arrived, works on it, and begins a commit if one is due; with
// [Manual], the commit itself takes some turns more. It does nothing while crashed or closed.
func (d *Driver) Turn() {
	d.helper()
	d.start()
	if d.worker == nil {
		return
	}
	if err := d.followGlobals(); err != nil {
		d.fail(err)
		return
	}
	if crash, crashed := sim.Run(func() { d.worker.Turn(0) }); crashed {
		d.died(crash)
		return
	}
	if d.worker.Done() {
		err := d.worker.Failure()
		d.worker, d.ended = nil, true
		d.port.Leave()
		d.fail(err)
	}
}

// Settle lets the loop turn until all that was sent is processed and committed, or until it crashes or fails.
func (d *Driver) Settle() {
	d.helper()
	for range restless {
		d.Turn()
		if d.worker == nil || !d.port.Busy() && d.worker.Wait() > 0 {
			return
		}
	}
	d.fail(ErrRestless)
}

// settle is Settle for those who have changed something, unless the test wants to do it.
func (d *Driver) settle() {
	d.helper()
	if !d.cfg.manual {
		d.Settle()
	}
}

// Stop ends the process in good order: what is processed is committed, processors are closed. Restart begins it anew.
func (d *Driver) Stop() {
	d.helper()
	if d.worker == nil {
		return
	}
	d.port.Stop()
	for range restless {
		if d.Turn(); d.worker == nil {
			return
		}
	}
	d.fail(ErrRestless)
}

// Close stops the process for good. What was committed can still be read. Closing again does nothing.
func (d *Driver) Close() {
	d.helper()
	if d.closed {
		return
	}
	d.Stop()
	d.closed = true
	d.cleanup()
}

// Err returns what has gone wrong so far, nil if nothing. A record that stopped the topology is a *processor.RecordError.
func (d *Driver) Err() error { return d.err }

// Dropped returns the bad records that the error policy let pass, in the order in which they came.
func (d *Driver) Dropped() []Dropped { return slices.Clone(d.dropped) }

// Late returns the records that came after a window of theirs was closed, in the order in which they came, once for each such
// window. One that is processed again after a crash is there again.
func (d *Driver) Late() []processor.Late { return slices.Clone(d.late) }

// Restored returns how stores came back, in every life so far.
func (d *Driver) Restored() []Restored { return slices.Clone(d.restored) }

// Committed returns the committed position of an input partition: the offset of the next record to process. It is false
// if there is none. The topic is named as on the broker.
func (d *Driver) Committed(topic string, partition int32) (offset int64, ok bool) {
	p, ok := d.group.Committed(processor.TopicPartition{Topic: topic, Partition: partition})
	return p.Offset, ok
}

// fail takes an error to the test, or keeps it.
func (d *Driver) fail(err error) {
	if err == nil {
		return
	}
	d.helper()
	d.err = errors.Join(d.err, err)
	if d.t != nil && !d.cfg.expectErrors {
		d.t.Fatal(err)
	}
}

func (d *Driver) helper() {
	if d.t != nil {
		d.t.Helper()
	}
}

// known reports a topic that does not exist.
func (d *Driver) known(topic string) bool {
	if d.cluster.Partitions(topic) > 0 {
		return true
	}
	d.fail(fmt.Errorf("%w: %q, there are %q", ErrUnknownTopic, topic, d.cluster.Topics()))
	return false
}
