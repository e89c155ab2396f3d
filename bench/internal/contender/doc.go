// Package contender holds who does the work. Each run of one is a process of its own: this program again for those in Go, which
// [Child] turns into the contender, and the Java program in bench/peer for Kafka Streams.
//
// A process says how far it is on standard output, a line each:
//
//	running                       the first records are being fetched
//	restoring PARTITION           a changelog partition is being restored, as in Kafka Streams
//	restored PARTITION RECORDS    and has been
//	consumed                      all input was read; only of who commits nothing
//	allocated OBJECTS             on the heap since running; the last line, only of Go programs
//
// It ends in order when its standard input does.
package contender
