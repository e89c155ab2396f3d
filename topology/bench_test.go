package topology_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// commitEvery is how many records a task processes between two commits.
const commitEvery = 10_000

// benchmarkTask gives the first task of a topology that many records of "in" and commits, again and again: one operation is a
// commit and the steps before it.
func benchmarkTask(b *testing.B, tb *topology.Builder, record func(i int) processor.Raw) {
	r := start(tb, processor.Options{}, nil)
	id, tp := processor.TaskID{}, processor.TopicPartition{Topic: "in"}
	task := r.tasks[id]
	batch := make([]processor.Raw, commitEvery)
	b.ReportAllocs()
	for n := 0; b.Loop(); n += len(batch) {
		for i := range batch {
			batch[i] = record(n + i)
			batch[i].Offset = int64(n + i)
		}
		task.Enqueue(tp, batch, int64(n+len(batch)), 1, false)
		must(task.Run(0, len(batch)))
		var c processor.Commit
		must(0, task.Prepare(&c))
		for _, l := range r.stores[id] {
			l.Committed(-1)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/commitEvery, "ns/record")
}

// byKey returns records of so many keys, a millisecond apart.
func byKey(keys int, value string) func(int) processor.Raw {
	names := make([][]byte, keys)
	for i := range names {
		names[i] = fmt.Appendf(nil, "key-%07d", i)
	}
	return func(i int) processor.Raw {
		return processor.Raw{Key: names[i*7919%keys], Value: []byte(value), Timestamp: int64(i)}
	}
}

// BenchmarkMap is a step without a store.
func BenchmarkMap(b *testing.B) {
	tb := topology.NewBuilder()
	topology.To(topology.MapValues(topology.From(tb, in), strings.ToUpper), out)
	benchmarkTask(b, tb, byKey(1000, "some value"))
}

// BenchmarkCount counts and writes the changes.
func BenchmarkCount(b *testing.B) {
	for _, keys := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			tb := topology.NewBuilder()
			topology.To(topology.Changes(topology.Count(topology.GroupByKey(topology.From(tb, in)), counts)), totals)
			benchmarkTask(b, tb, byKey(keys, "v"))
		})
	}
}

// BenchmarkSplit is the first half of a word count: five words of each line go to a repartition topic.
func BenchmarkSplit(b *testing.B) {
	byWord := topology.NewRepartition("by-word", serde.String, serde.String)
	tb := topology.NewBuilder()
	words := topology.FlatMapValues(topology.From(tb, in), strings.Fields)
	topology.Count(topology.GroupBy(words, byWord, func(_, word string) string { return word }), counts)
	benchmarkTask(b, tb, byKey(1000, "the quick brown fox jumps"))
}

// BenchmarkJoinTable joins a stream with a table of which every tenth record changes a row.
func BenchmarkJoinTable(b *testing.B) {
	rows := store.NewKeyValue("rows", serde.String, serde.String)
	tb := topology.NewBuilder()
	stream := topology.From(tb, in)
	table := topology.ToTable(topology.Filter(stream, func(_, value string) bool { return value == "row" }), rows)
	topology.To(topology.JoinTable(stream, table, func(_, value, row string) string { return row + value }), out)
	next := byKey(10_000, "v")
	benchmarkTask(b, tb, func(i int) processor.Raw {
		r := next(i)
		if i%10 == 0 {
			r.Value = []byte("row")
		}
		return r
	})
}

// BenchmarkCountWindows is BenchmarkCount in tumbling windows of a minute, with time going on.
func BenchmarkCountWindows(b *testing.B) {
	minute := topology.Tumbling(time.Minute)
	perMinute := topology.NewTopic("per-minute", store.TimeWindowed(serde.String, time.Minute), serde.Int64)
	tb := topology.NewBuilder()
	w := topology.WindowedBy(topology.GroupByKey(topology.From(tb, in)), minute)
	topology.To(topology.Changes(topology.CountWindows(w, store.NewWindow("windows", serde.String, serde.Int64, minute.Store()))), perMinute)
	benchmarkTask(b, tb, byKey(1000, "v"))
}
