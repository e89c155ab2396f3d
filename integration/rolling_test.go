//go:build chaos

package integration

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store/memory"
)

// pulse sends a record to every partition of a topic every few milliseconds, and measures for how long each partition of the
// output topic, read committed, says nothing.
type pulse struct {
	t       *testing.T
	in      string
	brokers []string
	stop    chan struct{}
	sender  sync.WaitGroup

	mu      sync.Mutex
	last    map[int32]time.Time
	longest map[int32]time.Duration
	sent    int
}

const beat = 20 * time.Millisecond

func newPulse(t *testing.T, brokers []string, in, out string, partitions int32) *pulse {
	t.Helper()
	p := &pulse{t: t, in: in, brokers: brokers, stop: make(chan struct{}), last: map[int32]time.Time{}, longest: map[int32]time.Duration{}}
	conf := brokertest.Config()
	conf.Consumer.IsolationLevel = sarama.ReadCommitted
	conf.Consumer.MaxWaitTime = beat
	consumer, err := sarama.NewConsumer(brokers, conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = consumer.Close() }) // after those of its partitions
	for n := range partitions {
		c, err := consumer.ConsumePartition(out, n, sarama.OffsetNewest)
		if err != nil {
			t.Fatal(err)
		}
		heard := make(chan struct{})
		go func() {
			defer close(heard)
			for range c.Messages() {
				p.heard(n)
			}
		}()
		t.Cleanup(func() {
			c.AsyncClose()
			<-heard
		})
	}
	p.sender.Go(func() { p.send(partitions) })
	return p
}

// end stops sending, and returns how many records each partition was sent.
func (p *pulse) end() int64 {
	close(p.stop)
	p.sender.Wait()
	return int64(p.sent)
}

func (p *pulse) send(partitions int32) {
	conf := brokertest.Config()
	conf.Producer.Partitioner = sarama.NewManualPartitioner
	producer, err := sarama.NewSyncProducer(p.brokers, conf)
	if err != nil {
		p.t.Error(err)
		return
	}
	defer producer.Close()
	for ticker := time.NewTicker(beat); ; {
		select {
		case <-p.stop:
			ticker.Stop()
			return
		case <-ticker.C:
		}
		var messages []*sarama.ProducerMessage
		for n := range partitions {
			messages = append(messages, &sarama.ProducerMessage{Topic: p.in, Partition: n, Key: sarama.StringEncoder(pulseKey(n, partitions)), Value: sarama.StringEncoder("x")})
		}
		if err := producer.SendMessages(messages); err != nil {
			p.t.Error(err)
			return
		}
		p.sent++
	}
}

// pulseKey returns a key of a partition.
func pulseKey(partition, partitions int32) string {
	for i := 0; ; i++ {
		key := fmt.Sprint("pulse", i)
		if processor.PartitionForKey([]byte(key), partitions) == partition {
			return key
		}
	}
}

func (p *pulse) heard(partition int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if last, ok := p.last[partition]; ok {
		p.longest[partition] = max(p.longest[partition], now.Sub(last))
	}
	p.last[partition] = now
}

// reset forgets the pauses so far, and returns the longest.
func (p *pulse) reset() (longest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for n, last := range p.last {
		longest = max(longest, p.longest[n], now.Sub(last))
	}
	clear(p.longest)
	return longest
}

// all waits until every partition is heard of from now on.
func (p *pulse) all() {
	p.t.Helper()
	since := time.Now()
	brokertest.Eventually(p.t, patience, func() (bool, string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for n, last := range p.last {
			if last.Before(since) {
				return false, fmt.Sprintf("partition %d is idle", n)
			}
		}
		return true, ""
	})
}

