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
	topo     *topology.Topology
	cfg      Config
	once     sync.Once
	stores   *runtime.Stores // that are open
	restores *runtime.Restores

	offsets *statedir.Offsets // of the stores on disk

	mu      sync.Mutex
	cluster *kafka.Cluster   // while it runs
	placed  *topology.Layout // likewise
	crew    *crew            // likewise
	size    int              // how many workers it is to have
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
	return &App{
		topo: topo, cfg: cfg, size: cfg.Workers,
		stores: runtime.NewStores(topo.Specs(), topo.Globals()), restores: runtime.NewRestores(cfg.RestoreBytes),
	}, nil
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
	for {
		err = a.serve(ctx, dir.ProcessID)
		var changed *kafka.TopicChangedError
		if !errors.As(err, &changed) {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		a.cfg.Logger.Info("a topic has changed: beginning again on what the topics are now", "app", a.cfg.ApplicationID, "change", changed)
	}
}

// serve runs the application on the topics as they are now, until ctx ends or one of them changes.
func (a *App) serve(ctx context.Context, processID string) (err error) {
	cluster, err := a.connect(ctx, processID)
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

func (a *App) connect(ctx context.Context, processID string) (*kafka.Cluster, error) {
	a.cfg.Logger.Info("connecting", "app", a.cfg.ApplicationID, "brokers", a.cfg.Brokers)
	bounded, cancel := context.WithTimeoutCause(ctx, connectTimeout, fmt.Errorf("no broker has answered within %v", connectTimeout))
	defer cancel()
	cluster, err := kafka.Open(bounded, a.kafkaConfig(processID))
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
	retention := a.deleteRetentions(cluster, layout)
	ports, err := cluster.Start(serving, a.taskInfos(layout))
	if err != nil {
		return fmt.Errorf("millrace: join the group: %w", err)
	}
	cluster.Watch(serving, layout.Partitions, stop)

	a.cfg.Logger.Info("running", "app", a.cfg.ApplicationID, "guarantee", a.cfg.Guarantee.String(), "tasks", len(layout.Tasks), "workers", len(ports))
	cfg := a.workerConfig(layout, globals)
	cfg.DeleteRetention = retention
	c := a.newCrew(cfg, ports, globals)
	a.staffed(c)
	defer a.staffed(nil)
	err = c.work(serving, stop)
	if cause := context.Cause(serving); err == nil && ctx.Err() == nil && cause != nil { // no worker's fault
		err = cause
	}
	if err != nil {
		return fmt.Errorf("millrace: stopped: %w", err)
	}
	a.cfg.Logger.Info("stopped", "app", a.cfg.ApplicationID)
	return nil
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
	if err := cluster.CreateTopics(ctx, newTopics(layout.Create)); err != nil {
		return nil, err
	}
	if err := cluster.CheckSettings(newTopics(layout.Existing)); err != nil { // the right to ask is not needed for anything else
		a.cfg.Logger.Warn("the settings of the application's topics cannot be checked", "error", err)
	}
	return layout, nil
}

func newTopics(topics []topology.InternalTopic) []kafka.NewTopic {
	var all []kafka.NewTopic
	for _, t := range topics {
		all = append(all, kafka.NewTopic{Name: t.Name, Partitions: t.Partitions, Config: t.Config})
	}
	return all
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

func (a *App) taskInfos(layout *topology.Layout) []kafka.TaskInfo {
	specs := a.topo.Specs()
	var infos []kafka.TaskInfo
	for _, id := range layout.Tasks {
		info := kafka.TaskInfo{ID: id, Inputs: layout.Inputs[id]}
		for _, source := range specs[id.Subtopology].Sources() {
			if source.Topic.Internal {
				info.Repartition = append(info.Repartition, source.Topic.Physical(a.cfg.ApplicationID))
			}
		}
		for _, c := range layout.Changelogs[id] {
			info.Changelogs = append(info.Changelogs, kafka.Changelog{Store: c.Store, TopicPartition: c.TopicPartition})
		}
		infos = append(infos, info)
	}
	return infos
}
