// Package runtime holds the loop that every Millrace application runs. A [Worker] owns tasks and reads top to bottom:
//
//	poll -> deliver -> settle -> lease -> step* -> due? -> prepare -> commit -> flush -> release
//
// The application runs it with the ports of internal/kafka and the real clock; the test driver and the simulator run the
// same code with internal/sim and their own clock. The worker itself starts no goroutine: what must not hold up the loop
// (writing a store's file) goes through Port.Background.
//
// Layers. While commit N is in flight, the tasks fill N+1. When N+1 has reached Config.StagedBytes before N has ended,
// the worker stops stepping, and the port stops fetching as its batches are not consumed.
//
// Queries. Readers of other goroutines reach the open stores through [Stores]. The worker takes a store's lock only where
// what is committed changes: at the outcome of a commit, and at the beginning and the end of a flush; never for a record.
//
// A stop, a revocation and a lost commit use the same few functions in another order: see lease.go and commit.go.
package runtime