// Three processes are stopped and started again, one after the other, while records come in. No partition is idle for long:
// its standby has the task before the records pile up, and gives it back when the process has caught up again.
func TestRollingRestart(t *testing.T) {
	needsReal(t)
	for _, name := range []string{"bolt", "memory"} {
		t.Run(name, func(t *testing.T) {
			const partitions, keys, records = 6, 60_000, 180_000
			brokers := brokertest.Brokers(t)
			in, out := brokertest.Topic(t, "in", partitions), brokertest.Topic(t, "out", partitions)
			s := spec{
				Kind: "counting", Brokers: brokers, App: brokertest.UniqueName(t, "app"), In: in, Out: out, Quiet: true, Memory: name == "memory",
				CommitInterval: 100 * time.Millisecond, Standbys: 1,
			}
			var dirs []string
			var children []*child
			up := func(n int) *child {
				c := s
				c.StateDir = dirs[n]
				return spawn(t, c)
			}
			for n := range 3 {
				dirs = append(dirs, t.TempDir())
				children = append(children, up(n))
			}
			brokertest.Produce(t, brokers, in, numbered(records, keys)...)
			waitCommitted(t, brokers, s.App, []string{in}, children[0].alive)
			p := newPulse(t, brokers, in, out, partitions)
			time.Sleep(10 * time.Second) // to measure in, as are the others: nothing that is checked depends on them
			t.Logf("before: no partition was idle for more than %v", p.reset())
			for n, c := range children {
				c.stop()
				time.Sleep(3 * time.Second)
				t.Logf("stop of process %d: no partition was idle for more than %v", n, p.reset())
				children[n] = up(n)
				time.Sleep(12 * time.Second)
				pause := p.reset()
				t.Logf("start of process %d: no partition was idle for more than %v", n, pause)
			}
			sent := p.end()
			waitCommitted(t, brokers, s.App, []string{in}, children[0].alive)
			for _, c := range children {
				c.stop()
			}
			want := numberedCounts(records, keys)
			for n := range partitions {
				want[pulseKey(int32(n), partitions)] = sent
			}
			exactlyCounted(t, out, want)
		})
	}
}

// One of two processes is killed while records come in. The other has its tasks when the session has timed out, and reads
// only what it lacks as a standby.
func TestTakeOverByAStandby(t *testing.T) {
	needsReal(t)
	for _, name := range []string{"bolt", "memory"} {
		t.Run(name, func(t *testing.T) {
			const partitions, keys, records, session = 4, 200_000, 400_000, 6 * time.Second
			brokers := brokertest.Brokers(t)
			in, out := brokertest.Topic(t, "in", partitions), brokertest.Topic(t, "out", partitions)
			cfg := config(t)
			cfg.Standbys, cfg.SessionTimeout, cfg.CommitInterval = 1, session, 100*time.Millisecond
			s := spec{
				Kind: "counting", Brokers: brokers, App: cfg.ApplicationID, In: in, Out: out, Quiet: true, StateDir: t.TempDir(),
				CommitInterval: cfg.CommitInterval, SessionTimeout: session, Standbys: 1,
			}
			if name == "memory" {
				cfg.Store, s.Memory = memory.Opener{}, true
			}
			live := start(t, counting(t, in, out), cfg)
			live.logged(1, "joined the group")
			victim := spawn(t, s)
			live.logged(1, "standing by")
			brokertest.Produce(t, brokers, in, numbered(records, keys)...)
			live.drain()
			before := len(live.restores(live.owned()))
			p := newPulse(t, brokers, in, out, partitions)
			time.Sleep(5 * time.Second)
			t.Logf("before: no partition was idle for more than %v", p.reset())
			victim.kill()
			taken := live.newest(before, partitions/2)
			p.all()
			t.Logf("kill: no partition was idle for more than %v, of which the session takes %v; restored %v", p.reset(), session, taken)
			for _, r := range taken {
				if lag := r.To - r.From; lag > 10_000 {
					t.Errorf("restored %+v: want what a standby lacks", r)
				}
			}
			sent := p.end()
			live.drain()
			live.stop()
			want := numberedCounts(records, keys)
			for n := range partitions {
				want[pulseKey(int32(n), partitions)] = sent
			}
			exactlyCounted(t, out, want)
		})
	}
}

// owned returns how many stores were restored so far.
func (i *instance) owned() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.restored)
}
