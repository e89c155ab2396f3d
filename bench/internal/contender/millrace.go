package contender

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/millrace-streams/millrace"
	"github.com/millrace-streams/millrace/bench/internal/work"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/bolt"
	"github.com/millrace-streams/millrace/store/memory"
	"github.com/millrace-streams/millrace/topology"
)

// runMillrace does the work with Millrace, defaults everywhere. The first fetch is made when the first task is restored.
func runMillrace(ctx context.Context, j Job, say *Voice) error {
	topo, err := topologyOf(j)
	if err != nil {
		return err
	}
	var opener store.Opener = bolt.Opener{}
	if strings.HasSuffix(j.Contender, "-memory") {
		opener = memory.Opener{}
	}
	guarantee := millrace.ExactlyOnce
	if j.Workload.Guarantee == work.AtLeastOnce {
		guarantee = millrace.AtLeastOnce
	}
	app, err := millrace.New(topo, millrace.Config{
		ApplicationID: j.App, Brokers: j.Brokers, StateDir: j.Dir, Store: opener, Guarantee: guarantee,
		CommitInterval: j.Interval, Workers: j.Threads, Standbys: j.Standbys, Logger: slog.Default(),
		OnRestoring: restoring(say),
		OnRestored: func(r millrace.Restored) {
			say.Say("restored %s-%d %d", r.Store, r.Task.Partition, r.Records)
			say.Running()
		},
	})
	if err != nil {
		return err
	}
	return app.Run(ctx)
}

// topologyOf declares the workload.
func topologyOf(j Job) (*topology.Topology, error) {
	b := topology.NewBuilder()
	in := topology.From(b, topology.NewTopic(j.Workload.Topic, serde.String, serde.String))
	counts := store.NewKeyValue(work.Store, serde.String, serde.Int64)
	out := topology.NewTopic(j.Out, serde.String, serde.Int64)
	switch j.Workload.Kind {
	case work.Count:
		topology.To(topology.Changes(topology.Count(topology.GroupByKey(in), counts)), out)
	case work.Words:
		topology.To(topology.Changes(countWords(j, topology.FlatMapValues(in, strings.Fields), counts)), out)
	case work.Windows:
		windows := topology.Tumbling(work.Window).Grace(work.Grace)
		rows := store.NewWindow(work.Store, serde.String, serde.Int64, windows.Store())
		counted := topology.CountWindows(topology.WindowedBy(topology.GroupByKey(in), windows), rows)
		topology.To(topology.Changes(counted), topology.NewTopic(j.Out, store.TimeWindowed(serde.String, work.Window), serde.Int64))
	case work.Join:
		rows := store.NewKeyValue(work.Store, serde.String, serde.String)
		table := topology.Table(b, topology.NewTopic(j.Workload.Table, serde.String, serde.String), rows)
		joined := topology.JoinTable(in, table, func(_, value, row string) string { return row + "|" + value })
		topology.To(joined, topology.NewTopic(j.Out, serde.String, serde.String))
	default:
		return nil, fmt.Errorf("no workload %q", j.Workload.Kind)
	}
	return b.Build()
}

// countWords counts the words in the tasks that own them, or before that in those that read them too.
func countWords(j Job, words topology.Stream[string, string], counts *store.KeyValue[string, int64]) topology.KTable[string, int64] {
	itself := func(_, word string) string { return word }
	if j.Contender == Combining {
		byWord := topology.NewRepartition(work.Repartition, serde.String, serde.Int64)
		return topology.Combine(topology.PreCount(words, byWord, itself), counts)
	}
	byWord := topology.NewRepartition(work.Repartition, serde.String, serde.String)
	return topology.Count(topology.GroupBy(words, byWord, itself), counts)
}

// restoring tells of each store once that its restore has begun.
func restoring(say *Voice) func(millrace.Restoring) {
	var told sync.Map
	return func(r millrace.Restoring) {
		store := fmt.Sprintf("%s-%d", r.Store, r.Task.Partition)
		if _, again := told.LoadOrStore(store, true); !again {
			say.Say("restoring %s", store)
		}
	}
}
