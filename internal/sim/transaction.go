package sim

import (
	"fmt"
	"slices"

	"github.com/millrace-streams/millrace/processor"
)

// Producer is the identity of a transactional producer.
type Producer struct {
	ID    int64
	Epoch int16
}

// transaction is what the coordinator knows of a transactional id.
type transaction struct {
	producer   Producer
	state      state
	committing bool // the decision, from deciding on
	partitions []processor.TopicPartition
	group      *Group
	offsets    []processor.Position // pending
	unwritten  int                  // markers
}

type state uint8

const (
	idle     state = iota // nothing was added yet, or the last one was aborted for the producer
	ongoing               // something was added
	deciding              // decided, markers outstanding
	decided               // all markers written
)

// marker is the end of a transaction in one place.
type marker struct {
	owner     *transaction
	partition processor.TopicPartition
	group     *Group // set instead of partition
}

// InitProducer starts a new epoch of a transactional id. What the id left open is aborted; while the markers of that, or
// of an earlier decision, are outstanding the answer is ErrConcurrentTransactions.
func (c *Cluster) InitProducer(id string) (Producer, error) {
	t := c.transactions[id]
	if t == nil {
		c.lastProducer++
		t = &transaction{producer: Producer{ID: c.lastProducer}}
		c.transactions[id] = t
		return t.producer, nil
	}
	c.Expire(id)
	if t.state == deciding {
		return Producer{}, fmt.Errorf("%w: %q", ErrConcurrentTransactions, id)
	}
	t.producer.Epoch++
	t.reset(idle)
	return t.producer, nil
}

// Expire ends an open transaction for its age: it is aborted and its producer fenced. It reports whether there was one.
func (c *Cluster) Expire(id string) bool {
	t := c.transactions[id]
	if t == nil || t.state != ongoing {
		return false
	}
	t.producer.Epoch++
	c.decide(t, false)
	if t.state == decided {
		t.reset(idle)
	}
	return true
}

// Open reports whether a transactional id has an open transaction.
func (c *Cluster) Open(id string) bool {
	t := c.transactions[id]
	return t != nil && t.state == ongoing
}

func (t *transaction) reset(s state) {
	t.state, t.partitions, t.offsets, t.group = s, nil, nil, nil
}

// begin returns the transaction of a producer, opened if need be.
func (c *Cluster) begin(id string, p Producer) (*transaction, error) {
	t, err := c.current(id, p)
	switch {
	case err != nil:
		return nil, err
	case t.state == deciding:
		return nil, fmt.Errorf("%w: %q", ErrConcurrentTransactions, id)
	case t.state != ongoing:
		t.reset(ongoing)
	}
	return t, nil
}

func (c *Cluster) current(id string, p Producer) (*transaction, error) {
	if t := c.transactions[id]; t != nil && t.producer == p {
		return t, nil
	}
	return nil, fmt.Errorf("%w: %q, producer %d, epoch %d", ErrFenced, id, p.ID, p.Epoch)
}

// AddPartitions adds partitions to a transaction, which begins with it if it is not open.
func (c *Cluster) AddPartitions(id string, p Producer, partitions []processor.TopicPartition) error {
	for _, tp := range partitions {
		if _, err := c.log(tp); err != nil {
			return err
		}
	}
	t, err := c.begin(id, p)
	if err != nil {
		return err
	}
	for _, tp := range partitions {
		if !slices.Contains(t.partitions, tp) {
			t.partitions = append(t.partitions, tp)
		}
	}
	return nil
}

// Produce writes a batch to a partition that was added to the transaction, first being the sequence number of its first
// record: they run on per partition and start at 0 with each epoch. It returns the offset of the first record; a batch
// that is sent again is not written again.
func (c *Cluster) Produce(id string, p Producer, tp processor.TopicPartition, first int32, records []processor.Raw) (int64, error) {
	l, err := c.log(tp)
	if err != nil {
		return 0, err
	}
	t, err := c.current(id, p)
	if err != nil {
		return 0, err
	}
	if t.state != ongoing || !slices.Contains(t.partitions, tp) {
		return 0, fmt.Errorf("%w: %s was not added to the transaction of %q", ErrInvalidTransaction, tp, id)
	}
	return l.produce(p, first, records)
}

// AddOffsets adds a group's offsets to a transaction, which begins with it if it is not open.
func (c *Cluster) AddOffsets(id string, p Producer, group string) error {
	t, err := c.begin(id, p)
	if err != nil {
		return err
	}
	t.group = c.group(group)
	return nil
}

// CommitOffsets makes positions part of a transaction, in the name of a member of the group.
func (c *Cluster) CommitOffsets(id string, p Producer, m Membership, positions []processor.Position) error {
	t, err := c.current(id, p)
	if err != nil {
		return err
	}
	if t.state != ongoing || t.group == nil {
		return fmt.Errorf("%w: no offsets were added to the transaction of %q", ErrInvalidTransaction, id)
	}
	if err := t.group.check(m); err != nil {
		return err
	}
	for _, pos := range positions {
		t.offsets = slices.DeleteFunc(t.offsets, func(o processor.Position) bool { return o.TopicPartition == pos.TopicPartition })
		t.offsets = append(t.offsets, pos)
	}
	return nil
}

// EndTransaction decides a transaction. The same decision told again is no error.
func (c *Cluster) EndTransaction(id string, p Producer, commit bool) error {
	t, err := c.current(id, p)
	if err != nil {
		return err
	}
	switch {
	case t.state == ongoing:
		c.decide(t, commit)
		return nil
	case (t.state == deciding || t.state == decided) && t.committing == commit:
		if t.state == deciding {
			return fmt.Errorf("%w: %q", ErrConcurrentTransactions, id)
		}
		return nil
	}
	return fmt.Errorf("%w: nothing to end for %q", ErrInvalidTransaction, id)
}

func (c *Cluster) decide(t *transaction, commit bool) {
	t.state, t.committing = deciding, commit
	for _, tp := range t.partitions {
		c.markers = append(c.markers, marker{owner: t, partition: tp})
	}
	t.unwritten = len(t.partitions)
	if t.group != nil {
		c.markers = append(c.markers, marker{owner: t, group: t.group})
		t.unwritten++
	}
	if !c.LateMarkers {
		c.WriteMarkers()
	}
}

// Markers returns how many markers of decided transactions are not written yet.
func (c *Cluster) Markers() int { return len(c.markers) }

// WriteMarkers writes all markers that are outstanding.
func (c *Cluster) WriteMarkers() {
	for len(c.markers) > 0 {
		c.WriteMarker(0)
	}
}

// WriteMarker writes the i-th of the outstanding markers.
func (c *Cluster) WriteMarker(i int) {
	m := c.markers[i]
	c.markers = slices.Delete(c.markers, i, i+1)
	t := m.owner
	if m.group != nil {
		if t.committing {
			m.group.commit(t.offsets)
		}
		t.offsets = nil
	} else if l, err := c.log(m.partition); err == nil {
		l.mark(t.producer.ID, t.committing)
	}
	if t.unwritten--; t.unwritten == 0 {
		t.state = decided
		t.partitions = nil
	}
}

// undecided reports whether an open or undecided transaction holds an offset for the partition.
func (c *Cluster) undecided(g *Group, tp processor.TopicPartition) bool {
	for _, t := range c.transactions {
		if t.group == g && slices.ContainsFunc(t.offsets, func(o processor.Position) bool { return o.TopicPartition == tp }) {
			return true
		}
	}
	return false
}
