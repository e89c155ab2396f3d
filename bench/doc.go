// Command bench measures Millrace beside others that do the same work: Kafka Streams, a plain loop on the same calls of the Kafka
// client, and a loop in the manner of most applications on sarama.
//
//	go run ./bench -brokers 127.0.0.1:9092             throughput, restore and latency
//	go run ./bench recovery -brokers 127.0.0.1:9092    kills and restarts
//	go run ./bench model -partitions 200 -keys 1e8     what a cluster costs, calculated and simulated: no broker
//	go run ./bench -list                               what there is
//
// It loads its input topics once, then runs each contender several times, in turn, each run in a process of its own with topics
// and an application id of its own. A run counts only if its output, read as committed, is what the input says; a wrong one
// has no figure. Without Java only the contenders in Go run, and it says so.
//
// All contenders are watched from outside, in the same way: time runs from the moment they say that they fetch the first records
// until the group has committed all input, which is asked every 10 ms. CPU seconds are those of the whole process, start and end
// included; peak memory is the process's largest resident set.
//
// The parts: internal/work has the workloads, their inputs and the right outputs; internal/wire talks to brokers;
// internal/contender does the work, in child processes; internal/measure starts and watches those; internal/report writes the
// figures down; internal/model calculates; peer is Kafka Streams, in Java.
package main
