// Package wire holds what the benchmark says to brokers: topics, inputs, positions, and the calls of the client that the plain
// loop is made of. It gives up at errors that a run on a quiet broker does not meet.
package wire
