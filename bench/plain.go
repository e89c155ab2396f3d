package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/processor"
)

// readOnly reads the input and does nothing with it.
func readOnly(ctx context.Context, j job) (s span, err error) {
	client, err := connect(j.Brokers)
	if err != nil {
		return s, err
	}
	defer client.Close()
	cursors, err := fromStart(client, j.Workload.Topic)
	if err != nil {
		return s, err
	}
	s.began = now()
	r, err := read(ctx, client, cursors)
	if err != nil {
		return s, err
	}
	seen := 0
	for b := range r.blocks {
		b.each(func(*sarama.Record) { seen++ })
	}
	s.ended = now()
	if seen != j.Workload.Records {
		return s, errors.Join(errors.New("not all records were read"), r.failure())
	}
	return s, r.failure()
}

// plain is the loop that Millrace is compared with: blocks are read ahead, counted in Go maps, and every commit interval
// one transaction takes the last value of each changed key to a changelog and to the output, with the positions.
type plain struct {
	job       job
	producer  *producer
	tables    [partitions]table
	positions map[place]int64
	last      time.Time // of the commits

	sent, counted int64 // records, of the second stage and by it
}

// table counts the keys of one partition.
type table struct {
	cells map[string]*cell
	dirty []*cell
}

type cell struct {
	key     []byte
	count   int64
	changed bool
}

// runPlain does the work in the plain way.
func runPlain(ctx context.Context, j job) (s span, err error) {
	for _, topic := range j.internalTopics() {
		if err := createTopic(ctx, j.Brokers, topic, nil); err != nil {
			return s, err
		}
	}
	client, err := connect(j.Brokers)
	if err != nil {
		return s, err
	}
	defer client.Close()
	p := &plain{job: j, positions: map[place]int64{}}
	for i := range p.tables {
		p.tables[i].cells = map[string]*cell{}
	}
	if p.producer, err = newProducer(j.Brokers, j.App); err != nil {
		return s, err
	}
	defer p.producer.client.Close()
	cursors, err := fromStart(client, j.Workload.Topic)
	if err != nil {
		return s, err
	}
	s.began = now()
	p.last = s.began.at
	if j.Workload.Kind == wordCount {
		err = p.words(ctx, client, cursors)
	} else {
		err = p.keys(ctx, client, cursors)
	}
	s.ended = now()
	return s, err
}

// keys counts the keys of the input.
func (p *plain) keys(ctx context.Context, client sarama.Client, cursors []*cursor) error {
	r, err := read(ctx, client, cursors)
	if err != nil {
		return err
	}
	for b := range r.blocks {
		p.count(b)
		if time.Since(p.last) < p.job.Interval {
			continue
		}
		if err := p.commit(); err != nil {
			return err
		}
	}
	return errors.Join(r.failure(), p.commit())
}

// count counts the keys of a block.
func (p *plain) count(b block) {
	t := &p.tables[b.partition]
	b.each(func(r *sarama.Record) {
		c := t.cells[string(r.Key)]
		if c == nil {
			c = &cell{key: bytes.Clone(r.Key)}
			t.cells[string(r.Key)] = c
		}
		p.counted++
		c.count++
		if !c.changed {
			c.changed = true
			t.dirty = append(t.dirty, c)
		}
	})
	p.positions[place{b.topic, b.partition}] = b.next
}

// commit makes one transaction of what has changed.
func (p *plain) commit() error {
	p.last = time.Now()
	changelog := p.job.internalTopics()[0]
	for i := range p.tables {
		t := &p.tables[i]
		values := make([]byte, 0, 8*len(t.dirty))
		for _, c := range t.dirty {
			values = binary.BigEndian.AppendUint64(values, uint64(c.count))
			value := values[len(values)-8:]
			p.producer.add(place{changelog, int32(i)}, c.key, value, p.last)
			p.producer.add(place{p.job.Out, int32(i)}, c.key, value, p.last)
			c.changed = false
		}
		t.dirty = t.dirty[:0]
	}
	return p.producer.commit(p.positions)
}

// words counts the words of the input: one loop does both stages, the second on what the first has committed.
func (p *plain) words(ctx context.Context, client sarama.Client, lines []*cursor) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	byWord := p.job.internalTopics()[1]
	cursors := lines
	for i := range int32(partitions) {
		cursors = append(cursors, &cursor{topic: byWord, partition: i, end: endless})
	}
	r, err := read(ctx, client, cursors)
	if err != nil {
		return err
	}
	tick := time.NewTicker(p.job.Interval)
	defer tick.Stop()
	for left := int64(p.job.Workload.Records); left > 0 || p.counted < p.sent; {
		select {
		case b, open := <-r.blocks:
			switch {
			case !open:
				return r.failure()
			case b.topic == byWord:
				p.count(b)
			default:
				left -= b.next - b.from
				p.split(b, byWord)
			}
		case <-tick.C:
			if err := p.commit(); err != nil {
				return err
			}
		}
	}
	return p.commit()
}

// split sends the words of a block of lines to the second stage.
func (p *plain) split(b block, byWord string) {
	at := time.Now()
	b.each(func(r *sarama.Record) {
		for word := range bytes.FieldsSeq(r.Value) {
			p.producer.add(place{byWord, processor.PartitionForKey(word, partitions)}, word, word, at)
			p.sent++
		}
	})
	p.positions[place{b.topic, b.partition}] = b.next
}
