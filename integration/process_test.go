package integration

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/internal/brokertest"
)

// book is text to count, and what its words are counted to.
type book struct {
	lines []string
	want  map[string]int64
}

// write returns lines of one to five words, some of which are much more frequent than others.
func write(rng *rand.Rand, lines, vocabulary int) book {
	b := book{want: map[string]int64{}}
	for range lines {
		var words []string
		for range 1 + rng.IntN(5) {
			word := fmt.Sprintf("w%d", int(float64(vocabulary)*rng.Float64()*rng.Float64()))
			words = append(words, word)
			b.want[word]++
		}
		b.lines = append(b.lines, strings.Join(words, " "))
	}
	return b
}

// part returns the i-th of n parts of the lines, as records that go round the partitions.
func (b book) part(i, n int, partitions int32) []brokertest.Record {
	var records []brokertest.Record
	for at := i * len(b.lines) / n; at < (i+1)*len(b.lines)/n; at++ {
		records = append(records, brokertest.Record{Partition: int32(at) % partitions, Value: []byte(b.lines[at])})
	}
	return records
}

// check compares the newest count of each word with what it should be. Under exactly-once no count is ever followed by
// one that is not higher; at-least-once may count too much, but not too little.
func (b book) check(t *testing.T, brokers []string, out string, exactly bool) {
	t.Helper()
	last := map[string]int64{}
	wrong, tooOften := 0, 0
	for _, r := range settled(t, brokers, out) {
		word, n := string(r.Key), count(t, r)
		if exactly && n <= last[word] {
			if wrong++; wrong < 10 {
				t.Errorf("%s: count %d after %d at %d@%d", word, n, last[word], r.Partition, r.Offset)
			}
		}
		last[word] = n
	}
	for _, word := range slices.Sorted(maps.Keys(b.want)) {
		if last[word] < b.want[word] || exactly && last[word] > b.want[word] {
			if wrong++; wrong < 10 {
				t.Errorf("%s: counted %d, want %d", word, last[word], b.want[word])
			}
		} else if last[word] > b.want[word] {
			tooOften++
		}
	}
	if !exactly {
		t.Logf("%d of %d words are counted more than once", tooOften, len(b.want))
	}
	if wrong > 0 || len(last) != len(b.want) {
		t.Errorf("%d counts are wrong, %d words counted, want %d", wrong, len(last), len(b.want))
	}
}

// killed counts the book in a child that is killed at random moments and started again at once: either when it has done a
// random part of the work, or a random while after its start. A tenth of the book is left for the last child.
func (b book) killed(t *testing.T, s spec, rng *rand.Rand, kills int) {
	t.Helper()
	const partitions = 4
	s.Kind, s.Brokers, s.StateDir = "wordcount", brokertest.Brokers(t), t.TempDir()
	s.In, s.Out, s.App = brokertest.Topic(t, "lines", partitions), brokertest.Topic(t, "counts", partitions), brokertest.UniqueName(t, "words")
	s.CommitInterval = 20 * time.Millisecond
	for i := range 9 {
		brokertest.Produce(t, s.Brokers, s.In, b.part(i, 10, partitions)...)
	}
	work := newProgress(t, s.Brokers, s.App, s.In, partitions)
	for i := range kills {
		done := work.now()
		share := max(0, 0.9*float64(b.steps())-float64(done)) / float64(kills-i+1)
		goal, early := done+int64(2*rng.Float64()*share), time.Duration(rng.Int64N(int64(300*time.Millisecond)))
		c := spawn(t, s)
		if rng.IntN(4) == 0 {
			time.Sleep(early)
		} else {
			work.wait(goal, c.alive)
		}
		c.kill()
		t.Logf("kill %d of %d, when %d of %d steps were committed", i+1, kills, work.now(), b.steps())
	}
	last := spawn(t, s)
	brokertest.Produce(t, s.Brokers, s.In, b.part(9, 10, partitions)...)
	waitCommitted(t, s.Brokers, s.App, wordCountTopics(s.App, s.In), last.alive)
	last.stop()
	b.check(t, s.Brokers, s.Out, !s.AtLeast)
}

// steps is how often the word count moves a record: each line once, each word once.
func (b book) steps() int64 {
	n := int64(len(b.lines))
	for _, c := range b.want {
		n += c
	}
	return n
}

// progress tells how much of its input a word count has committed.
type progress struct {
	t      *testing.T
	group  string
	topics map[string][]int32
	admin  sarama.ClusterAdmin
}

func newProgress(t *testing.T, brokers []string, app, in string, partitions int32) *progress {
	t.Helper()
	cfg := brokertest.Config()
	cfg.Consumer.IsolationLevel = sarama.ReadUncommitted // a commit that is under way does not hold up the answer
	a, err := sarama.NewClusterAdmin(brokers, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	p := &progress{t: t, group: app, topics: map[string][]int32{}, admin: a}
	for _, topic := range wordCountTopics(app, in) {
		for i := range partitions {
			p.topics[topic] = append(p.topics[topic], i)
		}
	}
	return p
}

// now returns the sum of the committed offsets.
func (p *progress) now() (sum int64) {
	resp, err := p.admin.ListConsumerGroupOffsets(p.group, p.topics)
	if err != nil {
		return 0 // there is no group yet
	}
	for _, partitions := range resp.Blocks {
		for _, b := range partitions {
			sum += max(b.Offset, 0)
		}
	}
	return sum
}

// wait returns once more than so many offsets are committed. It looks often: a process does much in a few milliseconds.
func (p *progress) wait(steps int64, alive func() error) {
	p.t.Helper()
	for late := time.Now().Add(patience); p.now() <= steps; time.Sleep(time.Millisecond) {
		if err := alive(); err != nil {
			p.t.Fatal(err)
		}
		if time.Now().After(late) {
			p.t.Fatalf("%d of %d steps are committed", p.now(), steps)
		}
	}
}

// A short version of TestKill9 that runs everywhere.
func TestKillOnce(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]spec{"bolt": {StagedBytes: 16 << 10}, "memory": {StagedBytes: 16 << 10, Memory: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rng := seeded(t)
			write(rng, 5000, 500).killed(t, s, rng, 1)
		})
	}
}

// After Run has returned there is no goroutine left. The application runs in a process of its own, as a broker in this one
// and other tests have theirs.
func TestNoGoroutineIsLeft(t *testing.T) {
	t.Parallel()
	for name, atLeast := range map[string]bool{"exactly once": false, "at least once": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := spec{Kind: "leaks", Brokers: brokertest.Brokers(t), StateDir: t.TempDir(), CommitInterval: 20 * time.Millisecond, AtLeast: atLeast}
			s.In, s.Out, s.App = brokertest.Topic(t, "lines", 2), brokertest.Topic(t, "counts", 2), brokertest.UniqueName(t, "words")
			brokertest.Produce(t, s.Brokers, s.In, write(seeded(t), 100, 10).part(0, 1, 2)...)
			c := spawn(t, s)
			waitCommitted(t, s.Brokers, s.App, []string{s.In}, c.alive)
			c.stop()
		})
	}
}
