package processor

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/millrace-streams/millrace/store"
)

// Options is what a task needs to know of its surroundings.
type Options struct {
	App        string                   // the application's id
	Partitions func(topic string) int32 // partition counts, by the topic's name on the broker
	Policy     ErrorPolicy
	// EveryUpdate forwards each update of a table at once, instead of the last one per key at the commit.
	EveryUpdate bool
	// MaxRecordBytes bounds the records that are written: a larger one is an error of the record in work. 0 is no bound.
	MaxRecordBytes int
	// MaxIdle is how long records wait, by the wall clock, for an input of the same task that is empty, so that records are
	// taken in the order of their timestamps across inputs. At 0 they wait only for what is known to be on the broker;
	// below 0 for nothing.
	MaxIdle time.Duration
	// Globals are the global tables, by the names of their stores.
	Globals map[string]GlobalRows
	// Queries is where processors read them. It is needed if any does.
	Queries store.QuerySource
	// Yield, if set, makes Run return after the record in work while it is true.
	Yield *atomic.Bool
	// Marks are committed in the metadata of all positions.
	Marks []Mark
	// Consumed, if set, is told when a batch given to Enqueue is used up.
	Consumed func(tp TopicPartition, bytes int)
	// Recycle, if set, is given each slice that was given to Enqueue once none of its records is needed any more. Their
	// keys, values and headers may still be.
	Recycle func(records []Raw)
	// Chunks is where the memory of outputs comes from; see Commit.Reset.
	Chunks *Chunks
	// Dropped, if set, is told of every record that is skipped or sent to the dead-letter topic.
	Dropped func(*RecordError, Action)
	// Late, if set, is told of every record that came after a window of its was closed.
	Late func(Late)
}

// Start is where one input partition begins.
type Start struct {
	Position
	Behind bool // the broker holds something from Offset on
}

// Counters counts what a task did since it was made.
type Counters struct {
	Processed    int64 // records that ran through the graph
	Skipped      int64 // bad records dropped
	DeadLettered int64 // bad records sent to the dead-letter topic
	Punctuations int64
	Late         int64 // records that came too late, once for each window that was closed
}

// Cache is a node that holds back what it forwards until the commit. See [Task.AddCache].
type Cache interface {
	// Held returns how many forwards are held back.
	Held() int
	// Forward takes the oldest of them out and sends it on.
	Forward() error
	// Mark begins a step; Rollback takes out what was added since.
	Mark()
	Rollback()
}

// Staged is a Cache that holds more than places of what its store holds.
type Staged interface {
	// StagedBytes returns roughly how much memory waits for the next commit.
	StagedBytes() int
}

// Task runs the nodes of a sub-topology over one partition. It is not safe for concurrent use, and not usable after a
// method has returned an error: make a new one from the last committed positions and stores.
type Task struct {
	ID          TaskID
	Counters    Counters
	Out         Outputs
	spec        *Spec
	opt         Options
	inputs      []*input
	byPartition map[TopicPartition]*input
	stores      []*store.Layered
	foreseen    []*store.Layered // those that are looked up by the keys of the records
	byName      map[string]*store.Layered
	caches      []Cache
	timers      schedule
	now         int64 // wall clock, as of the latest Run
	streamTime  int64 // highest record timestamp, Unknown before the first record
	stalled     int64 // until when records wait for an empty input, 0 if they do not
	record      *Raw  // the record in work, nil in punctuations
	inputOf     *input
	recordTime  int64
	node        int32 // the node that the step is in, -1 if unknown
	punctuated  bool  // a punctuation ran since the last Prepare
	closers     []io.Closer
	shared      map[any]any // by the nodes' keys
	origin      *Origin     // of what a node sends on that it had kept, else nil
	kept        []*Kept
	inherited   map[string]int64 // what was committed of kept
	commits     int64            // number of commits, as far as something is kept
}

