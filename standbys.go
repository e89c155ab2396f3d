package millrace

import "github.com/millrace-streams/millrace/processor"

// Standby says how far a store is that this process keeps up to date for a task that another one works on.
type Standby struct {
	Task     processor.TaskID
	Store    string
	Position int64 // offset of the changelog that is read next
	End      int64 // of the changelog, not included, as of about a second ago
}

// Lag is the number of offsets that the store lacks. Transaction markers and holes count: one that lacks nothing may show a
// few while the last transaction's marker is read.
func (s Standby) Lag() int64 { return s.End - s.Position }

// Standbys returns the stores that this process stands by for, or warms up so that their tasks can move here, by task and
// name. A store appears when it is open and the end of its changelog is known. There are none unless Run runs. It may be
// called from any goroutine; see also Config.Standbys.
func (a *App) Standbys() []Standby {
	a.mu.Lock()
	cluster := a.cluster
	a.mu.Unlock()
	if cluster == nil {
		return nil
	}
	follows := cluster.Standbys()
	all := make([]Standby, len(follows))
	for i, f := range follows {
		all[i] = Standby(f)
	}
	return all
}
