// Package millrace runs stateful stream processing applications on Kafka, inside your own service.
//
// An application is a topology (package topology) of typed operators over topics. Each keyed store (package store) lives
// in memory or in a local file and mirrors its writes to a compacted changelog topic, from which it is restored. Under
// exactly-once, one Kafka transaction holds the output records, the changelog writes and the input positions.
//
//	lines := topology.From(b, Lines)
//	words := topology.FlatMapValues(lines, strings.Fields)
//	byWord := topology.GroupBy(words, ByWord, func(_, w string) string { return w })
//	topology.To(topology.Changes(topology.Count(byWord, Counts)), WordCounts)
//	topo, err := b.Build()
//	...
//	app, err := millrace.New(topo, millrace.Config{ApplicationID: "wordcount", Brokers: []string{"localhost:9092"}})
//	...
//	err = app.Run(ctx)
//
// Run blocks until ctx ends; then it commits what is done, leaves the group and returns nil. Start more processes with
// the same application id, each with a state directory of its own, and they share the partitions.
//
// What is committed of the stores can be read from any goroutine meanwhile, as in Counts.Query(app).Get("word"); see package
// store.
//
// Topologies are tested without Kafka by package testdriver, which runs the same loop.
package millrace
