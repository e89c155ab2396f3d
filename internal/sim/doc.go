// Package sim is Kafka in memory, for the test driver and for simulations: a [Cluster] of topics with transactions, a
// consumer [Group] that hands tasks to members, and a [Port] through which a runtime.Worker sees both.
//
// It is deterministic: no goroutine, no clock, no map order. Nothing happens but in a call. What a broker does by itself
// in time (writing the markers of a decided transaction, timing out an open one, throwing out a silent member, cleaning a
// log) is a method that the simulation calls when it wants it to happen.
//
// The semantics are those of a real cluster as far as a worker can tell them apart:
//
//   - Markers occupy offsets. Readers see committed records only, and none at or behind the first record of a transaction
//     that is still open (the last stable offset).
//   - A transactional id has one producer epoch at a time; an older one is fenced. Starting a producer aborts what its id
//     left open. A producer's batches carry sequence numbers, so that one sent again is not written twice.
//   - Offsets committed in a transaction take effect with its marker, and are refused from a member or a generation that
//     is not current. A partition with undecided offsets has no stable position, and its task is not granted.
//   - Tasks, standbys and warm-ups are placed by the plan of a real group (package internal/assign), from what the members say
//     that they have. A task that moves is granted only after its owner has released it, or was thrown out of the group.
//
// A [Port] advances the commit protocol of package eos by some calls per Poll, so that a commit overlaps with processing,
// and names every [Point] at which a process can die to a hook, which may panic with a [Crash]. Faults can be injected
// into each call of the protocol.
package sim
