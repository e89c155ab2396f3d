// Package testdriver runs a topology without Kafka: the same loop, tasks and stores as in the application, over topics in
// memory and a clock that the test moves.
//
//	d := testdriver.New(t, topo)
//	lines := testdriver.Input(d, Lines)
//	counts := testdriver.Output(d, WordCounts)
//
//	lines.Send("", "a b a")
//	got := testdriver.ReadMap(counts) // map[a:2 b:1]
//
// Sending processes to the end: the record, what it causes behind repartition topics, and the commits. So an output can
// be read as soon as Send has returned; outputs are read committed. Tables forward every update, unless the driver was
// made with [Cached]. With [Manual] nothing runs until [Driver.Turn] or [Driver.Settle].
//
// Everything is deterministic: the same calls give the same records, in the same order, with the same timestamps. The
// clock is fixed; it starts at 1970-01-01 UTC and moves with [Driver.Advance], which fires wall-clock punctuations. A
// record gets the clock's time as its timestamp unless it brings its own.
//
// Topics have one partition unless [Partitions] or [DefaultPartitions] says otherwise, and are made as the topology names
// them. Records go to the partition that Kafka's Java client would choose for their key.
//
// # Crashes
//
// [Driver.CrashAt] makes the process die at one point of the loop, as kill -9 does, and [Driver.Restart] brings it back,
// with its local state or without. What a test then reads tells whether it relies on anything that is not committed.
//
// # Failures
//
// A record that the error policy does not let pass fails the test, as does a wrong use of the driver: a topic that the
// topology does not have, a key that cannot be encoded. With [ExpectErrors], or without a test ([Open]), [Driver.Err]
// returns the error instead.
//
// A driver is used from one goroutine.
package testdriver
