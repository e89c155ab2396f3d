package sim_test

import (
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/eos"
	"github.com/millrace-streams/millrace/internal/assign"
	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/internal/sim"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// plan is what one seed decides on once and for all.
type plan struct {
	guarantee   eos.Guarantee
	opener      store.Opener
	dir         string // of durable stores
	processes   int
	standbys    int
	warmups     int
	acceptable  int64 // lag
	skipTail    bool  // a mistake
	careless    bool  // likewise
	everyUpdate bool
	faults      int // per thousand calls of the commit protocol
	crashes     int // how many processes die
	zombies     bool
	callsAtOnce bool
	batch       int
	staged      int
}

// world is a cluster with processes that a scheduler lets take turns.
type world struct {
	t         testing.TB
	seed      uint64
	rng       *rand.Rand
	plan      plan
	topo      *topology.Topology
	layout    *topology.Layout
	cluster   *sim.Cluster
	group     *sim.Group
	processes []*process
	now       time.Time
	calm      bool // no more faults
	events    []string
}

// process is one worker with its port, in one life after another.
type process struct {
	world    *world
	name     string
	life     int
	worker   *runtime.Worker // nil while dead
	port     *sim.Port
	opener   *sim.Opener
	fuse     int // dies at this many points from now; 0: does not
	paused   int // turns that it sleeps
	deaf     int // turns after which it hears from the group again
	stopping bool
	refuse   bool // the broker refuses what it produces
	restored []runtime.Restored
	disk     map[string]int64 // up to where its stores are on its disk, by task and store
}

const (
	app           = "app"
	flushInterval = 300 * time.Millisecond
)

func newWorld(t testing.TB, seed uint64, topo *topology.Topology, counts map[string]int32, p plan) *world {
	t.Helper()
	w := &world{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), plan: p, topo: topo, cluster: sim.NewCluster(), now: time.UnixMilli(0)}
	var err error
	w.layout, err = topo.Layout(app, counts, "")
	must(t, err)
	for name, n := range w.layout.Partitions {
		must(t, w.cluster.CreateTopic(name, n))
	}
	w.group = w.cluster.Group(app, sim.TasksOf(w.layout))
	w.group.Careless = p.careless
	w.group.Settings = assign.Settings{Standbys: p.standbys, MaxWarmups: p.warmups, AcceptableLag: p.acceptable}
	w.cluster.LateMarkers = p.guarantee == eos.ExactlyOnce
	for i := range p.processes {
		w.processes = append(w.processes, &process{world: w, name: fmt.Sprint("p", i), disk: map[string]int64{}})
	}
	return w
}

// note keeps the last events for whoever has to understand a failure.
func (w *world) note(format string, args ...any) {
	w.events = append(w.events, fmt.Sprintf("%6d ", w.now.UnixMilli())+fmt.Sprintf(format, args...))
	if len(w.events) > 400 {
		w.events = slices.Clone(w.events[200:])
	}
}

func (w *world) fatalf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\nplan %+v\nlast events:\n%s\nseed %d: run it again with MILLRACE_SEED=%d",
		fmt.Sprintf(format, args...), w.plan, strings.Join(w.events[max(0, len(w.events)-80):], "\n"), w.seed, w.seed)
}

func (w *world) chance(perThousand int) bool { return !w.calm && w.rng.IntN(1000) < perThousand }

// start begins a life of a process. Its former member, if still in the group, is replaced: membership is static.
func (p *process) start(keepState bool) {
	w := p.world
	if p.port != nil {
		p.port.Leave()
	}
	p.life++
	if !keepState {
		p.life += 1000 // another folder
		clear(p.disk)
	}
	p.fuse, p.paused, p.deaf, p.stopping = 0, 0, 0, false
	p.opener = sim.NewOpener(w.plan.opener, p.at)
	p.port = sim.NewPort(w.group, w.portConfig(p))
	p.worker = runtime.NewWorker(w.workerConfig(p), p.port)
	w.note("%s starts, state kept %v", p.name, keepState)
}

