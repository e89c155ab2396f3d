package sim_test

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/eos"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/bolt"
	"github.com/millrace-streams/millrace/store/memory"
	"github.com/millrace-streams/millrace/topology"
)

var (
	lines  = topology.NewTopic("lines", serde.String, serde.String)
	byWord = topology.NewRepartition("by-word", serde.String, serde.String)
	counts = store.NewKeyValue("counts", serde.String, serde.Int64)
	totals = topology.NewTopic("word-counts", serde.String, serde.Int64)
)

func wordCount(t *testing.T) *topology.Topology {
	t.Helper()
	b := topology.NewBuilder()
	words := topology.FlatMapValues(topology.From(b, lines), strings.Fields)
	grouped := topology.GroupBy(words, byWord, func(_, word string) string { return word })
	topology.To(topology.Changes(topology.Count(grouped, counts)), totals)
	topo, err := b.Build()
	must(t, err)
	return topo
}

// preCounted is wordCount with the words counted before the repartition topic already.
func preCounted(t *testing.T) *topology.Topology {
	t.Helper()
	b := topology.NewBuilder()
	words := topology.FlatMapValues(topology.From(b, lines), strings.Fields)
	partial := topology.NewRepartition("by-word", serde.String, serde.Int64)
	grouped := topology.PreCount(words, partial, func(_, word string) string { return word })
	topology.To(topology.Changes(topology.Combine(grouped, counts)), totals)
	topo, err := b.Build()
	must(t, err)
	return topo
}

// seeds calls fn for the seed of MILLRACE_SEED, or for MILLRACE_SEEDS seeds, or for as many as fit into the time given.
func seeds(t *testing.T, budget time.Duration, fn func(seed uint64)) {
	t.Helper()
	if s := os.Getenv("MILLRACE_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		must(t, err)
		fn(seed)
		return
	}
	n, _ := strconv.Atoi(os.Getenv("MILLRACE_SEEDS"))
	first := rand.Uint64() >> 16
	done, begun := 0, time.Now()
	for n > 0 && done < n || n == 0 && time.Since(begun) < budget {
		fn(first + uint64(done))
		done++
	}
	t.Logf("%d seeds from %d", done, first)
}

// draw makes the plan of a seed.
func draw(rng *rand.Rand, g eos.Guarantee) plan {
	return plan{
		guarantee: g, opener: memory.Opener{},
		processes: 2 + rng.IntN(2), standbys: rng.IntN(3), everyUpdate: rng.IntN(2) == 0,
		faults: []int{0, 20, 100}[rng.IntN(3)], crashes: rng.IntN(6), zombies: g == eos.ExactlyOnce && rng.IntN(2) == 0,
		callsAtOnce: rng.IntN(4) == 0, batch: 1 + rng.IntN(20), staged: []int{500, 3000, 1 << 20}[rng.IntN(3)],
		warmups: 1 + rng.IntN(2), acceptable: []int64{0, 5, 10_000}[rng.IntN(3)],
	}
}

// countWords runs one seed and checks the outcome against a plain map.
func countWords(t testing.TB, seed uint64, topo *topology.Topology, change func(*plan)) {
	rng := rand.New(rand.NewPCG(seed, 0))
	p := draw(rng, eos.ExactlyOnce)
	change(&p)
	partitions := int32(2 + rng.IntN(3))
	w := newWorld(t, seed, topo, map[string]int32{"lines": partitions, "word-counts": 1 + rng.Int32N(3)}, p)
	input, want := w.speak(rng, partitions)
	w.run(input)
	w.check(want)
	w.end()
}

// speak makes the input: lines of words, some words rare.
func (w *world) speak(rng *rand.Rand, partitions int32) (input []func(), want map[string]int64) {
	want = map[string]int64{}
	vocabulary := 3 + rng.IntN(30)
	for range 20 + rng.IntN(100) {
		var line []string
		for range rng.IntN(6) {
			word := "w" + strconv.Itoa(min(rng.IntN(vocabulary), rng.IntN(vocabulary)))
			line = append(line, word)
			want[word]++
		}
		r := processor.Raw{Key: []byte("k"), Value: []byte(strings.Join(line, " ")), Timestamp: int64(rng.IntN(1000))}
		tp := processor.TopicPartition{Topic: "lines", Partition: rng.Int32N(partitions)}
		input = append(input, func() {
			_, err := w.cluster.Append(tp, r)
			must(w.t, err)
		})
	}
	return input, want
}

