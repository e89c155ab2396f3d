package kafka

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/eos"
	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/internal/seed"
	"github.com/millrace-streams/millrace/processor"
)

// copier is a worker that copies its input to a topic. It does with its port what the runtime does, and no more.
type copier struct {
	port     runtime.Port
	out      string
	tasks    map[processor.TaskID]*copying
	inFlight []*copying
	stopping bool
}

// copying is a task of a copier.
type copying struct {
	id                    processor.TaskID
	tp                    processor.TopicPartition
	committed, sent, next int64
	outputs               []processor.Output
	finishing, lost       bool
}

func (w *copier) run() {
	for !w.stopping || len(w.tasks) > 0 || len(w.inFlight) > 0 {
		e := w.port.Poll(20 * time.Millisecond)
		for _, f := range e.Fetched { // before anything that starts to read anew
			w.take(f)
		}
		w.settle(e.Commit)
		for _, id := range e.Lost {
			w.lose(id)
		}
		for _, id := range e.Revoked {
			w.finish(w.tasks[id])
		}
		for _, l := range e.Granted {
			in := l.Inputs[0]
			w.tasks[l.Task] = &copying{id: l.Task, tp: in.TopicPartition, committed: in.Offset, next: in.Offset}
			w.port.Fetch(in.TopicPartition, in.Offset)
		}
		if w.stopping = w.stopping || e.Stop; w.stopping {
			for _, t := range w.tasks {
				w.finish(t)
			}
		}
		w.commit()
		w.release()
	}
}

func (w *copier) finish(t *copying) {
	if t != nil && !t.finishing {
		t.finishing = true
		w.port.StopFetch(t.tp)
	}
}

func (w *copier) lose(id processor.TaskID) {
	if t := w.tasks[id]; t != nil {
		t.lost = true
		w.port.StopFetch(t.tp)
		delete(w.tasks, id)
		w.port.Closed(id)
	}
}

func (w *copier) take(f runtime.Fetched) {
	for _, t := range w.tasks {
		if t.tp != f.TopicPartition || t.finishing {
			continue
		}
		for _, r := range f.Records {
			t.outputs = append(t.outputs, processor.Output{Topic: w.out, Partition: t.tp.Partition, Key: r.Key, Value: r.Value, Timestamp: r.Timestamp})
		}
		t.next = f.Next
		w.port.Consumed(f.TopicPartition, f.Bytes)
	}
}

func (w *copier) commit() {
	if len(w.inFlight) > 0 {
		return
	}
	var c processor.Commit
	for _, t := range w.tasks {
		if t.next > t.committed {
			c.Join(processor.Commit{Records: [][]processor.Output{t.outputs}, Positions: []processor.Position{{TopicPartition: t.tp, Offset: t.next}}})
			t.sent, t.outputs = t.next, nil
			w.inFlight = append(w.inFlight, t)
		}
	}
	if len(w.inFlight) > 0 {
		w.port.Commit(c)
	}
}

func (w *copier) settle(done *runtime.CommitDone) {
	if done == nil {
		return
	}
	for _, t := range w.inFlight {
		switch {
		case t.lost:
		case done.Outcome == eos.Committed:
			t.committed = t.sent
		default: // go back; when it is not known to where, ask for the task again
			t.outputs, t.next = nil, t.committed
			if done.Outcome == eos.Unknown {
				w.finish(t)
			} else if !t.finishing {
				w.port.Fetch(t.tp, t.committed)
			}
		}
	}
	w.inFlight = nil
}

func (w *copier) release() {
	for id, t := range w.tasks {
		if t.finishing && !slices.Contains(w.inFlight, t) && t.next == t.committed {
			delete(w.tasks, id)
			w.port.Release(id)
			w.port.Closed(id)
		}
	}
}

// TestExactlyOnceWhileProcessesComeAndGo copies a topic with processes that stop, start, are thrown out of the group and
// have their producers fenced, in a random order.
func TestExactlyOnceWhileProcessesComeAndGo(t *testing.T) {
	t.Parallel()
	rng := seed.Rand(t)
	brokers := brokertest.Brokers(t)
	in, out, app := brokertest.Topic(t, "in", 4), brokertest.Topic(t, "out", 4), brokertest.UniqueName(t, "app")

	var workers sync.WaitGroup
	running := map[string]*process{}
	up := func(name string) {
		cfg := options(brokers, app, name)
		cfg.Workers = 1 + rng.IntN(2)
		p := start(t, cfg, tasks(in, 4, "")...)
		for _, port := range p.ports {
			w := &copier{port: port, out: out, tasks: map[processor.TaskID]*copying{}}
			workers.Go(w.run)
		}
		running[name] = p
	}
	written := 0
	for range 12 {
		var records []brokertest.Record
		for range 20 {
			records = append(records, brokertest.KV(fmt.Sprint(written), fmt.Sprint(written)))
			written++
		}
		brokertest.Produce(t, brokers, in, records...)
		name := fmt.Sprint("p", rng.IntN(3))
		switch p := running[name]; {
		case p == nil:
			up(name)
		case rng.IntN(3) == 0:
			p.stop()
			delete(running, name)
		case rng.IntN(2) == 0:
			if m, ok := p.cluster.group.membership(); ok {
				_ = p.cluster.group.sendLeave(m, "a test")
			}
		default:
			fence(t, brokers, app+"-"+name+"-0")
		}
		time.Sleep(time.Duration(rng.IntN(150)) * time.Millisecond) // not to synchronise: the next event comes at any moment
	}
	if len(running) == 0 {
		up("p9")
	}
	var got []string
	brokertest.Eventually(t, patience, func() (bool, string) {
		got = values(brokertest.ReadCommitted(t, brokers, out))
		return len(got) >= written, fmt.Sprintf("%d of %d records are copied", len(got), written)
	})
	for _, p := range running {
		p.stop()
	}
	workers.Wait()
	got = values(brokertest.ReadCommitted(t, brokers, out))
	slices.Sort(got)
	if n := len(slices.Compact(slices.Clone(got))); len(got) != written || n != written {
		t.Errorf("%d records were copied, %d of them different; %d were written", len(got), n, written)
	}
}
