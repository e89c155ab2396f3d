package sim

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/millrace-streams/millrace/changelog"
	"github.com/millrace-streams/millrace/eos"
	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
)

// Fault is what goes wrong with one call of the commit protocol.
type Fault uint8

// The faults.
const (
	None         Fault = iota
	Refused            // a retriable answer; nothing happened
	Vanished           // no answer; nothing happened
	Unanswered         // no answer, but it has happened
	Half               // no answer; of several partitions some were written (Produce; else as Unanswered)
	TimedOut           // the broker has timed out the transaction; the call is made, and finds itself fenced
	Fenced             // an answer that the producer is fenced; nothing happened
	StaleGroup         // the group is rebalancing: ILLEGAL_GENERATION (CommitOffsets; else none)
	Unauthorized       // a refusal that no retry can help
)

// committer drives the commit protocol against the cluster.
type committer struct {
	protocol  eos.Transaction
	producer  Producer
	sequences map[processor.TopicPartition]int32
	active    bool // a commit is under way
	fencing   bool // the producer is being started

	commit  processor.Commit
	as      string // the life of the member that the commit is made for
	batches []batch
	ends    map[processor.TopicPartition]int64
}

// batch is what a commit writes to one partition.
type batch struct {
	tp      processor.TopicPartition
	first   int32
	records []processor.Raw
	acked   bool
}

// Commit implements runtime.Port: the calls are made in the Polls that follow.
func (p *Port) Commit(c processor.Commit) {
	p.at(Prepared)
	if p.active || p.fencing {
		panic("sim: a second commit while one is under way")
	}
	p.active, p.commit, p.as = true, c, p.member.name
	p.batches, p.ends = batchesOf(&c), map[processor.TopicPartition]int64{}
	p.protocol.Begin(&c)
}

// batchesOf copies a commit, as encoding it would, by partition in the order of the first record of each.
func batchesOf(c *processor.Commit) []batch {
	var batches []batch
	at := map[processor.TopicPartition]int{}
	add := func(tp processor.TopicPartition, r processor.Raw) {
		i, ok := at[tp]
		if !ok {
			i = len(batches)
			at[tp] = i
			batches = append(batches, batch{tp: tp, first: -1})
		}
		batches[i].records = append(batches[i].records, r)
	}
	for r := range c.Outputs() {
		add(processor.TopicPartition{Topic: r.Topic, Partition: r.Partition},
			processor.Raw{Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value), Timestamp: r.Timestamp, Headers: r.Headers})
	}
	for _, w := range c.Writes {
		for r := range changelog.Records(w.Set) {
			r.Key, r.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
			add(w.Changelog, r)
		}
	}
	return batches
}

// advance makes the calls that a Poll may make, and reports the outcome when the last is made.
func (p *Port) advance(e *runtime.Events) {
	if !p.active && !p.fencing {
		return
	}
	for n := 0; p.protocol.Next().Kind != eos.Done; n++ {
		if p.cfg.CallsPerPoll > 0 && n == p.cfg.CallsPerPoll {
			return
		}
		if p.cfg.CallsPerPoll == 0 && n > 0 && p.protocol.Next().Delay > 0 {
			return // what has to wait, waits for another Poll
		}
		kind := p.protocol.Next().Kind
		err := p.call(kind)
		p.protocol.Answer(p.judge(kind, err), err)
	}
	if p.fencing {
		p.fencing = false
		return
	}
	p.active = false
	e.Commit = &runtime.CommitDone{Result: p.protocol.Result()}
	if e.Commit.Outcome == eos.Committed {
		e.Commit.Ends = p.ends
	}
	p.commit, p.batches, p.ends = processor.Commit{}, nil, nil
}

func (p *Port) judge(k eos.Kind, err error) eos.Verdict {
	if err == errUnauthorized {
		return eos.Broken
	}
	return verdict(err)
}

var errUnauthorized = fmt.Errorf("sim: not authorized")

// call makes one call, with the fault that is injected into it.
func (p *Port) call(k eos.Kind) error {
	fault := None
	if p.cfg.Fault != nil {
		fault = p.cfg.Fault(k)
	}
	p.at(Before(k))
	switch fault {
	case Refused:
		return fmt.Errorf("%w: injected", ErrConcurrentTransactions)
	case Vanished:
		return fmt.Errorf("%w: injected", ErrNoAnswer)
	case Fenced:
		return fmt.Errorf("%w: injected", ErrFenced)
	case Unauthorized:
		return errUnauthorized
	case StaleGroup:
		if k == eos.CommitOffsets {
			return fmt.Errorf("%w: injected", ErrIllegalGeneration)
		}
	case TimedOut:
		p.cluster.Expire(p.cfg.ID)
	}
	silent := fault == Unanswered || fault == Half
	err := p.request(k, fault)
	p.at(After(k))
	if silent {
		return fmt.Errorf("%w: injected", ErrNoAnswer)
	}
	if k == eos.Produce && err == nil {
		p.acknowledge()
	}
	return err
}

func (p *Port) request(k eos.Kind, fault Fault) error {
	id := p.cfg.ID
	switch k {
	case eos.InitProducer:
		producer, err := p.cluster.InitProducer(id)
		if err == nil {
			p.producer, p.sequences = producer, map[processor.TopicPartition]int32{}
		}
		return err
	case eos.AddPartitions:
		var tps []processor.TopicPartition
		for _, b := range p.batches {
			tps = append(tps, b.tp)
		}
		return p.cluster.AddPartitions(id, p.producer, tps)
	case eos.Produce:
		return p.produce(fault)
	case eos.AddOffsets:
		return p.cluster.AddOffsets(id, p.producer, p.group.name)
	case eos.CommitOffsets:
		return p.commitOffsets()
	default:
		return p.cluster.EndTransaction(id, p.producer, true)
	}
}

// produce sends all batches that are not acknowledged, or the first half of them.
func (p *Port) produce(fault Fault) error {
	batches := p.batches
	if fault == Half {
		batches = batches[:(len(batches)+1)/2]
	}
	for i := range batches {
		b := &batches[i]
		if b.acked {
			continue
		}
		base, err := p.send(b)
		if err != nil {
			return err
		}
		p.ends[b.tp] = base + int64(len(b.records))
	}
	return nil
}

func (p *Port) acknowledge() {
	for i := range p.batches {
		p.batches[i].acked = true
	}
}

func (p *Port) send(b *batch) (int64, error) {
	if p.cfg.Guarantee == eos.AtLeastOnce {
		return p.cluster.Append(b.tp, b.records...)
	}
	if b.first < 0 {
		b.first = p.sequences[b.tp]
		p.sequences[b.tp] += int32(len(b.records))
	}
	return p.cluster.Produce(p.cfg.ID, p.producer, b.tp, b.first, b.records)
}

// commitOffsets acts for the member as it was when the commit was prepared: who was thrown out and has joined again must
// not commit what the former life has done.
func (p *Port) commitOffsets() error {
	m := Membership{Member: p.as, Generation: p.generation}
	if !p.deaf && !p.member.gone {
		m.Generation = p.group.generation // heartbeats go on beside the loop
	}
	positions := slices.Clone(p.commit.Positions)
	if p.cfg.Guarantee == eos.AtLeastOnce {
		return p.group.CommitOffsets(m, positions)
	}
	return p.cluster.CommitOffsets(p.cfg.ID, p.producer, m, positions)
}
