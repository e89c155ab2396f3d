package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/millrace-streams/millrace"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/bolt"
	"github.com/millrace-streams/millrace/store/memory"
	"github.com/millrace-streams/millrace/topology"
)

var (
	counts = store.NewKeyValue(countsName, serde.String, serde.Int64)
	byWord = topology.NewRepartition(byWordName, serde.String, serde.String)
)

// poll is how often the lag is looked at: a run's end is known no better than that.
const poll = 20 * time.Millisecond

// runMillrace does the work with Millrace. It has begun when the first task is restored, since that is when the first
// fetch is made, and has ended when the group has no lag.
func runMillrace(ctx context.Context, j job) (s span, err error) {
	topo, err := topologyOf(j)
	if err != nil {
		return s, err
	}
	var opener store.Opener = bolt.Opener{}
	if strings.HasSuffix(j.Contender, "-memory") {
		opener = memory.Opener{}
	}
	began := make(chan mark, 1)
	var once sync.Once
	app, err := millrace.New(topo, millrace.Config{
		ApplicationID: j.App, Brokers: j.Brokers, StateDir: j.Dir, Store: opener, CommitInterval: j.Interval,
		OnRestored: func(millrace.Restored) { once.Do(func() { began <- now() }) },
	})
	if err != nil {
		return s, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx) }()

	select {
	case s.began = <-began:
	case err := <-ended:
		return s, errors.Join(errors.New("the application ended early"), err)
	}
	if err := drained(ctx, app); err != nil {
		stop()
		return s, errors.Join(err, <-ended)
	}
	s.ended = now()
	stop()
	return s, <-ended
}

// topologyOf declares the workload.
func topologyOf(j job) (*topology.Topology, error) {
	b := topology.NewBuilder()
	var grouped topology.Grouped[string, string]
	if j.Workload.Kind == wordCount {
		lines := topology.From(b, topology.NewTopic(j.Workload.Topic, serde.String, serde.String))
		words := topology.FlatMapValues(lines, strings.Fields)
		grouped = topology.GroupBy(words, byWord, func(_, word string) string { return word })
	} else {
		grouped = topology.GroupByKey(topology.From(b, topology.NewTopic(j.Workload.Topic, serde.String, serde.String)))
	}
	topology.To(topology.Changes(topology.Count(grouped, counts)), topology.NewTopic(j.Out, serde.String, serde.Int64))
	return b.Build()
}

// drained waits until all input is committed.
func drained(ctx context.Context, app *millrace.App) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		lag, err := app.Lag(ctx)
		if lag == 0 || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
