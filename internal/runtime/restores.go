package runtime

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/millrace-streams/millrace/changelog"
	"github.com/millrace-streams/millrace/processor"
)

// DefaultRestoreBytes is what restores stage in memory unless they are told otherwise.
const DefaultRestoreBytes = 256 << 20

// Restores is what the restores of a process share: a bound on what they stage in memory, and how far they are.
type Restores struct {
	limit int

	mu       sync.Mutex
	staged   int                    // bytes, of all stores
	sharers  int                    // how many have staged something
	progress map[*openStore]Restore // of those under way
}

// NewRestores returns restores that stage about so many bytes.
func NewRestores(bytes int) *Restores {
	return &Restores{limit: bytes, progress: map[*openStore]Restore{}}
}

// Restore is how far a store is on its way up its changelog.
type Restore struct {
	Task     processor.TaskID
	Store    string
	From     int64 // offset where it began
	Position int64 // offset that is read next
	End      int64 // offset, exclusive, at which it is done
	Records  int64 // restored so far
}

// Remaining is the number of offsets to come. Compaction and transaction markers leave holes: records are fewer.
func (r Restore) Remaining() int64 { return max(0, r.End-r.Position) }

// Under returns the restores under way, by task and store. It may be called from any goroutine.
func (r *Restores) Under() []Restore {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.progress), func(a, b Restore) int {
		return cmp.Or(compareIDs(a.Task, b.Task), cmp.Compare(a.Store, b.Store))
	})
}

// Staged is how many bytes are staged in all. It may be called from any goroutine.
func (r *Restores) Staged() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.staged
}

// full accounts for what a store has staged, and reports whether it has to be written: too much is staged in all, and this
// store has at least its share of it.
func (r *Restores) full(s *openStore) bool {
	r.account(s)
	return r.exceeded(s)
}

func (r *Restores) exceeded(s *openStore) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.staged > r.limit && s.accounted >= r.limit/max(1, r.sharers)
}

// account notes what a store has staged.
func (r *Restores) account(s *openStore) { r.setStaged(s, s.restoring.StagedBytes()) }

func (r *Restores) setStaged(s *openStore, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.staged += bytes - s.accounted
	if was := s.accounted > 0; was != (bytes > 0) {
		r.sharers += map[bool]int{true: -1, false: 1}[was]
	}
	s.accounted = bytes
}

// forget ends the account of a store.
func (r *Restores) forget(s *openStore) {
	r.setStaged(s, 0)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.progress, s)
}

const (
	// tellEvery is how often at most the progress of a store is told.
	tellEvery = 100 * time.Millisecond
	// logEvery is how often it is logged.
	logEvery = 10 * time.Second
)

// progress notes how far a store is, and tells it at a bounded rate. The worker owns the store.
func (w *Worker) progress(t *task, s *openStore) {
	r := s.restoring
	w.followed(s)
	if r.End() == changelog.Forever {
		return
	}
	now := Restore{Task: t.id, Store: s.layers.Name(), From: s.from, Position: r.Position(), End: r.End(), Records: r.Restored()}
	w.cfg.Restores.mu.Lock()
	w.cfg.Restores.progress[s] = now
	w.cfg.Restores.mu.Unlock()
	if w.cfg.Restoring != nil && (r.Done() || w.now.Sub(s.told) >= tellEvery) {
		s.told = w.now
		w.cfg.Restoring(now)
	}
	if s.logged.IsZero() {
		s.logged = w.now
	} else if w.now.Sub(s.logged) >= logEvery {
		s.logged = w.now
		w.cfg.Logger.Info("restoring", "task", t.id.String(), "store", now.Store, "percent", percent(now), "records", now.Records, "position", now.Position, "to", now.End)
	}
}

func percent(r Restore) int64 { return 100 * (r.Position - r.From) / max(1, r.End-r.From) }
