package millrace

import (
	"time"

	"github.com/millrace-streams/millrace/internal/kafka"
	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/internal/statedir"
	"github.com/millrace-streams/millrace/topology"
)

// drainShare is the part of the commit interval that must pass between two commits for which a drained input is the only
// reason: low latency at low load, without a transaction per record.
const drainShare = 10

func (a *App) kafkaConfig(dir *statedir.Dir) kafka.Config {
	c := a.cfg
	cfg := kafka.Config{
		App: c.ApplicationID, Brokers: c.Brokers, Configure: c.Configure, Guarantee: c.Guarantee, ProcessID: dir.ProcessID,
		Workers: c.Workers, SessionTimeout: c.SessionTimeout, TransactionTimeout: c.TransactionTimeout,
		OffsetReset: kafka.OffsetReset(c.OffsetReset), Compression: c.Compression, Logger: c.Logger,
		Replan:   a.replan,
		Standbys: c.Standbys, Rack: c.Rack, MaxWarmups: c.MaxWarmups, AcceptableLag: c.AcceptableLag,
	}
	if c.Store.Durable() {
		cfg.Stored = a.offsets.Of
	}
	return cfg
}

func (a *App) workerConfig(layout *topology.Layout, globals *runtime.Globals) runtime.Config {
	c := a.cfg
	cfg := runtime.Config{
		App: c.ApplicationID, Specs: a.topo.Specs(), Partitions: layout.Partitions, Policy: c.Errors, MaxIdle: c.MaxTaskIdle, MaxRecord: c.MaxRecordBytes,
		Opener: c.Store, StateDir: c.StateDir, Globals: globals.Rows(),
		CommitInterval: c.CommitInterval, DrainInterval: c.CommitInterval / drainShare, StagedBytes: c.StagedBytes,
		FlushBytes: c.FlushBytes, FlushInterval: c.FlushInterval,
		Now: time.Now, Logger: c.Logger, Dropped: c.OnDropped, Kept: a.offsets.Keep,
	}
	if c.OnRestored != nil {
		cfg.Restored = func(r runtime.Restored) { c.OnRestored(Restored(r)) }
	}
	return cfg
}
