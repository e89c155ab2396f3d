package main

import (
	"context"
	"time"
)

// contender is somebody who can do the work.
type contender struct {
	name string
	// tables tells that it writes the counts to the output topic.
	tables bool
	run    func(context.Context, job) (span, error)
}

// contenders are run in this order. plain is what the others are compared with.
var contenders = []contender{
	{name: "read", run: readOnly},
	{name: plainName, tables: true, run: runPlain},
	{name: "millrace", tables: true, run: runMillrace},
	{name: "millrace-memory", tables: true, run: runMillrace},
}

const plainName = "plain"

// job is one run, handed to a child process as JSON.
type job struct {
	Workload  workload
	Contender string
	Brokers   []string
	App       string // unique to the run: application id, group, prefix of topics
	Out       string // the output topic; it exists
	Interval  time.Duration
	Dir       string // an empty folder for local state
	Profile   string // file for a CPU profile, "" for none
}

// span is the part of a run that counts.
type span struct{ began, ended mark }

// internalTopics are the topics that a run makes beside its output.
func (j job) internalTopics() []string {
	topics := []string{j.App + "-" + countsName + "-changelog"}
	if j.Workload.Kind == wordCount {
		topics = append(topics, j.App+"-"+byWordName+"-repartition")
	}
	return topics
}

// Names that all contenders give to their internal topics.
const (
	countsName = "counts"
	byWordName = "by-word"
)
