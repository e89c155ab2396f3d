package runtime

import (
	"log/slog"
	"time"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
)

// Config is what a worker is told. All fields without a stated default are needed.
type Config struct {
	App         string
	Specs       []*processor.Spec // by sub-topology id
	Partitions  map[string]int32  // partition counts, by the topic's name on the broker
	Policy      processor.ErrorPolicy
	EveryUpdate bool
	MaxRecord   int           // see processor.Options.MaxRecordBytes; stores keep to it too
	MaxIdle     time.Duration // see processor.Options

	Globals map[string]processor.GlobalRows // the process's global tables, by the names of their stores

	Stores *Stores // where the stores are shared with readers of other goroutines; nil: nowhere

	Opener   store.Opener
	StateDir string // tasks keep their stores in <StateDir>/<App>/<task>

	// LostState lets a store be rebuilt from a changelog that has lost what the store holds; else that is a *LostStateError.
	LostState bool

	// DeleteRetention says, by the changelog's name, how long its topic keeps tombstones; for one that is not in it, for ever.
	DeleteRetention map[string]time.Duration

	CommitInterval time.Duration // the longest time between commits while there is work
	DrainInterval  time.Duration // the shortest time between commits made because the input is drained
	StagedBytes    int           // commit when this much is staged; stop stepping when it is reached again meanwhile
	FlushBytes     int           // flush a store when this much is committed but not flushed
	FlushInterval  time.Duration // flush a store at least this often

	Restores *Restores // shared by the workers of a process; nil: the worker's own

	Now    func() time.Time
	Logger *slog.Logger
	// Restoring, if set, is told how far each store is that is being restored, at the start, now and then, and at the end.
	Restoring func(Restore)
	// Restored, if set, is told of each store that has been restored.
	Restored func(Restored)
	// Kept, if set, is told, from any goroutine, up to which changelog offset a store's data outlive the process; -1 if
	// nothing of them does.
	Kept func(task processor.TaskID, store string, offset int64)
	// Dropped, if set, is told of every bad record that the policy let pass.
	Dropped func(*processor.RecordError, processor.Action)
	// Late, if set, is told of every record that came after a window of its was closed.
	Late func(processor.Late)
}

// Restored says how a store came back: Records were read from the changelog offsets From up to To.
type Restored struct {
	Task     processor.TaskID
	Store    string
	From, To int64
	Records  int64
}

// Turn limits: a turn steps every task in rounds, so that one with a long queue does not hold up the others.
const (
	roundRecords = 256
	turnRounds   = 8
)

// movedInterval is how long a position that only moved past control records may wait for its commit.
const movedInterval = time.Second

// longestWait bounds a Poll, so that nothing depends on a wake-up alone.
const longestWait = 100 * time.Millisecond
