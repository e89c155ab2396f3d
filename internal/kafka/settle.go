package kafka

import (
	"errors"
	"sync"
	"time"

	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
)

// A task is leased on committed positions only. Where an input has none yet, reading begins as the reset policy says, and
// that is committed first: so there is no state without positions, and state without positions is a loss. What is lost is
// refused, with an error that says what to do, or let pass as the configuration says.

// LostInput says how to go on where input records were deleted before they were processed.
type LostInput uint8

// What to do about lost input.
const (
	RefuseLostInput   LostInput = iota // fail with a *LostInputError
	EarliestLostInput                  // go on with the oldest record that is left
	LatestLostInput                    // go on with the records to come
)

// LostState says how to go on where a changelog does not hold what its store held.
type LostState uint8

// What to do about lost state.
const (
	RefuseLostState LostState = iota // fail with a *runtime.LostStateError
	EmptyLostState                   // go on from the committed positions with what the changelog holds, even if it is nothing
)

// ground is what the brokers say about the partitions of tasks.
type ground struct {
	positions map[processor.TopicPartition]committed
	logs      map[processor.TopicPartition]Range
	topics    map[string]topicState
	asked     time.Time // before the logs were
}

// knows reports whether nothing of the task is missing.
func (on ground) knows(t *TaskInfo) bool {
	for _, tp := range t.partitions() {
		_, log := on.logs[tp]
		_, topic := on.topics[tp.Topic]
		if !log || !topic {
			return false
		}
	}
	return true
}

// settle makes sure that a task can be leased on its committed positions: it commits those where reading begins, and
// refuses what is lost. It reports whether on has all of it now; else the brokers are to be asked again.
func (g *group) settle(t *TaskInfo, on ground, since time.Duration) (ok bool, err error) {
	if !on.knows(t) {
		return false, nil
	}
	v := g.examine(t, on)
	if len(v.refused)+len(v.passed) == 0 {
		g.doubts.clear(t.ID)
	} else if !g.doubts.last(t.ID, g.cluster.cfg.LossAfter) {
		return false, nil
	}
	if err := errors.Join(v.refused...); err != nil || len(v.starts) == 0 {
		return err == nil, err
	}
	if err := g.commitStarts(v.starts); err != nil {
		g.cluster.cfg.Logger.Debug("positions where reading begins cannot be committed yet", "task", t.ID.String(), "error", err)
		return false, g.hopeless(t, err, since)
	}
	for _, p := range v.starts {
		on.positions[p.TopicPartition] = committed{offset: p.Offset, metadata: p.Metadata}
	}
	g.doubts.clear(t.ID)
	for _, loss := range v.passed {
		g.cluster.cfg.Logger.Warn("going on after a loss, as configured", "task", t.ID.String(), "loss", loss)
		if g.cluster.cfg.Lost != nil {
			g.cluster.cfg.Lost(loss)
		}
	}
	return true, nil
}

// doubts are since when tasks look as if something of theirs were lost. A coordinator or a leader in transition may say such
// things; what is lost stays lost.
type doubts struct {
	mu    sync.Mutex
	since map[processor.TaskID]time.Time
}

// last reports whether the doubt about a task, which begins now if there was none, has lasted for so long.
func (d *doubts) last(id processor.TaskID, long time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.since == nil {
		d.since = map[processor.TaskID]time.Time{}
	}
	if d.since[id].IsZero() {
		d.since[id] = time.Now()
	}
	return time.Since(d.since[id]) >= long
}

// clear ends a doubt.
func (d *doubts) clear(id processor.TaskID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.since, id)
}

// view is what was found about a task.
type view struct {
	refused []error              // losses that the configuration does not let pass
	passed  []error              // losses that it does
	starts  []processor.Position // to be committed first: all of the task's, if any
}

// examine compares what the group's positions count on with what the logs hold.
func (g *group) examine(t *TaskInfo, on ground) (v view) {
	cfg := g.cluster.cfg
	var metadata []string
	for _, tp := range t.Inputs {
		if p := on.positions[tp]; p.offset >= 0 {
			metadata = append(metadata, p.metadata)
		}
	}
	marks := processor.Marks(metadata)
	at := map[processor.TopicPartition]int64{}
	moved := false
	var missing []processor.TopicPartition
	for _, tp := range t.Inputs {
		p := on.positions[tp]
		at[tp] = p.offset
		if p.offset < 0 {
			moved, at[tp] = true, g.beginning(tp, on)
			if _, known := marks[markName(tp.Topic)]; known || len(metadata) == 0 {
				missing = append(missing, tp)
			}
		} else if loss := lostInput(cfg.App, tp, on, marks); loss != nil {
			moved, at[tp] = true, on.logs[tp].Start
			if cfg.LostInput == LatestLostInput {
				at[tp] = on.logs[tp].End
			}
			v.judge(cfg.LostInput != RefuseLostInput, loss)
		}
	}
	if state := t.state(on); len(missing) > 0 && len(state) > 0 {
		v.judge(false, &LostOffsetsError{Group: cfg.App, Task: t.ID, Partitions: missing, State: state})
	}
	for _, c := range t.Changelogs {
		if loss := lostState(t, c, on, marks); loss != nil {
			moved = true
			v.judge(cfg.LostState == EmptyLostState, loss)
		}
	}
	if moved {
		for _, tp := range t.Inputs {
			v.starts = append(v.starts, processor.Position{TopicPartition: tp, Offset: at[tp], Metadata: processor.Remark(on.positions[tp].metadata, marksOf(t, on))})
		}
	}
	return v
}

