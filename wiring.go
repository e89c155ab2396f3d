package millrace

import (
	"maps"
	"slices"
	"time"

	"github.com/millrace-streams/millrace/internal/kafka"
	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/topology"
)

// drainShare is the part of the commit interval that must pass between two commits for which a drained input is the only
// reason: low latency at low load, without a transaction per record.
const drainShare = 10

func (a *App) kafkaConfig(processID string) kafka.Config {
	c := a.cfg
	cfg := kafka.Config{
		App: c.ApplicationID, Brokers: c.Brokers, Configure: c.Configure, Guarantee: c.Guarantee, ProcessID: processID,
		Workers: a.workers(), SessionTimeout: c.SessionTimeout, TransactionTimeout: c.TransactionTimeout, PurgeInterval: c.PurgeInterval,
		OffsetReset: kafka.OffsetReset(c.OffsetReset), LostInput: c.LostInput, LostState: c.LostState, Lost: c.OnLoss, Compression: c.Compression, Logger: c.Logger,
		Standbys: c.Standbys, Rack: c.Rack, MaxWarmups: c.MaxWarmups, AcceptableLag: c.AcceptableLag,
	}
	if a.offsets != nil && c.Store.Durable() {
		cfg.Stored = a.offsets.Of
	}
	return cfg
}

// deleteRetentions returns how long the changelogs of stores on disk keep tombstones.
func (a *App) deleteRetentions(cluster *kafka.Cluster, layout *topology.Layout) map[string]time.Duration {
	if !a.cfg.Store.Durable() {
		return nil
	}
	topics := map[string]bool{}
	for _, logs := range layout.Changelogs {
		for _, c := range logs {
			topics[c.Topic] = true
		}
	}
	all, err := cluster.DeleteRetentions(slices.Sorted(maps.Keys(topics)))
	if err != nil {
		a.cfg.Logger.Warn("the settings of the changelogs cannot be had: taking delete.retention.ms to be a day", "error", err)
	}
	return all
}

func (a *App) workerConfig(layout *topology.Layout, globals *runtime.Globals) runtime.Config {
	c := a.cfg
	cfg := runtime.Config{
		App: c.ApplicationID, Specs: a.topo.Specs(), Partitions: layout.Partitions, Policy: c.Errors, EveryUpdate: c.CachingDisabled,
		MaxIdle: c.MaxTaskIdle, MaxRecord: c.MaxRecordBytes, LostState: c.LostState == EmptyLostState,
		Opener: c.Store, StateDir: c.StateDir, Globals: globals.Rows(), Stores: a.stores,
		CommitInterval: c.CommitInterval, DrainInterval: c.CommitInterval / drainShare, StagedBytes: c.StagedBytes,
		FlushBytes: c.FlushBytes, FlushInterval: c.FlushInterval, Restores: a.restores,
		Now: time.Now, Logger: c.Logger, Dropped: c.OnDropped, Late: c.OnLate, Kept: a.offsets.Keep,
	}
	if c.OnRestoring != nil {
		cfg.Restoring = func(r runtime.Restore) { c.OnRestoring(Restoring(r)) }
	}
	if c.OnRestored != nil {
		cfg.Restored = func(r runtime.Restored) { c.OnRestored(Restored(r)) }
	}
	return cfg
}
