package processor

import "fmt"

// StagedBytes returns roughly how much memory waits for the next commit.
func (t *Task) StagedBytes() int {
	n := t.Out.bytes
	for _, s := range t.stores {
		n += s.StagedBytes()
	}
	for _, c := range t.caches {
		if s, ok := c.(Staged); ok {
			n += s.StagedBytes()
		}
	}
	return n
}

// Dirty reports whether there is work to commit: records processed, or anything written by a punctuation.
func (t *Task) Dirty() bool {
	if t.Out.count > 0 || t.punctuated {
		return true
	}
	for _, in := range t.inputs {
		if in.processed {
			return true
		}
	}
	for _, s := range t.stores {
		if s.Dirty() {
			return true
		}
	}
	return false
}

// Moved reports whether a position has moved without any record having been processed: past control records, at the
// end of a transactional input. It is worth a commit, but not soon.
func (t *Task) Moved() bool {
	for _, in := range t.inputs {
		if in.position() != in.prepared {
			return true
		}
	}
	return false
}

// Prepare forwards what the tables hold back and adds to c all that must become durable. The stores' uncommitted layers
// become their committing layers; the caller ends those with Layered.Committed or Layered.Abort. The error, if any, is a
// *RecordError; then c is as it was, and the task is of no further use.
//
// A commit always names a position, though none may have moved: with the positions the broker checks that the task is
// still this member's. Without one, a zombie could commit what its punctuations wrote.
func (t *Task) Prepare(c *Commit) error {
	if err := t.flushCaches(); err != nil {
		return err
	}
	for _, s := range t.stores {
		if _, err := s.Expire(0); err != nil {
			return t.describe(fmt.Errorf("expire store %q: %w", s.Name(), err))
		}
	}
	if err := t.unreadable(); err != nil {
		return t.describe(err)
	}
	t.countCommit()
	records, positions, writes := len(c.Records), len(c.Positions), len(c.Writes)
	c.Records = t.Out.move(c.Records)
	for _, in := range t.inputs {
		if p := in.position(); p != in.prepared {
			c.Positions = append(c.Positions, t.at(in, p))
			in.prepared = p
		}
		in.processed = false
	}
	t.punctuated = false
	for i, s := range t.stores {
		if !s.Dirty() {
			continue
		}
		c.Writes = append(c.Writes, Writes{
			Changelog: TopicPartition{Topic: t.spec.Stores[i].Changelog(t.opt.App), Partition: t.ID.Partition},
			Set:       s.Prepare(),
		})
	}
	wrote := len(c.Records) > records || len(c.Writes) > writes
	if (wrote || t.keptMoved()) && len(c.Positions) == positions && len(t.inputs) > 0 {
		in := t.inputs[0]
		c.Positions = append(c.Positions, t.at(in, in.prepared))
	}
	for _, k := range t.kept {
		k.committed = k.value
	}
	return nil
}

// at returns a position of an input. Stream time and what nodes keep survive in its metadata.
func (t *Task) at(in *input, offset int64) Position {
	return Position{TopicPartition: in.tp, Offset: offset, Metadata: encodeMetadata(in.time, t.commits, t.kept, t.opt.Marks)}
}

// flushCaches goes round until nothing is held back, since a forward may change a table above.
func (t *Task) flushCaches() error {
	t.record, t.inputOf, t.node = nil, nil, -1
	for held := true; held; {
		held = false
		for _, c := range t.caches {
			forward := c.Forward
			for c.Held() > 0 {
				held = true
				if err := t.step(forward); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
