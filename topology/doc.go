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
//   - Operators that need a key (Count, Reduce, Aggregate, Table, [JoinTable]) skip a record without one, as the application's
//     processor.ErrorPolicy says, and it is counted. [LeftJoinTable] joins it with nothing.
//   - In windows and sessions the reductions and aggregations ignore tombstones, [CountSessions] and, but for sliding windows,
//     [CountWindows] count them, as Kafka Streams does. Joins of streams drop them.
//   - A nil pointer or nil byte slice that a function of a table returns (as of [MapTableValues], [AggregateTable] or a join
//     of tables) is no value: the row is deleted. In [GroupTableBy] it puts the row into no group.
//
// # Changes of tables
//
// A table forwards the change of a row once per commit, with the row's newest value, as Kafka Streams' cache does. With
// [CachingDisabled], or when the task asks for it (processor.Options.EveryUpdate), it forwards each update at once, even the
// deletion of a row that it has not.
//
// # Tables of tables
//
// [FilterTable], [MapTableValues], [TransformTable] and the joins of tables compute their rows from those of other tables,
// again whenever they are looked up, unless [Materialized] gives them a store. Whoever must know the value before a change,
// such as an aggregation of a grouped table, makes the tables above tell it. The result of [JoinForeign] cannot tell it
// without a store.
//
// A join of tables sees changes that are held back when they are forwarded, not before, so that every change of a joined
// table begins where the last one has ended, and sums over it are right.
//
// # Windows and time
//
// [WindowedBy] and [SessionsBy] put the records of a grouped stream into windows of event time, whose tables have keys of type
// store.Windowed. Each aggregation, each [Suppress] and each join of streams goes by the highest timestamp that it has seen in
// its task, which is Kafka Streams' observed stream time; here it survives restarts, in the metadata of committed positions. A
// record is used for those of its windows that this time has not passed by more than the grace. What comes later is told to
// millrace.Config.OnLate, counted, and a stream of its own ([LateRecords]).
//
// Results are forwarded as those of other tables, or once when a window is closed: with [EmitOnClose], which writes nothing
// but the rows, or with [Suppress], whose buffer also serves other tables. Only a record moves stream time, so in silence
// nothing is closed, unless [WallClockClose] says so. A single record dated years ahead closes everything; [Topic.WithMaxAhead]
// guards against it.
//
// The stores of windows have to keep their rows for as long as the windows may need them; the windows say how long
// ([TimeWindows.Store] and its like), and Build checks it.
//
// # Partitions
//
// What meets in a store or a join must be partitioned alike: [Topology.Layout] refuses topics with different counts, and
// operators that need the key refuse a stream whose key may have changed since its topic, until [Through] has moved its
// records, or [KeyUnchanged] says that there is no need. That two topics of one count are partitioned by the same function is
// not checked: mind it where a producer chooses partitions itself. [JoinForeign] works across counts and functions
// ([ForeignKey.PartitionedBy]), [JoinGlobal] needs no partitioning at all.
//
// # Sub-topologies
//
// Nodes that are connected by edges or by a store form a sub-topology, which runs as one task per input partition. A
// repartition topic cuts. [Topology.Layout] computes tasks, their inputs and changelogs, and the internal topics.
package topology
