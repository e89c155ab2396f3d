package measure

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace-streams/millrace/bench/internal/contender"
	"github.com/millrace-streams/millrace/bench/internal/wire"
	"github.com/millrace-streams/millrace/bench/internal/work"
)

// traffic sends records at a steady rate to an application that counts them per key, and reads its committed counts. Record i
// has key i modulo the number of keys, so that a count tells which record it counts, and when that was due.
type traffic struct {
	keys, rate    int
	writes, reads *wire.Cluster
	loader        *wire.Loader
	reader        *wire.Reader
	cancel        context.CancelFunc
	tasks         sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{} // closed after outputs, and replaced
	stopped bool
	burst   int       // records that are sent before all others, as fast as possible
	began   time.Time // when the first after those is due
	sent    int
	counts  []int64 // the last that was seen of each key
	seen    int     // records that are counted in those
	watch   func(arrival)
	err     error
}

// arrival is an output as it is read.
type arrival struct {
	partition int32
	skipped   int       // records of the same key that were counted before this one and not seen
	due, at   time.Time // of the record that is counted; due is zero in the burst
}

// newTraffic returns traffic for a job, which does not send yet.
func newTraffic(ctx context.Context, j contender.Job) (*traffic, error) {
	t := &traffic{keys: j.Workload.Distinct, rate: j.Workload.Rate, counts: make([]int64, j.Workload.Distinct), changed: make(chan struct{})}
	t.watch = func(arrival) {}
	ctx, t.cancel = context.WithCancel(ctx)
	var err error
	if t.writes, err = wire.Open(j.Brokers); err != nil {
		return nil, err
	}
	t.loader = wire.NewLoader(t.writes, j.Workload.Topic, j.Workload.Partitions)
	if t.reads, err = wire.Open(j.Brokers); err != nil {
		return nil, errors.Join(err, t.writes.Close())
	}
	cursors, err := t.reads.Onwards(j.Out)
	if err == nil {
		t.reader, err = t.reads.Read(ctx, cursors)
	}
	if err != nil {
		return nil, errors.Join(err, t.reads.Close(), t.writes.Close())
	}
	t.tasks.Go(t.read)
	return t, nil
}

// close ends everything.
func (t *traffic) close() {
	t.cancel()
	t.mu.Lock()
	t.stopped = true
	t.mu.Unlock()
	t.tasks.Wait()
	_, _ = t.reads.Close(), t.writes.Close()
}

// fill sends a record of each key, as fast as possible, and waits until they are counted.
func (t *traffic) fill(ctx context.Context) error {
	t.mu.Lock()
	t.burst = t.keys
	t.mu.Unlock()
	if err := t.send(t.keys); err != nil {
		return err
	}
	return t.counted(ctx)
}

// start begins to send at the rate.
func (t *traffic) start() {
	t.mu.Lock()
	t.began = time.Now()
	t.mu.Unlock()
	t.tasks.Go(func() {
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for range tick.C {
			err := t.send(t.burst + int(time.Since(t.began)*time.Duration(t.rate)/time.Second))
			t.mu.Lock()
			t.err = errors.Join(t.err, err)
			over := t.stopped || t.err != nil
			t.mu.Unlock()
			if over {
				return
			}
		}
	})
}

// pace is how often records are sent.
const pace = 2 * time.Millisecond

// send sends records up to a number.
func (t *traffic) send(upTo int) error {
	t.mu.Lock()
	from, at := t.sent, time.Now()
	if t.stopped {
		upTo = from
	}
	t.sent = max(from, upTo)
	t.mu.Unlock()
	for i := from; i < upTo; i++ {
		if err := t.loader.Add([]byte(work.Word(i%t.keys)), []byte("v"), at); err != nil {
			return fmt.Errorf("send: %w", err)
		}
	}
	return t.loader.Send()
}

// finish stops sending and waits until all is counted.
func (t *traffic) finish(ctx context.Context) error {
	t.mu.Lock()
	t.stopped = true
	t.mu.Unlock()
	return t.counted(ctx)
}

// counted waits until every record that was sent is counted, each once.
func (t *traffic) counted(ctx context.Context) error {
	return t.until(ctx, func() bool { return t.seen >= t.sent })
}

// until waits until a condition holds, which is looked at after outputs.
func (t *traffic) until(ctx context.Context, condition func() bool) error {
	for {
		t.mu.Lock()
		err, held, changed := t.err, condition(), t.changed
		t.mu.Unlock()
		if held || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("outputs are missing: %w", context.Cause(ctx))
		}
	}
}

// onArrival calls fn for all outputs from now on.
func (t *traffic) onArrival(fn func(arrival)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watch = fn
}

// read takes the outputs.
func (t *traffic) read() {
	for b := range t.reader.Blocks {
		at := time.Now()
		t.mu.Lock()
		b.Each(func(key, value []byte, _ int64) { t.take(b.Partition, key, value, at) })
		close(t.changed)
		t.changed = make(chan struct{})
		t.mu.Unlock()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.reader.Failure(); !errors.Is(err, context.Canceled) {
		t.err = errors.Join(t.err, err)
	}
	close(t.changed)
	t.changed = make(chan struct{})
}

func (t *traffic) take(partition int32, key, value []byte, at time.Time) {
	n, err := work.Number(key)
	if err != nil || n >= t.keys || len(value) != 8 {
		t.err = fmt.Errorf("%q: %q is no count", key, value)
		return
	}
	count, before := int64(binary.BigEndian.Uint64(value)), t.counts[n]
	if count <= before {
		t.err = fmt.Errorf("%q was counted as %d and then as %d: something is lost or doubled", key, before, count)
		return
	}
	t.counts[n] = count
	t.seen += int(count - before)
	t.watch(arrival{partition: partition, skipped: int(count - before - 1), due: t.due(int(count-1)*t.keys + n), at: at})
}

// due is when a record had to be sent.
func (t *traffic) due(record int) time.Time {
	if record < t.burst {
		return time.Time{}
	}
	return t.began.Add(time.Duration(record-t.burst) * time.Second / time.Duration(t.rate))
}

// table is what the output must be.
func (t *traffic) table() *work.Table {
	t.mu.Lock()
	defer t.mu.Unlock()
	want := make([]int64, t.keys)
	for n := range want {
		want[n] = int64((t.sent - n + t.keys - 1) / t.keys)
	}
	return work.Counts(want)
}
