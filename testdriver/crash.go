package testdriver

import (
	"github.com/millrace-streams/millrace/internal/sim"
)

// Point is a point of the loop at which the process can die.
type Point string

// The points, in the order of the loop.
const (
	BeforePoll          = Point(sim.BeforePoll)
	AfterPoll           = Point(sim.AfterPoll)
	BeforeStoreOpens    = Point(sim.BeforeOpen)
	BeforeReading       = Point(sim.BeforeStart)        // of an input or a changelog partition
	AfterBatch          = Point(sim.BatchDone)          // the last record of a fetched batch went through the graph
	CommitPrepared      = Point(sim.Prepared)           // nothing of it was sent
	BeforeInitProducer  = Point("before init producer") // this and the following are the calls of the commit protocol;
	AfterInitProducer   = Point("after init producer")  // after a call means: it took effect, its answer was not seen
	BeforeAddPartitions = Point("before add partitions")
	AfterAddPartitions  = Point("after add partitions")
	BeforeProduce       = Point("before produce")
	AfterProduce        = Point("after produce")
	BeforeAddOffsets    = Point("before add offsets")
	AfterAddOffsets     = Point("after add offsets")
	BeforeCommitOffsets = Point("before commit offsets")
	AfterCommitOffsets  = Point("after commit offsets")
	BeforeEnd           = Point("before end transaction")
	AfterEnd            = Point("after end transaction") // committed, and the process does not know
	BeforeFlush         = Point(sim.BeforeFlush)         // committed, and the backend does not hold it yet
	AfterFlush          = Point(sim.AfterFlush)
	BeforeRelease       = Point(sim.BeforeGiving) // of a task, when the process stops
	AfterRelease        = Point(sim.AfterGiving)
)

// Points returns all points.
func Points() []Point {
	var points []Point
	for _, p := range sim.Points() {
		points = append(points, Point(p))
	}
	return points
}

// fuse says when to die.
type fuse struct {
	point Point // "": any
	left  int   // how often the point is reached until then; 0: not lit
}

// at is called at every point of the loop.
func (f *fuse) at(p sim.Point) {
	if f.left == 0 || f.point != "" && f.point != Point(p) {
		return
	}
	if f.left--; f.left == 0 {
		panic(sim.Crash{At: p})
	}
}

// CrashAt makes the process die when it reaches the point for the next time, in place of what was set before.
func (d *Driver) CrashAt(p Point) { d.fuse = fuse{p, 1} }

// CrashAfter makes the process die at the n-th point that it reaches from now on, of whatever kind. A test that raises n
// until the driver does not crash any more has tried all of them. 0 takes back what was set before.
func (d *Driver) CrashAfter(n int) { d.fuse = fuse{"", n} }

// Crash kills the process between two turns. What is not committed is gone, a transaction may stay open.
func (d *Driver) Crash() {
	if d.worker != nil {
		d.died(sim.Crash{At: "between two turns"})
	}
}

func (d *Driver) died(c sim.Crash) {
	d.helper()
	d.crash = &c
	d.fuse.left = 0
	d.worker.Crash()
	d.worker = nil
	if err := d.opener.Kill(); err != nil {
		d.fail(err)
	}
}

// Crashed returns where the process has died, if it has and was not restarted. Meanwhile Send writes to the topic only.
func (d *Driver) Crashed() (at Point, crashed bool) {
	if d.crash == nil {
		return "", false
	}
	return Point(d.crash.At), true
}

// Restart starts the process again after a crash, a Stop or a failure, with the local state that it had: none on the
// memory backend. The error, if any, is forgotten.
func (d *Driver) Restart() {
	d.helper()
	d.Stop()
	d.crash, d.err, d.ended = nil, nil, false
	d.fuse.left = 0
	if d.port != nil {
		d.port.Leave()
	}
	d.start()
	d.settle()
}

// RestartEmpty is Restart on a machine without local state: stores come back from their changelogs.
func (d *Driver) RestartEmpty() {
	d.helper()
	d.Stop()
	d.life++
	d.Restart()
}
