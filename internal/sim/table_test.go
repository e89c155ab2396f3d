package sim_test

import (
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/eos"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store/bolt"
	"github.com/millrace-streams/millrace/store/memory"
	"github.com/millrace-streams/millrace/topology"
)

// rowsOf applies the records of a topic to a map, tombstones included.
func (w *world) rowsOf(topic string) map[string]string {
	rows := map[string]string{}
	w.each(topic, func(r processor.Raw) {
		delete(rows, string(r.Key))
		if r.Value != nil {
			rows[string(r.Key)] = string(r.Value)
		}
	})
	return rows
}

func tableOfRows(t *testing.T) *topology.Topology {
	t.Helper()
	b := topology.NewBuilder()
	rows := topology.Table(b, topology.NewTopic("lines", serde.String, serde.Int64), counts)
	topology.To(topology.Changes(rows), totals)
	topo, err := b.Build()
	must(t, err)
	return topo
}

// A table with deletions, its changelog and the stream of its changes all end as a plain map does.
func TestTableIsExact(t *testing.T) {
	t.Parallel()
	topo := tableOfRows(t)
	seeds(t, 2*time.Second, func(seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 0))
		p := draw(rng, eos.ExactlyOnce)
		if rng.IntN(20) == 0 {
			p.opener, p.dir = bolt.Opener{}, t.TempDir()
		}
		partitions := int32(1 + rng.IntN(3))
		w := newWorld(t, seed, topo, map[string]int32{"lines": partitions, "word-counts": partitions}, p)
		w.run(w.changes(rng, partitions))

		want := w.rowsOf("lines")
		for _, topic := range []string{"word-counts", app + "-counts-changelog"} {
			if got := w.rowsOf(topic); !maps.Equal(got, want) {
				w.fatalf("%s: %q, want %q", topic, got, want)
			}
		}
		if got := w.stores(nil); len(got) != len(want) {
			w.fatalf("stores: %v, want %q", got, want)
		}
		w.end()
	})
}

// changes makes the input: values and tombstones of few keys, each in the partition of its key.
func (w *world) changes(rng *rand.Rand, partitions int32) (input []func()) {
	for range 20 + rng.IntN(100) {
		key := []byte("k" + strconv.Itoa(rng.IntN(20)))
		r := processor.Raw{Key: key, Timestamp: int64(rng.IntN(1000))}
		if rng.IntN(3) > 0 {
			r.Value, _ = serde.Int64.Append(nil, rng.Int64())
		}
		tp := processor.TopicPartition{Topic: "lines", Partition: processor.PartitionForKey(key, partitions)}
		input = append(input, func() {
			_, err := w.cluster.Append(tp, r)
			must(w.t, err)
		})
	}
	return input
}

// What no retry can help ends the worker, and commits nothing.
func TestARefusalFailsTheWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, wordCount(t), map[string]int32{"lines": 1, "word-counts": 1}, plan{opener: memory.Opener{}, processes: 1, batch: 10, staged: 1000})
	w.calm = true
	_, err := w.cluster.Append(processor.TopicPartition{Topic: "lines"}, processor.Raw{Value: []byte("a b")})
	must(t, err)
	p := w.processes[0]
	p.start(true)
	p.refuse = true
	for range 30 {
		w.now = w.now.Add(20 * time.Millisecond)
		p.worker.Turn(0)
		w.cluster.WriteMarkers() // of the abort
	}
	if p.worker.Failure() == nil || !p.worker.Done() {
		t.Fatalf("failure %v, done %v", p.worker.Failure(), p.worker.Done())
	}
	if _, ok := w.group.Committed(processor.TopicPartition{Topic: "lines"}); ok {
		t.Fatal("something was committed")
	}
	if n := len(p.opener.Opened("counts")); n > 0 {
		t.Fatalf("%d stores are open", n)
	}
}
