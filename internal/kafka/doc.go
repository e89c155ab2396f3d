// Package kafka joins the runtime to a Kafka cluster. It is the only package that speaks the protocol, and it does so with
// sarama as codec, connection and metadata cache; how data is read and written is decided here.
//
// A [Cluster] has
//
//   - one fetcher: two goroutines per leader read for all workers, read committed, whole batches, positions past control
//     records (fetcher.go, fetchloop.go, decode.go);
//   - one membership in the consumer group, whose partitions are leases of whole tasks and are never read through the
//     group itself (group.go, lease.go, strategy.go, grant.go);
//   - one committer per worker, which makes the calls that package eos asks for (committer.go, transaction.go, produce.go,
//     batch.go) and says what the answers mean (verdict.go).
//
// Connections. A broker answers the requests of one connection one after the other, so what waits must not stand before
// what is urgent: fetches (long polls), joining the group (waits for the others) and commits have connections of their own.
//
// Order. A worker's producer has at most one batch per partition in flight, and repeats it with the same sequence number
// until it is acknowledged. So batches cannot overtake one another.
//
// A lease is granted after the transactions of the task's former owner are decided: its committed positions are asked for
// as stable ones, and only then the ends of its changelogs.
package kafka