// NewTask binds the graph of spec for one partition. stores holds the open store of each StoreSpec, by name; starts the
// first offset of each source partition; now is the wall clock in milliseconds.
func NewTask(id TaskID, spec *Spec, stores map[string]*store.Layered, starts []Start, now int64, opt Options) (*Task, error) {
	t := &Task{ID: id, spec: spec, opt: opt, byPartition: map[TopicPartition]*input{}, byName: stores, now: now, streamTime: Unknown}
	t.Out.limit, t.Out.spares = opt.MaxRecordBytes, opt.Chunks
	if t.opt.Consumed == nil {
		t.opt.Consumed = func(TopicPartition, int) {}
	}
	for _, s := range spec.Stores {
		l := stores[s.Name]
		if l == nil {
			return nil, fmt.Errorf("processor: task %s: store %q is not open", id, s.Name)
		}
		t.stores = append(t.stores, l)
		if s.RecordKeys {
			t.foreseen = append(t.foreseen, l)
		}
	}
	if err := t.bind(starts); err != nil {
		return nil, fmt.Errorf("processor: task %s: %w", id, err)
	}
	return t, nil
}

// bind builds the nodes from the leaves up, so that each finds its children bound. What Init of a user's processor
// writes belongs to the first commit.
func (t *Task) bind(starts []Start) (err error) {
	defer recovered(&err)
	t.inherit(starts)
	t.mark()
	bound := make([]any, len(t.spec.Nodes))
	clocks := make([]clock, len(t.spec.Nodes))
	for i := len(t.spec.Nodes) - 1; i >= 0; i-- {
		node := t.spec.Nodes[i]
		b := &Binding{Task: t, Node: node}
		for _, c := range node.Children {
			b.Children = append(b.Children, bound[c])
			b.Names = append(b.Names, t.spec.Nodes[c].Name)
		}
		built, err := node.Bind(b)
		if err != nil {
			return Failed(node.Name, KindProcess, err)
		}
		bound[i], clocks[i] = built, clock{b.Timestamp, b.MaxAhead.Milliseconds()}
	}
	slices.Reverse(t.caches)
	for i, node := range t.spec.Nodes {
		if node.Kind == KindSource {
			t.addInputs(node, bound[i].(Source), clocks[i], starts)
		}
	}
	return nil
}

func (t *Task) addInputs(node *Node, source Source, c clock, starts []Start) {
	for _, s := range starts {
		if s.Topic == node.Topic.Physical(t.opt.App) {
			in := &input{
				tp: s.TopicPartition, node: node.Name, index: t.spec.index(node.Name), source: source, clock: c, next: s.Offset, prepared: s.Offset,
				behind: s.Behind, time: DecodePartitionTime(s.Metadata),
			}
			in.extracted = in.time
			t.advance(in.time)
			t.inputs = append(t.inputs, in)
			t.byPartition[s.TopicPartition] = in
		}
	}
}

// AddCache registers a node that holds back forwards. Nodes call it while they are bound; caches are flushed parents
// first.
func (t *Task) AddCache(c Cache) { t.caches = append(t.caches, c) }

// AddCloser registers what has to be closed with the task.
func (t *Task) AddCloser(c io.Closer) { t.closers = append(t.closers, c) }

