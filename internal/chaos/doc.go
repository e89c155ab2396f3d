// Command chaos runs an application on a real broker, breaks whatever can break, and then compares all that was written with
// a batch computation over the input: nothing may be lost, nothing doubled, every partition must have moved.
//
//	go run ./internal/chaos -seed 7 -faults 1000
//
// The application ([application]) counts words through a repartition topic, joins two streams in windows, looks up rows of a
// global table, and writes how a table changes. Its processes are this program itself, started again as children ([serve]), each with a state directory
// and a proxy of its own. A [slot] is what an orchestrator is: it starts its process again whenever that ends, and notes
// every end that nobody caused. [Plan] chooses the faults by the seed; each is a small type with a method strike. Faults
// come in rounds. After each round everything is healed, the input is worked off, and [check] compares.
//
// docs/chaos.md says what is broken, what is compared, and what was found.
package main
