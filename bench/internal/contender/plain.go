package contender

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/millrace-streams/millrace/bench/internal/wire"
	"github.com/millrace-streams/millrace/bench/internal/work"
	"github.com/millrace-streams/millrace/processor"
)

// readOnly reads the input and does nothing with it.
func readOnly(ctx context.Context, j Job, say *Voice) error {
	cluster, err := wire.Open(j.Brokers)
	if err != nil {
		return err
	}
	defer cluster.Close()
	cursors, err := cluster.Whole(j.Workload.Topic)
	if err != nil {
		return err
	}
	say.Running()
	r, err := cluster.Read(ctx, cursors)
	if err != nil {
		return err
	}
	seen := 0
	for b := range r.Blocks {
		b.Each(func(_, _ []byte, _ int64) { seen++ })
	}
	if seen != j.Workload.Records {
		return errors.Join(errors.New("not all records were read"), r.Failure())
	}
	say.Say("consumed")
	return nil
}

// plain is the loop that Millrace is compared with: blocks are read ahead, counted in Go maps, and every commit interval
// one transaction takes the last value of each changed key to a changelog and to the output, with the positions. There is no
// store, no group, no restore, and no recovery from errors.
type plain struct {
	job       Job
	cluster   *wire.Cluster
	producer  *wire.Producer
	changelog string
	byWord    string
	tables    []table // by partition
	positions map[wire.Place]int64
	last      time.Time // of the commits

	sent, counted int64 // records, of the second stage and by it
}

// table holds the rows of one partition.
type table struct {
	cells map[string]*cell
	dirty []*cell
	key   []byte // of a window, as it is written
}

type cell struct {
	key     []byte
	count   int64
	changed bool
}

// runPlain does the work in the plain way.
func runPlain(ctx context.Context, j Job, say *Voice) (err error) {
	cluster, err := wire.Open(j.Brokers)
	if err != nil {
		return err
	}
	defer cluster.Close()
	writer, err := wire.Open(j.Brokers) // a fetch must not keep a commit waiting
	if err != nil {
		return err
	}
	defer writer.Close()
	p := &plain{
		job: j, cluster: cluster, positions: map[wire.Place]int64{},
		changelog: j.App + "-" + work.Store + "-changelog", byWord: j.App + "-" + work.Repartition + "-repartition",
	}
	for range j.Workload.Partitions {
		p.tables = append(p.tables, table{cells: map[string]*cell{}})
	}
	for _, topic := range []string{p.changelog, p.byWord} {
		if err := cluster.Create(ctx, topic, j.Workload.Partitions); err != nil {
			return err
		}
	}
	if p.producer, err = writer.NewProducer(j.App, j.Workload.Guarantee); err != nil {
		return err
	}
	say.Running()
	p.last = time.Now()
	switch j.Workload.Kind {
	case work.Words:
		return p.words(ctx)
	case work.Join:
		return errors.Join(p.each(ctx, j.Workload.Table, p.row), p.each(ctx, j.Workload.Topic, p.join))
	case work.Windows:
		return p.each(ctx, j.Workload.Topic, p.countWindows)
	default:
		return p.each(ctx, j.Workload.Topic, p.count)
	}
}

// each gives fn all that a topic holds, and commits.
func (p *plain) each(ctx context.Context, topic string, fn func(wire.Block)) error {
	cursors, err := p.cluster.Whole(topic)
	if err != nil {
		return err
	}
	r, err := p.cluster.Read(ctx, cursors)
	if err != nil {
		return err
	}
	for b := range r.Blocks {
		fn(b)
		p.positions[wire.Place{Topic: b.Topic, Partition: b.Partition}] = b.Next
		if time.Since(p.last) < p.job.Interval {
			continue
		}
		if err := p.commit(); err != nil {
			return err
		}
	}
	return errors.Join(r.Failure(), p.commit())
}

// count counts the keys of a block.
func (p *plain) count(b wire.Block) {
	t := &p.tables[b.Partition]
	b.Each(func(key, _ []byte, _ int64) { t.add(key) })
}

// countWindows counts the keys of a block in the windows of their times. It does not forget windows.
func (p *plain) countWindows(b wire.Block) {
	t := &p.tables[b.Partition]
	b.Each(func(key, _ []byte, ms int64) {
		t.key = binary.BigEndian.AppendUint64(append(t.key[:0], key...), uint64(ms-ms%work.Window.Milliseconds()))
		t.add(t.key)
	})
}

func (t *table) add(key []byte) {
	c := t.cells[string(key)]
	if c == nil {
		c = &cell{key: bytes.Clone(key)}
		t.cells[string(key)] = c
	}
	c.count++
	if !c.changed {
		c.changed = true
		t.dirty = append(t.dirty, c)
	}
}

// commit makes what has changed durable.
func (p *plain) commit() error {
	p.last = time.Now()
	for i := range p.tables {
		t := &p.tables[i]
		values := make([]byte, 0, 8*len(t.dirty))
		for _, c := range t.dirty {
			values = binary.BigEndian.AppendUint64(values, uint64(c.count))
			value := values[len(values)-8:]
			p.producer.Add(wire.Place{Topic: p.changelog, Partition: int32(i)}, c.key, value, p.last)
			p.producer.Add(wire.Place{Topic: p.job.Out, Partition: int32(i)}, c.key, value, p.last)
			c.changed = false
		}
		t.dirty = t.dirty[:0]
	}
	return p.producer.Commit(p.positions)
}

// words counts the words of the input: one loop does both stages, the second on what the first has committed.
func (p *plain) words(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	cursors, err := p.cluster.Whole(p.job.Workload.Topic)
	if err != nil {
		return err
	}
	second, err := p.cluster.Onwards(p.byWord)
	if err != nil {
		return err
	}
	r, err := p.cluster.Read(ctx, append(cursors, second...))
	if err != nil {
		return err
	}
	tick := time.NewTicker(p.job.Interval)
	defer tick.Stop()
	for left := int64(p.job.Workload.Records); left > 0 || p.counted < p.sent; {
		select {
		case b, open := <-r.Blocks:
			switch {
			case !open:
				return r.Failure()
			case b.Topic == p.byWord:
				p.countWords(b)
			default:
				left -= b.Next - b.From
				p.split(b)
			}
			p.positions[wire.Place{Topic: b.Topic, Partition: b.Partition}] = b.Next
		case <-tick.C:
			if err := p.commit(); err != nil {
				return err
			}
		}
	}
	return p.commit()
}

func (p *plain) countWords(b wire.Block) {
	t := &p.tables[b.Partition]
	b.Each(func(key, _ []byte, _ int64) {
		t.add(key)
		p.counted++
	})
}

// split sends the words of a block of lines to the second stage.
func (p *plain) split(b wire.Block) {
	at := time.Now()
	b.Each(func(_, line []byte, _ int64) {
		for word := range bytes.FieldsSeq(line) {
			to := wire.Place{Topic: p.byWord, Partition: processor.PartitionForKey(word, int32(len(p.tables)))}
			p.producer.Add(to, word, word, at)
			p.sent++
		}
	})
}
