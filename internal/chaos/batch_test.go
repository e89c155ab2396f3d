package main

import (
	"maps"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/testdriver"
	"github.com/millrace-streams/millrace/topology"
)

// The batch computation and the topology are two ways to the same results, over two rounds.
func TestBatchComputationIsWhatTheTopologyDoes(t *testing.T) {
	t.Parallel()
	app := application{ID: "chaos"}
	topo, err := app.topology(func() {})
	if err != nil {
		t.Fatal(err)
	}
	base := time.UnixMilli(1_700_000_000_000)
	d := testdriver.New(t, topo, testdriver.App(app.ID), testdriver.DefaultPartitions(partitions), testdriver.StartTime(base))
	in := input{users: map[string]string{}}
	send := func(records []fed) {
		for _, r := range records {
			if r.topic == app.rows() {
				in.rows = append(in.rows, r.entry)
			}
			testdriver.Input(d, text(r.topic)).SendTo(r.partition, processor.Record[string, string]{Key: r.Key, Value: r.Value, Timestamp: r.at.UnixMilli(), NullValue: r.Value == ""})
			switch r.topic {
			case app.users():
				in.users[r.Key] = r.Value
			case app.lines():
				in.lines = append(in.lines, r.Value)
			case app.lefts():
				in.lefts = append(in.lefts, timed{r.entry, r.at})
			case app.rights():
				in.rights = append(in.rights, timed{r.entry, r.at})
			}
		}
	}
	w := newWriter(1, base)
	send(w.table(app))
	for range 2 {
		for range 20 {
			send(w.next(app))
		}
		w.nextRound()
	}

	want := compute(in)
	if len(want.joined) < 100 || len(want.named) < 100 || len(want.words) < 100 || len(want.history) < 100 {
		t.Fatalf("the input is too poor: %d pairs, %d names, %d words, %d changes", len(want.joined), len(want.named), len(want.words), len(want.history))
	}
	counts := testdriver.ReadMap(testdriver.Output(d, topology.NewTopic(app.counts(), serde.String, serde.Int64)))
	if !maps.Equal(counts, want.words) {
		t.Errorf("counts: %v", differ(counts, want.words))
	}
	for topic, want := range map[string]map[entry]int{app.joined(): want.joined, app.named(): want.named, app.history(): want.history} {
		got := map[entry]int{}
		for _, r := range testdriver.Output(d, text(topic)).ReadAll() {
			got[entry{r.Key, r.Value}]++
		}
		if diff := differ(got, want); len(diff) > 0 {
			t.Errorf("%s: %v", topic, diff)
		}
	}
}
