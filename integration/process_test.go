package integration

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

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
	wrong := 0
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
		}
	}
	if wrong > 0 || len(last) != len(b.want) {
		t.Errorf("%d counts are wrong, %d words counted, want %d", wrong, len(last), len(b.want))
	}
}

// killed runs the word count in a child that is killed and started again, once for each part of the book but the last.
func (b book) killed(t *testing.T, s spec, rng *rand.Rand, kills int, longest time.Duration) {
	t.Helper()
	const partitions = 4
	s.Kind, s.Brokers, s.StateDir = "wordcount", brokertest.Brokers(t), t.TempDir()
	s.In, s.Out, s.App = brokertest.Topic(t, "lines", partitions), brokertest.Topic(t, "counts", partitions), brokertest.UniqueName(t, "words")
	for i := range kills {
		c := spawn(t, s)
		brokertest.Produce(t, s.Brokers, s.In, b.part(i, kills+1, partitions)...)
		time.Sleep(time.Duration(rng.Int64N(int64(longest)))) // any moment will do
		c.kill()
	}
	last := spawn(t, s)
	brokertest.Produce(t, s.Brokers, s.In, b.part(kills, kills+1, partitions)...)
	waitCommitted(t, s.Brokers, s.App, wordCountTopics(s.App, s.In), last.alive)
	last.stop()
	b.check(t, s.Brokers, s.Out, !s.AtLeast)
}

// A short version of TestKill9 that runs everywhere.
func TestKillOnce(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]spec{"bolt": {}, "memory": {Memory: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rng := seeded(t)
			s.CommitInterval = 20 * time.Millisecond
			write(rng, 2000, 200).killed(t, s, rng, 1, 300*time.Millisecond)
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
