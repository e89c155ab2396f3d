// Package processor is the pure heart of Millrace: records, the graph of nodes that a task runs, and the task itself.
//
// A [Task] owns one partition of one sub-topology. It is a state machine without goroutine, clock, file or socket: the
// caller hands it fetched records with [Task.Enqueue], lets it work with [Task.Run], and takes from [Task.Prepare] a
// [Commit], the one struct that names everything which must become durable together: input positions, output records
// and the write sets of the stores. What happens to a Commit is the caller's business (package eos and the runtime).
//
// A step is one record, or one due punctuation, from end to end. It happens wholly or not at all: when a node fails,
// whatever the step wrote to stores, outputs and held-back table changes is undone before the [ErrorPolicy] decides.
// What a user's processor keeps in its own fields, and the punctuations that it scheduled or cancelled, are not undone.
//
// Nulls. Kafka knows null keys and null values; Go values do not. A [Record] says so in NullKey and NullValue, and then
// the field itself is the zero value. Operators never hand a null value to a user's function; see package topology.
package processor
