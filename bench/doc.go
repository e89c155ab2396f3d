// Command bench measures Millrace beside a plain loop that does the same work on the same calls of the Kafka client.
//
//	go run ./bench -brokers 127.0.0.1:9092
//
// It loads its input topics once, then runs each contender several times, in turn, each run in a process of its own with
// topics and an application id of its own. A run counts only if the last value of every key in its output topic, read as
// committed, is what the input says; a wrong table has no figure.
//
// Contenders:
//
//	read             reads the input and does nothing: what the client and the broker allow
//	plain            fetches batches, counts in Go maps, and every 100 ms makes one transaction
//	millrace         the same topology in Millrace, exactly once, bbolt stores
//	millrace-memory  the same with memory stores
//
// Time runs from the first fetch to the last commit. CPU seconds are those of the whole process, start and end included;
// peak memory is the process's largest resident set. Allocations per record are those between first fetch and last commit.
//
// Another contender is another entry of contenders, another workload another entry of workloads.
package main
