package contender

import (
	"context"
	"slices"
	"time"

	"github.com/millrace-streams/millrace/bench/internal/work"
)

// Job is one run of one process, handed to it as JSON.
type Job struct {
	Workload  work.Workload
	Contender string
	Brokers   []string
	App       string // unique to the run: application id, group, prefix of topics
	Out       string // the output topic; it exists
	Interval  time.Duration
	Threads   int
	Dir       string // the folder for local state
	Instance  string // name of the process among those of the application
	Standbys  int
	Profile   string // files for profiles begin so; "" for none
}

// Contender is somebody who can do work.
type Contender struct {
	Name  string
	About string
	// Can tells whether it can do a workload and is to be run on it.
	Can func(work.Workload) bool
	// run does a job in this process until ctx ends; nil for Kafka Streams.
	run func(ctx context.Context, j Job, say *Voice) error
	// settings are those of Kafka Streams that are not defaults.
	settings func(Job) []string
	// Silent is who writes no output that could be checked.
	Silent bool
}

// Names of contenders that others are compared with.
const (
	Plain        = "plain"
	Combining    = "millrace-combining"
	KafkaStreams = "kafka-streams"
)

// All are the contenders, in the order in which they run.
var All = []Contender{
	{Name: "read", About: "reads the input and does nothing", Can: counts, run: readOnly, Silent: true},
	{Name: Plain, About: "a loop on the client's plain calls: fetch, count in Go maps, commit", Can: throughput, run: runPlain},
	{Name: "async", About: "a loop on sarama's AsyncProducer and ConsumerGroup, every change written", Can: slow, run: runAsync},
	{Name: "millrace", About: "Millrace, stores in bbolt", Can: always, run: runMillrace},
	{Name: "millrace-memory", About: "Millrace, stores in memory", Can: memoryCan, run: runMillrace},
	{Name: Combining, About: "Millrace, stores in bbolt, words counted before the repartition topic too", Can: words, run: runMillrace},
	{Name: KafkaStreams, About: "Kafka Streams, RocksDB, default cache", Can: always},
	{Name: "kafka-streams-nocache", About: "Kafka Streams, RocksDB, cache off", Can: slow, settings: cacheOff},
	{Name: "kafka-streams-tuned", About: "Kafka Streams set up to recover fast: static members, 10 s session, transactional stores", Can: recovers, settings: tuned},
}

// Find returns the contender of a name.
func Find(name string) (c Contender, ok bool) {
	i := slices.IndexFunc(All, func(c Contender) bool { return c.Name == name })
	if i < 0 {
		return c, false
	}
	return All[i], true
}

// Java tells whether it runs in Java.
func (c Contender) Java() bool { return c.run == nil }

func always(work.Workload) bool { return true }

func throughput(w work.Workload) bool { return w.Measure == work.Throughput }

// counts picks those that differ only in their keys.
func counts(w work.Workload) bool {
	return w.Kind == work.Count && w.Measure == work.Throughput && w.Guarantee == work.ExactlyOnce && w.Value == 100 && w.Partitions == 4
}

// memoryCan leaves out the recoveries: without files everything is replayed, which restores show.
func memoryCan(w work.Workload) bool { return !w.Measure.Recovery() }

// slow leaves out the largest of the counts.
func slow(w work.Workload) bool { return counts(w) && w.Distinct <= 100_000 }

func words(w work.Workload) bool { return w.Kind == work.Words && w.Guarantee == work.ExactlyOnce }

func recovers(w work.Workload) bool { return w.Measure.Recovery() }