func (w *world) check(want map[string]int64) {
	w.t.Helper()
	exact := w.plan.guarantee == eos.ExactlyOnce
	compare := func(what string, got map[string]int64) {
		w.t.Helper()
		for _, word := range slices.Sorted(maps.Keys(want)) {
			if got[word] < want[word] || exact && got[word] != want[word] {
				w.fatalf("%s: %q is %d, want %d", what, word, got[word], want[word])
			}
		}
		if len(got) != len(want) {
			w.fatalf("%s has %d words, want %d", what, len(got), len(want))
		}
	}
	compare("output", w.output(exact))
	compare("changelog", w.changelog())
	compare("stores", w.stores(want))
}

// output reads the output topic. Under exactly-once a word's count only ever grows.
func (w *world) output(exact bool) map[string]int64 {
	last := map[string]int64{}
	w.each("word-counts", func(r processor.Raw) {
		word, n := string(r.Key), int64(binary.BigEndian.Uint64(r.Value))
		if exact && (n <= last[word] || w.plan.everyUpdate && n != last[word]+1) {
			w.fatalf("output: %q goes from %d to %d", word, last[word], n)
		}
		last[word] = n
	})
	return last
}

func (w *world) changelog() map[string]int64 {
	last := map[string]int64{}
	w.each(app+"-counts-changelog", func(r processor.Raw) { last[string(r.Key)] = int64(binary.BigEndian.Uint64(r.Value)) })
	return last
}

func (w *world) each(topic string, fn func(processor.Raw)) {
	for i := range w.cluster.Partitions(topic) {
		for _, r := range w.cluster.ReadAll(processor.TopicPartition{Topic: topic, Partition: i}) {
			fn(r)
		}
	}
}

// stores reads all backends. Each task is open in one process and in those that stand by for it, with the same content.
func (w *world) stores(want map[string]int64) map[string]int64 {
	got := map[string]int64{}
	open, by := map[string]int{}, map[string]string{}
	for _, p := range w.processes {
		for _, b := range p.opener.Opened("counts") {
			open[b.Task]++
			pairs, err := b.Scan(nil, store.Range{}, 1000)
			must(w.t, err)
			for _, pair := range pairs {
				word, n := string(pair.Key), int64(binary.BigEndian.Uint64(pair.Value))
				if task, twice := by[word]; twice && (task != b.Task || got[word] != n) {
					w.fatalf("%s: %q is %d in task %s, and %d in another replica or task", p.name, word, n, b.Task, got[word])
				}
				got[word], by[word] = n, b.Task
			}
			if n := w.replica(b.Task, by); len(pairs) != n && len(want) > 0 {
				w.fatalf("%s has %d words of task %s, another replica %d", p.name, len(pairs), b.Task, n)
			}
		}
	}
	for task, n := range open {
		if replicas := 1 + min(w.plan.standbys, len(w.processes)-1); n != replicas {
			w.fatalf("task %s is open %d times, want %d", task, n, replicas)
		}
	}
	return got
}

// replica is how many words are known to belong to a task.
func (w *world) replica(task string, by map[string]string) (n int) {
	for _, of := range by {
		if of == task {
			n++
		}
	}
	return n
}

func TestWordCountIsExact(t *testing.T) {
	t.Parallel()
	topo := wordCount(t)
	countWords(t, 225463550939923, topo, func(*plan) {}) // a standby demoted, granted and demoted again had two owners
	seeds(t, 6*time.Second, func(seed uint64) { countWords(t, seed, topo, func(*plan) {}) })
}

func TestWordCountIsExactOnFiles(t *testing.T) {
	t.Parallel()
	topo := wordCount(t)
	seeds(t, 3*time.Second, func(seed uint64) {
		countWords(t, seed, topo, func(p *plan) { p.opener, p.dir = bolt.Opener{}, t.TempDir() })
	})
}

func TestPreCountedWordsAreExact(t *testing.T) {
	t.Parallel()
	topo := preCounted(t)
	seeds(t, 2*time.Second, func(seed uint64) { countWords(t, seed, topo, func(*plan) {}) })
}

func TestAtLeastOnceLosesNothing(t *testing.T) {
	t.Parallel()
	topo := wordCount(t)
	seeds(t, 2*time.Second, func(seed uint64) {
		countWords(t, seed, topo, func(p *plan) { p.guarantee, p.zombies = eos.AtLeastOnce, false })
	})
}