func (v *view) judge(pass bool, loss error) {
	if pass {
		v.passed = append(v.passed, loss)
	} else {
		v.refused = append(v.refused, loss)
	}
}

// state returns the changelogs that hold, or held, something.
func (t *TaskInfo) state(on ground) (logs []processor.TopicPartition) {
	for _, c := range t.Changelogs {
		if on.logs[c.TopicPartition].End > 0 {
			logs = append(logs, c.TopicPartition)
		}
	}
	return logs
}

// lostInput returns what is wrong with the committed position of an input, nil if nothing is.
func lostInput(app string, tp processor.TopicPartition, on ground, marks map[string]int64) error {
	p, log := on.positions[tp], on.logs[tp]
	recreated := on.topics[tp.Topic].recreated(tp.Topic, marks[markName(tp.Topic)])
	if !recreated && p.offset >= log.Start && p.offset <= log.End {
		return nil
	}
	return &LostInputError{Group: app, TopicPartition: tp, Committed: p.offset, Start: log.Start, End: log.End, Recreated: recreated}
}

// lostState returns an error if a changelog is not the one that the committed positions count on. A store that is new in
// the topology has no mark.
func lostState(t *TaskInfo, c Changelog, on ground, marks map[string]int64) error {
	if !on.topics[c.Topic].recreated(c.Topic, marks[markName(c.Topic)]) {
		return nil
	}
	log := on.logs[c.TopicPartition]
	e := &runtime.LostStateError{Task: t.ID, Store: c.Store, Changelog: c.TopicPartition, Start: log.Start, End: log.End, Held: -1}
	for _, tp := range t.Inputs {
		e.Committed = append(e.Committed, processor.Position{TopicPartition: tp, Offset: on.positions[tp].offset})
	}
	return e
}

// beginning returns where to read an input that has no committed position. A partition that was added to a topic after the
// group had begun to read it is read from its first record, whatever the reset policy: what was written before it was
// noticed must not be passed over.
func (g *group) beginning(tp processor.TopicPartition, on ground) int64 {
	first := on.first(tp.Topic)
	if added := first > 0 && tp.Partition >= first; g.cluster.cfg.OffsetReset == Latest && !added {
		return on.logs[tp].End
	}
	return on.logs[tp].Start
}

// siblings adds the other partitions of the inputs' topics where it matters that some of them are older.
func (g *group) siblings(inputs []processor.TopicPartition) []processor.TopicPartition {
	if g.cluster.cfg.OffsetReset != Latest {
		return inputs
	}
	all := map[processor.TopicPartition]bool{}
	for _, tp := range inputs {
		for p := range g.tasks.topics[tp.Topic] {
			all[processor.TopicPartition{Topic: tp.Topic, Partition: p}] = true
		}
	}
	tps := make([]processor.TopicPartition, 0, len(all))
	for tp := range all {
		tps = append(tps, tp)
	}
	return tps
}

// commitStarts commits positions in the name of this member, outside of any transaction.
func (g *group) commitStarts(positions []processor.Position) error {
	m, ok := g.membership()
	if !ok {
		return ErrNotMember
	}
	coordinator, err := g.cluster.control.Coordinator(g.cluster.cfg.App)
	if err != nil {
		return err
	}
	b, err := g.cluster.admin.to(coordinator.Addr())
	if err != nil {
		return err
	}
	answers, err := g.cluster.commitPlainly(b, m, positions)
	if err != nil {
		g.cluster.admin.drop(b)
		_ = g.cluster.control.RefreshCoordinator(g.cluster.cfg.App) // the next try finds out
		return err
	}
	for topic, partitions := range answers {
		for _, p := range partitions {
			if err := code(p.Err); err != nil {
				if misplaced(err) {
					_ = g.cluster.control.RefreshCoordinator(g.cluster.cfg.App)
				}
				return &PartitionError{TopicPartition: processor.TopicPartition{Topic: topic, Partition: p.Partition}, Err: err}
			}
		}
	}
	g.committed(positions)
	return nil
}
