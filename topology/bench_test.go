package topology_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// BenchmarkCount counts 1,000 keys and writes the changes, with a commit every 10,000 records.
func BenchmarkCount(b *testing.B) {
	tb := topology.NewBuilder()
	topology.To(topology.Changes(topology.Count(topology.GroupByKey(topology.From(tb, in)), counts)), totals)
	r := start(tb, processor.Options{}, nil)
	task, tp := r.tasks[processor.TaskID{}], processor.TopicPartition{Topic: "in"}
	batch := make([]processor.Raw, 10_000)
	for i := range batch {
		batch[i] = processor.Raw{Key: fmt.Appendf(nil, "key-%d", i*7919%1000), Value: []byte("v"), Timestamp: 1, Offset: int64(i)}
	}
	b.ReportAllocs()
	for n := 0; n < b.N; n += len(batch) {
		task.Enqueue(tp, batch, int64(len(batch)), 1, false)
		must(task.Run(0, len(batch)))
		must(0, r.commit(processor.TaskID{}, task))
		clear(r.out)
	}
}

// BenchmarkCountWindows is BenchmarkCount in tumbling windows of a minute, with time going on.
func BenchmarkCountWindows(b *testing.B) {
	minute := topology.Tumbling(time.Minute)
	perMinute := topology.NewTopic("per-minute", store.TimeWindowed(serde.String, time.Minute), serde.Int64)
	tb := topology.NewBuilder()
	w := topology.WindowedBy(topology.GroupByKey(topology.From(tb, in)), minute)
	topology.To(topology.Changes(topology.CountWindows(w, store.NewWindow("windows", serde.String, serde.Int64, minute.Store()))), perMinute)
	r := start(tb, processor.Options{}, nil)
	task, tp := r.tasks[processor.TaskID{}], processor.TopicPartition{Topic: "in"}
	batch := make([]processor.Raw, 10_000)
	b.ReportAllocs()
	for n := 0; n < b.N; n += len(batch) {
		for i := range batch {
			batch[i] = processor.Raw{Key: fmt.Appendf(nil, "key-%d", i*7919%1000), Value: []byte("v"), Timestamp: int64(n+i) * 3, Offset: int64(i)}
		}
		task.Enqueue(tp, batch, int64(len(batch)), 1, false)
		must(task.Run(0, len(batch)))
		must(0, r.commit(processor.TaskID{}, task))
		clear(r.out)
	}
}
