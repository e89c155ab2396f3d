package millrace

import (
	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
)

// Restoring says how far a store is that is being restored from its changelog.
type Restoring struct {
	Task     processor.TaskID
	Store    string
	From     int64 // offset of the changelog where it began
	Position int64 // offset that is read next
	End      int64 // offset, not included, at which it is done: the log's end when the task was assigned
	Records  int64 // restored so far
}

// Remaining is the number of offsets to come. Compaction and transaction markers leave holes, so the records to come may be
// fewer.
func (r Restoring) Remaining() int64 { return runtime.Restore(r).Remaining() }

// Restoring returns the stores of this process that are being restored, by task and name. It is meant for metrics and
// readiness probes: there are none while everything runs. It may be called from any goroutine, also before and after Run.
func (a *App) Restoring() []Restoring {
	under := a.restores.Under()
	all := make([]Restoring, len(under))
	for i, r := range under {
		all[i] = Restoring(r)
	}
	return all
}
