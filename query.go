package millrace

import "github.com/millrace-streams/millrace/store"

// Queried makes an application a store.QuerySource: Counts.Query(app) reads what is committed of a store, from any goroutine,
// over all partitions that this process works on. Package store says what queries see, and its *UnavailableError when they
// have no answer here. Before Run and after it the error is ErrNotRunning; a store that the topology does not have is
// processor.ErrUnknownStore.
func (a *App) Queried(d store.Declaration) (store.Queried, error) {
	a.mu.Lock()
	running := a.cluster != nil
	a.mu.Unlock()
	if !running {
		return store.Queried{}, ErrNotRunning
	}
	return a.stores.Queried(d)
}