func (w *world) portConfig(p *process) sim.PortConfig {
	cfg := sim.PortConfig{
		ID: p.name, Guarantee: w.plan.guarantee, CallsPerPoll: 1, BatchRecords: w.plan.batch, Batches: 3, BufferBytes: 300,
		Hook:  p.at,
		Fault: p.fault,
		Skip:  func(processor.TopicPartition) bool { return w.chance(200) },
		Later: func() bool { return w.chance(500) },

		Stored: func(task processor.TaskID, store string) (int64, bool) {
			at, ok := p.disk[fmt.Sprint(task, store)]
			return at, ok
		},
		SkipTail: w.plan.skipTail,
	}
	if w.plan.callsAtOnce {
		cfg.CallsPerPoll = 0
	}
	return cfg
}

func (w *world) workerConfig(p *process) runtime.Config {
	return runtime.Config{
		App: app, Specs: w.topo.Specs(), Partitions: w.layout.Partitions, EveryUpdate: w.plan.everyUpdate,
		Opener: p.opener, StateDir: filepath.Join(w.plan.dir, p.name, fmt.Sprint(p.life/1000)),
		CommitInterval: 100 * time.Millisecond, DrainInterval: 10 * time.Millisecond,
		StagedBytes: w.plan.staged, FlushBytes: 2000, FlushInterval: flushInterval,
		Kept:     p.keep,
		Restored: func(r runtime.Restored) { p.restored = append(p.restored, r) },
		Now:      func() time.Time { return w.now }, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
}

// keep notes what is on the process's disk, as the application does.
func (p *process) keep(task processor.TaskID, store string, offset int64) {
	if p.disk[fmt.Sprint(task, store)] = offset; offset < 0 {
		delete(p.disk, fmt.Sprint(task, store))
	}
}

// at is called at every point of a process's loop.
func (p *process) at(point sim.Point) {
	if p.fuse > 0 {
		if p.fuse--; p.fuse == 0 {
			panic(sim.Crash{At: point})
		}
	}
}

func (p *process) fault(k eos.Kind) sim.Fault {
	w := p.world
	if p.refuse && k == eos.Produce {
		return sim.Unauthorized
	}
	if !w.chance(w.plan.faults) {
		return sim.None
	}
	faults := []sim.Fault{sim.Refused, sim.Vanished, sim.Unanswered, sim.Half, sim.TimedOut, sim.Fenced, sim.StaleGroup}
	if w.plan.guarantee == eos.AtLeastOnce {
		faults = []sim.Fault{sim.Refused, sim.Vanished, sim.Unanswered, sim.Half, sim.StaleGroup}
	}
	f := faults[w.rng.IntN(len(faults))]
	w.note("%s fault %d at %s", p.name, f, sim.Before(k))
	return f
}

// turn is one turn of the process's loop, unless it sleeps. It may die in it.
func (p *process) turn() {
	w := p.world
	if p.worker == nil {
		return
	}
	if p.paused > 0 {
		p.paused--
		return
	}
	if p.deaf > 0 {
		if p.deaf--; p.deaf == 0 {
			p.port.Deaf(false)
		}
	}
	crash, died := sim.Run(func() { p.worker.Turn(0) })
	switch {
	case died:
		w.note("%s dies %s", p.name, crash.At)
		p.die()
	case p.worker.Failure() != nil:
		w.fatalf("%s failed: %v", p.name, p.worker.Failure())
	case p.worker.Done() && !p.stopping:
		w.fatalf("%s ended by itself", p.name)
	case p.worker.Done():
		w.note("%s has stopped", p.name)
		p.worker = nil
		p.port.Leave()
		if n := len(p.opener.Opened("counts")); n > 0 {
			w.fatalf("%s left %d stores open", p.name, n)
		}
	}
}

// die ends a life as kill -9 does. The group notices at once, or when somebody tells it.
func (p *process) die() {
	p.worker.Crash()
	must(p.world.t, p.opener.Kill())
	p.worker = nil
	if p.world.rng.IntN(2) == 0 {
		p.port.Leave()
	}
}
