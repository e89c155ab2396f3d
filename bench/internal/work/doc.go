// Package work says what the benchmark's workloads are: their inputs, which come from fixed seeds, and the tables that are
// right for them.
package work