// Close closes the processors of the task. The stores stay open: they are the caller's.
func (t *Task) Close() error {
	var errs []error
	for _, c := range t.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// EveryUpdate reports whether tables forward each update at once.
func (t *Task) EveryUpdate() bool { return t.opt.EveryUpdate }

// PhysicalTopic returns the name on the broker of a topic of the graph.
func (t *Task) PhysicalTopic(topic Topic) string { return topic.Physical(t.opt.App) }

// Partitions returns the number of partitions of a topic by its name on the broker.
func (t *Task) Partitions(topic string) int32 { return t.opt.Partitions(topic) }

// Layered returns an open store of the task; it makes a Task a store.Source.
func (t *Task) Layered(name string) (*store.Layered, error) {
	if l := t.byName[name]; l != nil {
		return l, nil
	}
	return nil, fmt.Errorf("%w: %q", ErrUnknownStore, name)
}

// RecordTime returns the timestamp of the record, or the time of the punctuation, in work.
func (t *Task) RecordTime() int64 { return t.recordTime }

// StreamTime returns the highest timestamp seen, -1 before the first record.
func (t *Task) StreamTime() int64 { return t.streamTime }

// Run processes up to limit records and the punctuations that are due at now (wall clock, milliseconds since 1970). It
// returns the number of records processed; fewer than limit means that no more are buffered, or that Options.Yield was set.
// The error, if any, is a *RecordError, and the task is of no further use.
func (t *Task) Run(now int64, limit int) (int, error) {
	t.now = max(t.now, now)
	if len(t.timers[WallClockTime]) > 0 {
		if err := t.punctuate(WallClockTime, t.now); err != nil {
			return 0, err
		}
	}
	for n := range limit {
		in := t.choose()
		if in == nil {
			return n, nil
		}
		if in.head%warmed == 0 {
			t.warm(in)
		}
		if err := t.process(in); err != nil {
			return n, err
		}
		if t.opt.Yield != nil && t.opt.Yield.Load() {
			return n + 1, nil
		}
	}
	return limit, nil
}

// Idle reports whether Run at a time, in milliseconds since 1970, has no record to process and no punctuation to call.
func (t *Task) Idle(now int64) bool {
	at, timed := t.NextPunctuation()
	return t.Buffered() == 0 && !(timed && at <= now)
}

// process takes one record through the graph.
func (t *Task) process(in *input) error {
	raw := in.peek()
	if t.inputOf != in { // writing a pointer costs something while the collector is at work
		t.inputOf = in
	}
	t.record, t.recordTime, t.node = raw, raw.Timestamp, in.index
	if !in.ahead(raw, t.now) {
		in.time = max(in.time, raw.Timestamp)
		t.advance(in.time)
	}
	t.mark()
	if err := t.guard(in, raw); err != nil {
		t.rollback()
		if err := t.bad(err); err != nil {
			return err
		}
	} else {
		t.Counters.Processed++
	}
	t.leave(in)
	if len(t.timers[StreamTime]) > 0 && t.streamTime >= 0 {
		return t.punctuate(StreamTime, t.streamTime)
	}
	return nil
}

// advance moves stream time.
func (t *Task) advance(to int64) {
	if to <= t.streamTime {
		return
	}
	t.streamTime = to
	for _, s := range t.stores {
		s.Advance(to)
	}
}

// guard runs a source and turns a panic of a user's function into an error of the record.
func (t *Task) guard(in *input, raw *Raw) (err error) {
	defer recovered(&err)
	if raw.Timestamp < 0 {
		return Failed(in.node, KindTimestamp, fmt.Errorf("%w: %d", ErrNegativeTimestamp, raw.Timestamp))
	}
	if in.ahead(raw, t.now) {
		return Failed(in.node, KindAhead, fmt.Errorf("%w: %d, it is %d now", ErrFarAhead, raw.Timestamp, t.now))
	}
	return in.source(raw)
}

// recovered is deferred by what calls user code.
func recovered(err *error) {
	if v := recover(); v != nil {
		*err = &PanicError{Value: v, Stack: debug.Stack()}
	}
}

// step runs fn, which no fetched record caused, wholly or not at all.
func (t *Task) step(fn func() error) error {
	t.mark()
	err := func() (err error) {
		defer recovered(&err)
		return fn()
	}()
	if err == nil {
		return nil
	}
	t.rollback()
	return t.bad(err)
}

func (t *Task) mark() {
	t.Out.begin()
	for _, s := range t.stores {
		s.Mark()
	}
	for _, c := range t.caches {
		c.Mark()
	}
	for _, k := range t.kept {
		k.marked = k.value
	}
}

func (t *Task) rollback() {
	t.Out.rollback()
	for _, s := range t.stores {
		s.Rollback()
	}
	for _, c := range t.caches {
		c.Rollback()
	}
	for _, k := range t.kept {
		k.value = k.marked
	}
}
