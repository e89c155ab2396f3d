package runtime

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
)

// Globals keeps the global tables of a process, which all of its tasks read. Each is read from the beginning of its topic
// whenever the process starts, by the same code that keeps it up to date.
type Globals struct {
	tables []*globalTable
	served bool // to queries
	rows   map[string]processor.GlobalRows
	ends   map[processor.TopicPartition]int64 // to be reached before tasks may start
	turns  atomic.Int64
}

// globalTable is a global table that tasks of several workers, and queries, read while it changes.
type globalTable struct {
	*sharedStore
	table *processor.Global
	topic string
}

// globalRows are the table's rows for tasks. A queried partition's Get is of another kind.
type globalRows struct{ t *globalTable }

// Get implements processor.GlobalRows.
func (r globalRows) Get(dst, key []byte) (value []byte, ts int64, ok bool, err error) {
	r.t.mu.Lock() // a write set remembers what it was asked for last
	defer r.t.mu.Unlock()
	return r.t.table.Get(dst, key)
}

// NewGlobals returns the tables over empty backends that backend makes, and makes them known to stores, unless that is nil.
// Of the options it uses App, Policy and Dropped.
func NewGlobals(specs []*processor.GlobalSpec, backend func() store.Backend, opt processor.Options, stores *Stores) *Globals {
	g := &Globals{rows: map[string]processor.GlobalRows{}, ends: map[processor.TopicPartition]int64{}}
	for _, spec := range specs {
		layers := store.LayersOf(spec.Declaration, backend())
		t := &globalTable{share(spec.Name, 0, layers), processor.NewGlobal(spec, layers, opt), spec.Topic.Physical(opt.App)}
		g.tables = append(g.tables, t)
		g.rows[spec.Name] = globalRows{t}
		stores.add(t.sharedStore, 1)
	}
	return g
}

// Rows returns the tables for the tasks, by the names of their stores.
func (g *Globals) Rows() map[string]processor.GlobalRows { return g.rows }

// Topics returns the names of the tables' topics on the broker.
func (g *Globals) Topics() []string {
	var names []string
	for _, t := range g.tables {
		names = append(names, t.topic)
	}
	return names
}

// Until says up to where a partition has to be applied before Ready.
func (g *Globals) Until(tp processor.TopicPartition, start, end int64) {
	if start < end {
		g.ends[tp] = end
	}
}

// Ready reports whether all partitions have reached the offsets given to Until.
func (g *Globals) Ready() bool { return len(g.ends) == 0 }

// Take applies a batch to every table of its topic. The error, if any, is a *processor.RecordError, and the tables are of
// no further use.
func (g *Globals) Take(f Fetched) error {
	for _, t := range g.tables {
		if t.topic != f.Topic {
			continue
		}
		t.mu.Lock()
		err := t.table.Apply(f.TopicPartition, f.Records)
		t.mu.Unlock()
		if err != nil {
			return err
		}
	}
	if end, waiting := g.ends[f.TopicPartition]; waiting && f.Next >= end {
		delete(g.ends, f.TopicPartition)
	}
	if g.Ready() {
		g.Serve()
	}
	return nil
}

// Serve opens the tables to queries. It is called by Take and Follow once Ready.
func (g *Globals) Serve() {
	if g.served {
		return
	}
	g.served = true
	for _, t := range g.tables {
		t.serve(processor.Unknown)
	}
}

// Turns counts how often Follow has gone round: as long as it grows, no user's function hangs. It may be called from any
// goroutine.
func (g *Globals) Turns() int64 { return g.turns.Load() }

// Observer reads topics without a lease: Poll brings Fetched, Failed and nothing else.
type Observer interface {
	Reader
	Poll(wait time.Duration) Events
}

// Follow applies what the observer brings until ctx ends, and closes ready once Ready. It returns the error that ends it
// before, nil if ctx does.
func (g *Globals) Follow(ctx context.Context, from Observer, ready chan<- struct{}) error {
	for ctx.Err() == nil {
		g.turns.Add(1)
		if ready != nil && g.Ready() {
			g.Serve()
			close(ready)
			ready = nil
		}
		events := from.Poll(longestWait)
		for _, f := range events.Fetched {
			if err := g.Take(f); err != nil {
				return err
			}
			from.Consumed(f.TopicPartition, f.Bytes)
		}
		for _, f := range events.Failed {
			return fmt.Errorf("runtime: global table: cannot read %s from offset %d: %w", f.TopicPartition, f.Offset, f.Err)
		}
	}
	return nil
}
