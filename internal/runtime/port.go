package runtime

import (
	"time"

	"github.com/millrace-streams/millrace/eos"
	"github.com/millrace-streams/millrace/processor"
)

// Port is all that a worker sees of the world outside: Kafka in the application (internal/kafka), an in-memory log in
// the test driver and the simulator (internal/sim). A worker calls it from one goroutine.
type Port interface {
	Reader
	// Poll returns what has happened, waiting up to wait for something to happen; wait 0 does not block. The order within
	// one kind of event is the order in which they happened.
	Poll(wait time.Duration) Events
	// Commit starts to make c durable; the outcome comes as an event. One commit is under way at a time. The port reads c
	// until then.
	Commit(c processor.Commit)
	// Release gives the lease to work on a task back, at the end of a revocation or of the worker: others may take it from
	// now on. No commit of the task is under way. Its stores may still be open here.
	Release(task processor.TaskID)
	// Closed tells that the worker has none of a task's stores open any more, after Release or at the end of a standby.
	Closed(task processor.TaskID)
	// Background runs fn beside the loop and wakes Poll when it is done. In a deterministic world it runs fn at once.
	Background(fn func())
}

// Reader reads topics. Everything is read committed: records of open and of aborted transactions are never seen.
type Reader interface {
	// Fetch starts to read a partition at an offset, anew if it is being read. Batches read before are not delivered any
	// more.
	Fetch(tp processor.TopicPartition, offset int64)
	// StopFetch ends the reading of a partition; nothing of it is delivered any more.
	StopFetch(tp processor.TopicPartition)
	// Consumed tells that delivered bytes are used up. The port holds back while too many are not.
	Consumed(tp processor.TopicPartition, bytes int)
}

// Recycler is a port that can use record slices again.
type Recycler interface {
	// Recycle takes back the slice of a Fetched, none of whose records is needed any more. Their bytes may still be.
	Recycle(records []processor.Raw)
}

// Follower is a port that wants to know how far the stores have come that are behind.
type Follower interface {
	// Followed tells the changelog offset up to which a store that restores or stands by has come.
	Followed(changelog processor.TopicPartition, position int64)
	// Working tells that a task has all of its state, and processes.
	Working(task processor.TaskID)
}

// Events is what Poll brings. Leases are told in this order: a task in Lost and in Granted was lost and is granted anew; one
// in Granted and in Revoked is to be given back at once. A port withdraws a grant that it has not delivered yet.
//
// A task that the worker stands by for and that is granted to be worked on keeps its stores as they are.
type Events struct {
	Granted []Lease            // tasks that are now this worker's, to work on or to stand by for
	Revoked []processor.TaskID // tasks to finish: commit what is done, Release, close
	Demoted []processor.TaskID // tasks to finish and Release, but then to stand by for: their stores stay open
	Lost    []processor.TaskID // tasks that already belong to somebody else: drop them; do not Release
	Fetched []Fetched
	Failed  []FetchFailed
	Commit  *CommitDone
	Stop    bool  // finish everything, then end
	Fatal   error // the port cannot go on
}

// Role is what a worker is to a task.
type Role uint8

// The roles.
const (
	Active  Role = iota // it works on the task
	Standby             // it keeps the task's stores up to date, for the case that it is to work on it
)

// Lease makes a worker the only one that works on a task, and says where its partitions stand. The positions are taken
// after the predecessor's last transaction was decided. As a Standby it has no inputs, and there may be several.
type Lease struct {
	Task       processor.TaskID
	Role       Role
	Inputs     []Input
	Changelogs []Changelog
	Marks      []processor.Mark // to be committed with every position
	Asked      time.Time        // when the ends of the changelogs were asked for, or before; zero: not known
}

// Input is a source partition of a task.
type Input struct {
	processor.TopicPartition
	Offset   int64 // the first offset to process: the committed one, else as the reset policy says
	Metadata string
	End      int64 // high watermark when the lease was granted
}

// Changelog is the changelog partition of one of a task's stores.
type Changelog struct {
	processor.TopicPartition
	Store string
	ID    string // which topic of this name it is, empty if that is not known
	Start int64  // first offset that exists
	End   int64  // high watermark: restore is done when the position has reached it
}

// Fetched is a batch of records, ascending by offset. Records may be empty when only control records were passed.
type Fetched struct {
	processor.TopicPartition
	Records []processor.Raw
	Next    int64 // position behind them, past control records and aborted ones
	Bytes   int   // to be told to Consumed
	More    bool  // committed records lay behind Next when this was read: the input is not drained
}

// FetchFailed ends the reading of a partition: the offset does not exist any more or not yet, the topic is gone.
type FetchFailed struct {
	processor.TopicPartition
	Offset int64
	Err    error // the port's own: what a retry cannot help
	// Expired tells that the log begins behind the offset by now: the task has to be granted anew.
	Expired bool
}

// CommitDone is the outcome of a commit.
type CommitDone struct {
	eos.Result
	// Ends holds, when committed, the offset behind the last record written to each partition.
	Ends map[processor.TopicPartition]int64
}
