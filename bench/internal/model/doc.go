// Package model says what an application costs as it grows: memory, disk, CPU, load on the brokers, transactions and
// recovery time of a cluster of N processes, P partitions and K keys.
//
// [Cluster.Costs] is the calculation: a list of terms, each with its formula. The application is one that counts per key: one
// store, one changelog record and one output record for each key that a commit has touched. What cannot be derived from the code
// is a constant, in constants.go, with the command that measures it.
//
// [Group] is the simulation: it places tasks on processes with the group's own plan (package internal/assign), lets processes
// die and join, and says what moves and what has to be read for it. [Measured] is what both are checked against.
//
// The package is pure: no clock, no files, no broker.
package model
