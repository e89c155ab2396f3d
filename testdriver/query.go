package testdriver

import (
	"errors"
	"fmt"

	"github.com/millrace-streams/millrace/store"
)

// ErrNotRunning is a query while the process does not run: crashed, stopped or closed, with [Manual] also before the first
// turn.
var ErrNotRunning = errors.New("testdriver: the process does not run")

// Queried makes a driver a store.QuerySource, as the application is one: Counts.Query(d) reads a store of any kind. All of its
// partitions are local. Errors are the query's; they do not fail the test.
func (d *Driver) Queried(decl store.Declaration) (store.Queried, error) {
	if !d.started {
		d.settle()
	}
	if d.worker == nil {
		return store.Queried{}, fmt.Errorf("%w: query %s", ErrNotRunning, decl.Name())
	}
	return d.stores.Queried(decl)
}
