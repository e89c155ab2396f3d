package processor

import (
	"fmt"

	"github.com/millrace-streams/millrace/store"
)

// GlobalSpec is a global table: a topic of which every task of the application sees all partitions. Each process keeps its
// rows once, has no changelog for them, and reads the topic from its beginning whenever it starts.
type GlobalSpec struct {
	Name        string // of the store
	Declaration store.Declaration
	Topic       Topic
	// Decode makes a row of a fetched record; it is the only way into the table, live and at a start alike. A nil value
	// deletes the row, a nil key is no row at all.
	Decode func(raw *Raw) (key, value []byte, err error)
}

// GlobalRows reads a global table. Reads come from any task's goroutine.
type GlobalRows interface {
	// Get appends the value of a key to dst; see store.Layered.
	Get(dst, key []byte) (value []byte, ts int64, ok bool, err error)
}

// Global is a global table: a state machine, like a Task. It is not safe for concurrent use.
type Global struct {
	Counters Counters
	spec     *GlobalSpec
	layers   *store.Layered
	opt      Options
}

// NewGlobal returns the table over an open store, which must be empty. Of the options it uses App, Policy and Dropped.
func NewGlobal(spec *GlobalSpec, layers *store.Layered, opt Options) *Global {
	return &Global{spec: spec, layers: layers, opt: opt}
}

// Apply takes records of a partition of the topic, in their order. Bad ones are treated as the policy says; there are no
// dead letters of them, they are skipped. The error, if any, is a *RecordError, and the table is of no further use.
func (g *Global) Apply(tp TopicPartition, records []Raw) error {
	for i := range records {
		raw := &records[i]
		key, value, err := g.decode(raw)
		if err == nil && key != nil {
			err = g.layers.RestorePut(key, value, raw.Timestamp)
		}
		if err == nil {
			g.Counters.Processed++
			continue
		}
		e := &RecordError{Node: g.spec.Name, Topic: tp.Topic, Partition: tp.Partition, Offset: raw.Offset, Err: err}
		if err := g.bad(e); err != nil {
			return err
		}
	}
	g.layers.Restored(-1)
	return nil
}

func (g *Global) decode(raw *Raw) (key, value []byte, err error) {
	defer recovered(&err)
	switch {
	case raw.Timestamp < 0:
		return nil, nil, Failed(g.spec.Name, KindTimestamp, fmt.Errorf("%w: %d", ErrNegativeTimestamp, raw.Timestamp))
	case raw.Key == nil:
		return nil, nil, Failed(g.spec.Name, KindNullKey, ErrNullKey)
	}
	return g.spec.Decode(raw)
}

func (g *Global) bad(e *RecordError) error {
	kind := KindProcess
	if failed, ok := e.Err.(*NodeError); ok {
		kind, e.Err = failed.Kind, failed.Err
	}
	if g.opt.Policy.action(kind) == Fail {
		return e
	}
	g.Counters.Skipped++
	if g.opt.Dropped != nil {
		g.opt.Dropped(e, Skip)
	}
	return nil
}

// Get implements GlobalRows.
func (g *Global) Get(dst, key []byte) (value []byte, ts int64, ok bool, err error) {
	return g.layers.GetCommitted(dst, key)
}

// Global returns the rows of a global table that the task's sub-topology reads.
func (t *Task) Global(name string) (GlobalRows, error) {
	if rows := t.opt.Globals[name]; rows != nil {
		return rows, nil
	}
	return nil, fmt.Errorf("%w: global table %q", ErrUnknownStore, name)
}
