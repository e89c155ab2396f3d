package millrace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/millrace-streams/millrace/internal/kafka"
	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/internal/statedir"
	"github.com/millrace-streams/millrace/topology"
)

// App is an application: a topology and where it runs. It can be run once.
type App struct {
	topo *topology.Topology
	cfg  Config
	once sync.Once

	offsets *statedir.Offsets // of the stores on disk

	mu      sync.Mutex
	cluster *kafka.Cluster   // while it runs
	placed  *topology.Layout // likewise
	crew    *crew            // likewise
}

// ErrAlreadyRun is returned by a second Run.
var ErrAlreadyRun = errors.New("millrace: the application has been run already")

// New checks the configuration and returns an application that has not been started. The error, if any, wraps ErrConfig
// and names every mistake.
func New(topo *topology.Topology, cfg Config) (*App, error) {
	if topo == nil {
		return nil, fmt.Errorf("%w: no topology", ErrConfig)
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &App{topo: topo, cfg: cfg}, nil
}

// Run runs the application until ctx ends, then commits, leaves the group and returns nil. It returns an error when the
// application cannot start (topics missing or not fitting each other, state directory in use, brokers out of reach) or
// cannot go on: a *processor.RecordError names the record that the error policy does not let pass.
func (a *App) Run(ctx context.Context) error {
	err := ErrAlreadyRun
	a.once.Do(func() { err = a.run(ctx) })
	return err
}

func (a *App) run(ctx context.Context) (err error) {
	dir, err := statedir.Open(a.cfg.StateDir, a.cfg.ApplicationID)
	if err != nil {
		return fmt.Errorf("millrace: %w", err)
	}
	defer func() { err = errors.Join(err, dir.Close()) }()

	a.offsets = dir.Offsets()
	cluster, err := a.connect(ctx, dir)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()

	layout, err := a.layout(ctx, cluster)
	if err != nil {
		return unlessEnded(ctx, fmt.Errorf("millrace: %w", err))
	}
	a.running(cluster, layout)
	defer a.running(nil, nil)
	return a.work(ctx, cluster, layout)
}

// unlessEnded returns the error of a start, nil if the start was called off.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// connectTimeout bounds the wait for a first broker to answer.
const connectTimeout = 30 * time.Second

func (a *App) connect(ctx context.Context, dir *statedir.Dir) (*kafka.Cluster, error) {
	a.cfg.Logger.Info("connecting", "app", a.cfg.ApplicationID, "brokers", a.cfg.Brokers)
	bounded, cancel := context.WithTimeoutCause(ctx, connectTimeout, fmt.Errorf("no broker has answered within %v", connectTimeout))
	defer cancel()
	cluster, err := kafka.Open(bounded, a.kafkaConfig(dir))
	if err != nil {
		return nil, fmt.Errorf("millrace: connect to %v: %w", a.cfg.Brokers, err)
	}
	return cluster, nil
}

// work joins the group and runs the workers. The first that fails stops them all, in order.
func (a *App) work(ctx context.Context, cluster *kafka.Cluster, layout *topology.Layout) error {
	serving, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	globals, followed, err := a.globals(serving, cluster, layout, stop)
	if err != nil {
		return unlessEnded(ctx, fmt.Errorf("millrace: %w", err))
	}
	defer func() {
		stop(nil)
		followed()
	}()
	ports, err := cluster.Start(serving, taskInfos(layout))
	if err != nil {
		return fmt.Errorf("millrace: join the group: %w", err)
	}
	hard, abandon := a.grace(serving)
	defer abandon()

	a.cfg.Logger.Info("running", "app", a.cfg.ApplicationID, "guarantee", a.cfg.Guarantee.String(), "tasks", len(layout.Tasks), "workers", len(ports))
	crew := newCrew(func(port runtime.Port) error { return a.runWorker(hard, a.workerConfig(layout, globals), port) }, stop)
	crew.join(ports)
	a.staffed(crew)
	defer a.staffed(nil)
	err = crew.wait(hard)
	if cause := context.Cause(serving); err == nil && ctx.Err() == nil && cause != nil { // no worker's fault
		err = cause
	}
	if err != nil {
		return fmt.Errorf("millrace: stopped: %w", err)
	}
	a.cfg.Logger.Info("stopped", "app", a.cfg.ApplicationID)
	return nil
}

// errShutdown is why a worker was abandoned.
var errShutdown = errors.New("millrace: the orderly shutdown took too long; what was not committed will be processed again")

// grace returns a context that outlives ctx by the shutdown timeout.
func (a *App) grace(ctx context.Context) (context.Context, func()) {
	hard, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	var timer *time.Timer
	var mu sync.Mutex
	unwatch := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		timer = time.AfterFunc(a.cfg.ShutdownTimeout, func() { cancel(errShutdown) })
	})
	return hard, func() {
		unwatch()
		mu.Lock()
		defer mu.Unlock()
		if timer != nil {
			timer.Stop()
		}
		cancel(nil)
	}
}

