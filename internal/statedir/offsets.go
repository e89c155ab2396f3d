package statedir

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/millrace-streams/millrace/processor"
)

// Offsets remembers up to where the stores on disk hold their changelogs, so that this can be told without opening them. It
// is advice: a file that is missing, or older than its stores, makes another process the better one for a task, no more.
//
//	<state dir>/<app>/<task>/offsets    a line "<offset> <store>" for each store
type Offsets struct {
	dir string

	mu     sync.Mutex
	byTask map[processor.TaskID]map[string]int64
}

// Offsets reads what is known of the stores of all tasks in the directory.
func (d *Dir) Offsets() *Offsets {
	o := &Offsets{dir: d.path, byTask: map[processor.TaskID]map[string]int64{}}
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return o // nothing is known
	}
	for _, e := range entries {
		id, ok := taskOf(e.Name())
		data, err := os.ReadFile(o.file(id))
		if !ok || err != nil {
			continue
		}
		stores := map[string]int64{}
		for line := range strings.Lines(string(data)) {
			number, store, found := strings.Cut(strings.TrimSpace(line), " ")
			if at, err := strconv.ParseInt(number, 10, 64); found && err == nil && at >= 0 {
				stores[store] = at
			}
		}
		o.byTask[id] = stores
	}
	return o
}

// taskOf reads the name of a task's folder.
func taskOf(name string) (id processor.TaskID, ok bool) {
	n, err := fmt.Sscanf(name, "%d_%d", &id.Subtopology, &id.Partition)
	return id, err == nil && n == 2 && id.String() == name
}

func (o *Offsets) file(id processor.TaskID) string {
	return filepath.Join(o.dir, id.String(), "offsets")
}

// Keep notes that a store on disk holds its changelog up to an offset; below 0, that it holds nothing. It may be called from
// several goroutines. That the file cannot be written is no reason to stop.
func (o *Offsets) Keep(id processor.TaskID, store string, offset int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	stores := o.byTask[id]
	if stores == nil {
		stores = map[string]int64{}
		o.byTask[id] = stores
	}
	if offset < 0 {
		delete(stores, store)
	} else {
		stores[store] = offset
	}
	var text strings.Builder
	for name, at := range stores {
		fmt.Fprintln(&text, at, name)
	}
	path := o.file(id)
	if err := os.WriteFile(path+".new", []byte(text.String()), 0o644); err == nil {
		_ = os.Rename(path+".new", path)
	}
}

// Of returns up to where a store on disk holds its changelog, false if that is not known.
func (o *Offsets) Of(id processor.TaskID, store string) (offset int64, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	offset, ok = o.byTask[id][store]
	return offset, ok
}
