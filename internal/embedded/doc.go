// Package embedded runs a Kafka broker inside the process: the default of the examples and of tests, so that neither
// needs anything but Go. It speaks the Kafka protocol on a loopback port, with groups, transactions and, when it is
// given a directory, a log that outlives the process. It is no broker for production: one node, no replication, no
// compaction, no retention.
//
// The broker is kfake, and this package is the only one that imports it. What kfake keeps is right after a clean Close.
// After an unclean end (kill -9, a panic, power loss) its files can be wrong in ways that change results: a
// transaction that was open has no abort marker, so readers of committed data may lose the next transaction of the same
// id; and a commit that was half written shows some of its records without its offsets, so its input would be counted
// twice. Start therefore never opens a log that was not closed: it moves it aside and starts a fresh one.
//
// # State that belongs to a log
//
// Local state directories hold what was read from, or written to, one log, by offset. When Start has begun a fresh log
// (Broker.Fresh), every state directory that belongs to the old one has to be dropped with it. Broker.LogID names the
// log for this purpose: it stays the same as long as the log does, so state kept under a path that contains it never
// meets another log.
package embedded
