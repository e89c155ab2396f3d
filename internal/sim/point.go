package sim

import (
	"fmt"

	"github.com/millrace-streams/millrace/eos"
)

// Point is a place between two arrows of a worker's loop: a process can die there.
type Point string

// The points. Those of a protocol call come with the call's name, see Before and After.
const (
	BeforePoll   Point = "before poll"
	AfterPoll    Point = "after poll"
	BatchDone    Point = "batch processed" // the last record of a fetched batch went through the graph
	Prepared     Point = "commit prepared" // nothing of it was sent
	BeforeFlush  Point = "before flush"    // a backend is about to apply a batch
	AfterFlush   Point = "after flush"     // it holds the batch, and the worker does not know
	BeforeOpen   Point = "before open"     // a store is about to be opened
	BeforeStart  Point = "before fetch"    // a partition is about to be read
	BeforeGiving Point = "before release"  // a task is about to be given back
	AfterGiving  Point = "after release"
)

var callNames = [...]string{
	eos.InitProducer: "init producer", eos.AddPartitions: "add partitions", eos.Produce: "produce",
	eos.AddOffsets: "add offsets", eos.CommitOffsets: "commit offsets", eos.EndCommit: "end transaction",
}

// Before is the point at which a call of the commit protocol was not made yet.
func Before(k eos.Kind) Point { return Point("before " + callNames[k]) }

// After is the point at which a call of the commit protocol has taken effect and its answer was not seen.
func After(k eos.Kind) Point { return Point("after " + callNames[k]) }

// Points returns all points, in the order of a loop.
func Points() []Point {
	points := []Point{BeforePoll, AfterPoll, BeforeOpen, BeforeStart, BatchDone, Prepared}
	for k := eos.InitProducer; k <= eos.EndCommit; k++ {
		points = append(points, Before(k), After(k))
	}
	return append(points, BeforeFlush, AfterFlush, BeforeGiving, AfterGiving)
}

// Crash is what a hook panics with to kill the worker that has reached a point. Run recovers it.
type Crash struct{ At Point }

// String says where.
func (c Crash) String() string { return fmt.Sprintf("sim: crash %s", c.At) }

// Run calls fn and reports the Crash that it panicked with, if it did. Any other panic goes on.
func Run(fn func()) (crash Crash, crashed bool) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case Crash:
			crash, crashed = v, true
		default:
			panic(v)
		}
	}()
	fn()
	return crash, false
}
