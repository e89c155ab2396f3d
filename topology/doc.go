// Package topology declares what an application does with its topics: typed functions on typed handles build a graph of
// nodes, and [Builder.Build] turns the graph into sub-topologies that tasks run.
//
//	var (
//		Lines  = topology.NewTopic("lines", serde.String, serde.String)
//		ByWord = topology.NewRepartition("by-word", serde.String, serde.String)
//		Counts = store.NewKeyValue("counts", serde.String, serde.Int64)
//		Totals = topology.NewTopic("word-counts", serde.String, serde.Int64)
//	)
//
//	b := topology.NewBuilder()
//	words := topology.FlatMapValues(topology.From(b, Lines), strings.Fields)
//	byWord := topology.GroupBy(words, ByWord, func(_, word string) string { return word })
//	topology.To(topology.Changes(topology.Count(byWord, Counts)), Totals)
//	top, err := b.Build()
//
// # Handles
//
// A [Stream] is a sequence of records, a [KTable] the latest value per key, a [Grouped] a stream whose records of one key
// are all in one task. Handles are small values that may be used any number of times. Types are checked by the compiler
// and erased once, when the graph is bound to a task; per record there is no reflection and no boxing.
//
// # Names
//
// A node is named after its parent and its operator ("lines.flatmapvalues"), a source after its topic, a processor as its
// declaration says, and any of them as [Named] says. No name comes from a counter, so that inserting an operator renames
// nothing that is durable: topics and stores always carry the names that the application gave them. Two nodes of one name
// are a mistake that Build reports.
//
// # Mistakes
//
// Operators return no error. The builder collects every mistake, and Build returns all of them joined, each a
// [*BuildError] with the file and line of the call.
//
// # Nulls
//
// A Kafka record may lack its key, its value, or both. A source passes both cases on, as Record.NullKey and
// Record.NullValue; the latter is called a tombstone. Then:
//
//   - A function that takes a value is never called with a null value. [MapValues], [Filter] and [Peek] pass a tombstone on
//     unchanged, [Split] passes it to every branch (any of them may have seen a value of the key), [Map], [FlatMap],
//     [FlatMapValues], [SelectKey] and [GroupBy] drop it, for they cannot know what it would become.
//   - [Count], [Reduce] and [Aggregate] ignore tombstones; [Table] deletes the row; [Process] and [To] see them. The one
//     exception is [WithPartitioner], whose function must place every record and gets zero values for nulls.
//   - A function that takes a key gets the zero key when there is none. MapValues, Filter, Peek, Split, FlatMapValues,
//     [Merge] and [Through] keep the key null; To writes a null key.
//   - Operators that need a key (Count, Reduce, Aggregate, Table) skip a record without one, as the application's
//     processor.ErrorPolicy says, and it is counted.
//
// # Changes of tables
//
// A table forwards the change of a row once per commit, with the row's newest value, as Kafka Streams' cache does. With
// [CachingDisabled], or when the task asks for it (processor.Options.EveryUpdate), it forwards each update at once.
//
// # Sub-topologies
//
// Nodes that are connected by edges or by a store form a sub-topology, which runs as one task per input partition. A
// repartition topic cuts. [Topology.Layout] computes tasks, their inputs and changelogs, and the internal topics.
package topology