// layout places the topology on the cluster's topics and makes the internal ones.
func (a *App) layout(ctx context.Context, cluster *kafka.Cluster) (*topology.Layout, error) {
	counts, err := cluster.PartitionCounts(ctx, a.topics())
	if err != nil {
		return nil, err
	}
	layout, err := a.topo.Layout(a.cfg.ApplicationID, counts, a.cfg.Errors.DeadLetterTopic)
	if err != nil {
		return nil, err
	}
	var create []kafka.NewTopic
	for _, t := range layout.Create {
		create = append(create, kafka.NewTopic{Name: t.Name, Partitions: t.Partitions, Config: t.Config})
	}
	if err := cluster.CreateTopics(ctx, create); err != nil {
		return nil, err
	}
	if old := existingChangelogs(layout, counts); len(old) > 0 {
		if err := cluster.CheckChangelogs(old); err != nil { // the right to ask is not needed for anything else
			a.cfg.Logger.Warn("the settings of the changelogs cannot be checked", "error", err)
		}
	}
	return layout, nil
}

// replan places the topology anew after topics have got more partitions. Its internal topics are there, and stay as they
// are: that one of them would have to be wider is an error.
func (a *App) replan(ctx context.Context) ([]kafka.TaskInfo, error) {
	a.mu.Lock()
	cluster := a.cluster
	a.mu.Unlock()
	if cluster == nil {
		return nil, ErrNotRunning
	}
	counts, err := cluster.PartitionCounts(ctx, a.topics())
	if err != nil {
		return nil, err
	}
	layout, err := a.topo.Layout(a.cfg.ApplicationID, counts, a.cfg.Errors.DeadLetterTopic)
	if err != nil {
		return nil, err
	}
	a.running(cluster, layout)
	return taskInfos(layout), nil
}

// existingChangelogs names the changelogs that somebody made before: their settings may be wrong.
func existingChangelogs(layout *topology.Layout, counts map[string]int32) []string {
	var names []string
	for _, changelogs := range layout.Changelogs {
		for _, c := range changelogs {
			if _, existed := counts[c.Topic]; existed {
				names = append(names, c.Topic)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// topics names every topic of the application on the broker.
func (a *App) topics() []string {
	var names []string
	for _, t := range append(a.topo.SourceTopics(), a.topo.SinkTopics()...) {
		names = append(names, t.Physical(a.cfg.ApplicationID))
	}
	for _, g := range a.topo.Globals() {
		names = append(names, g.Topic.Physical(a.cfg.ApplicationID))
	}
	for _, spec := range a.topo.Specs() {
		for _, s := range spec.Stores {
			names = append(names, s.Changelog(a.cfg.ApplicationID))
		}
	}
	if dead := a.cfg.Errors.DeadLetterTopic; dead != "" {
		names = append(names, dead)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func taskInfos(layout *topology.Layout) []kafka.TaskInfo {
	var infos []kafka.TaskInfo
	for _, id := range layout.Tasks {
		info := kafka.TaskInfo{ID: id, Inputs: layout.Inputs[id]}
		for _, c := range layout.Changelogs[id] {
			info.Changelogs = append(info.Changelogs, kafka.Changelog{Store: c.Store, TopicPartition: c.TopicPartition})
		}
		infos = append(infos, info)
	}
	return infos
}
