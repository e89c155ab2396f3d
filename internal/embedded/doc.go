// Package embedded runs a Kafka broker inside the process: the default of the examples and of tests, so that neither
// needs anything but Go. It speaks the Kafka protocol on a loopback port, with groups, transactions and, when it is
// given a directory, a log that outlives the process. It is no broker for production: one node, no replication, no
// compaction, no retention.
//
// The broker is kfake, and this package is the only one that imports it.
//
// # Unclean ends
//
// kfake's files are right after a clean Close. When the process is killed they can be wrong in ways that change results:
// a transaction that was open has no abort marker, so readers of committed data lose the next transaction of the same
// id; a commit that was half written shows some of its records without its offsets, so its input is counted twice; half
// an entry at the end of a state log hides all that follow. So a broker with a directory
//
//   - holds the directory's lock while it runs, and leaves a marker there until it is closed;
//   - notes where all files end before it commits a transaction;
//   - neither compacts nor expires anything, which kfake cannot do safely beside open transactions and kills, and keeps
//     the last record of a partition from DeleteRecords, because the partition's end would be forgotten with it.
//
// A Start that finds the marker repairs the log first: it takes back a commit that was half written, writes the missing
// abort markers, and fences the producers of before. Then all that was acknowledged is there, and nothing else
// (Broker.Repaired). This holds for a process that was killed, not for a machine that went down: then, and when the
// files are not what repair expects, the log is moved aside and a fresh one begins (Broker.Fresh).
//
// One thing is not covered: an idempotent producer without transactions in another process, which outlives the broker
// and sends a batch again that was written but not acknowledged, writes it twice.
//
// # State that belongs to a log
//
// Local state directories hold what was read from, or written to, one log, by offset. When Start has begun a fresh log,
// every state directory that belongs to the old one has to be dropped with it. Broker.LogID names the log for this
// purpose: it stays the same as long as the log does, so state kept under a path that contains it never meets another
// log.
package embedded
