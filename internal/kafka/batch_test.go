package kafka

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/memory"
)

func testProducer() *producer {
	return &producer{id: 4, epoch: 2, transactional: true, next: map[processor.TopicPartition]int32{}}
}

func TestPlanCutsAndNumbersBatches(t *testing.T) {
	t.Parallel()
	p, by := newPlan(1000), testProducer()
	for round := range 2 { // the plan is used again
		var c processor.Commit
		for i := range 20 {
			r := output("a", int32(i%2), fmt.Sprint(i), strings.Repeat("x", 150))
			r.Timestamp = int64(1000 - 10*i)
			c.Records = append(c.Records, []processor.Output{r})
		}
		c.Writes = []processor.Writes{writes("log", 3, "k", "1", "l", "")}
		c.Writes[0].Set.Delete([]byte("k"), 2000, nil)
		p.begin(&c)
		p.next(by, sarama.CompressionLZ4)
		if len(p.parts) != 3 {
			t.Fatalf("%d partitions", len(p.parts))
		}
		next, records := int32(10*round), 0
		for _, b := range p.parts[0].batches {
			if b.FirstSequence != next || int(b.LastOffsetDelta) != len(b.Records)-1 || len(b.Records) > 6 || !b.IsTransactional || b.ProducerEpoch != 2 {
				t.Errorf("batch %+v", b)
			}
			for i, r := range b.Records {
				if r.OffsetDelta != int64(i) {
					t.Errorf("offset delta %d of record %d", r.OffsetDelta, i)
				}
				if string(r.Key) != fmt.Sprint(2*records) {
					t.Errorf("record %d has key %s", records, r.Key)
				}
				if at := b.FirstTimestamp.UnixMilli() + r.TimestampDelta.Milliseconds(); at != int64(1000-20*records) || at > b.MaxTimestamp.UnixMilli() {
					t.Errorf("record %d has time %d", records, at)
				}
				records++
			}
			next += int32(len(b.Records))
		}
		if records != 10 {
			t.Errorf("%d records in partition 0", records)
		}
		log := p.parts[2].batches[0].Records
		if len(log) != 2 || log[0].Value != nil || log[1].Value == nil {
			t.Errorf("changelog: %+v", log)
		}
		p.clear()
	}
}

// A commit of more records than are taken at a time comes whole, in order and numbered through, and its partitions are known
// before. Write sets are not cut.
func TestPlanInPieces(t *testing.T) {
	t.Parallel()
	p, by := newPlan(1<<20), testProducer()
	p.pieceRecords = 7
	next := map[string]int32{}
	for round := range 3 {
		var c processor.Commit
		want := map[string][]string{}
		for i := range 10 * round { // the first commit has none
			r := output("a", int32(i%3), fmt.Sprint(i), "v")
			c.Records = append(c.Records, []processor.Output{r})
			want[fmt.Sprint("a-", i%3)] = append(want[fmt.Sprint("a-", i%3)], fmt.Sprint(i))
		}
		for i, n := range []int{3, 0, 4, 9, 1} {
			w := writes("log", int32(i))
			for j := range n {
				w.Set.Put(fmt.Append(nil, j), []byte("v"), 0, nil)
				want[fmt.Sprint("log-", i)] = append(want[fmt.Sprint("log-", i)], fmt.Sprint(j))
			}
			c.Writes = append(c.Writes, w)
		}
		p.begin(&c)
		if len(p.parts) != len(want) {
			t.Fatalf("%d partitions, want %d", len(p.parts), len(want))
		}
		got, sizes := map[string][]string{}, []int{}
		for p.next(by, sarama.CompressionNone) {
			size := 0
			for _, x := range p.parts {
				for _, b := range x.batches {
					if name := x.String(); b.FirstSequence != next[name] {
						t.Errorf("a batch of %s begins at %d, want %d", name, b.FirstSequence, next[name])
					}
					for _, r := range b.Records {
						got[x.String()] = append(got[x.String()], string(r.Key))
					}
					next[x.String()] += int32(len(b.Records))
					size += len(b.Records)
				}
				x.batches, x.end = nil, int64(len(got[x.String()]))
			}
			sizes = append(sizes, size)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if want := [][]int{{7, 9, 1}, {7, 6, 4, 9, 1}, {7, 7, 6, 7, 9, 1}}[round]; !slices.Equal(sizes, want) {
			t.Errorf("pieces of %d records, want %d", sizes, want)
		}
		for _, x := range p.parts {
			if x.end != int64(len(want[x.String()])) {
				t.Errorf("%s ends at %d", x, x.end)
			}
		}
		p.clear()
		if cap(p.slab) > 9 {
			t.Errorf("it keeps room for %d records", cap(p.slab))
		}
	}
}

func TestSequencesWrap(t *testing.T) {
	t.Parallel()
	tp, by := processor.TopicPartition{Topic: "a"}, testProducer()
	by.next[tp] = math.MaxInt32 - 1
	for _, want := range []int32{math.MaxInt32 - 1, 1, 4} { // as Kafka's own: ...646, ...647, 0, 1
		if got := by.sequence(tp, 3); got != want {
			t.Fatalf("first sequence %d, want %d", got, want)
		}
	}
	if got := plainProducer().sequence(tp, 3); got != -1 {
		t.Errorf("a plain producer has sequence %d", got)
	}
}

func TestSplitKeepsSequences(t *testing.T) {
	t.Parallel()
	p, by := newPlan(1<<20), testProducer()
	var c processor.Commit
	for i := range 5 {
		c.Records = append(c.Records, []processor.Output{output("a", 0, fmt.Sprint(i), "v")})
	}
	p.begin(&c)
	p.next(by, sarama.CompressionNone)
	x := p.parts[0]
	for x.split() {
	}
	if len(x.batches) != 3 { // 1, 1 and 3 records
		t.Fatalf("%d batches", len(x.batches))
	}
	next := int32(0)
	for i, b := range x.batches {
		for j, r := range b.Records {
			if r.OffsetDelta != int64(j) || string(r.Key) != fmt.Sprint(int(next)+j) {
				t.Errorf("batch %d: record %+v", i, r)
			}
		}
		if b.FirstSequence != next || int(b.LastOffsetDelta) != len(b.Records)-1 {
			t.Errorf("batch %d: sequence %d, last delta %d", i, b.FirstSequence, b.LastOffsetDelta)
		}
		next += int32(len(b.Records))
	}
}

func TestTimestampsBeyondReach(t *testing.T) {
	t.Parallel()
	p := newPlan(1 << 20)
	for _, ts := range []int64{-5, math.MaxInt64} {
		r := output("a", 0, "k", "v")
		r.Timestamp = ts
		p.begin(&processor.Commit{Records: [][]processor.Output{{r}}})
		p.next(testProducer(), sarama.CompressionNone)
		if got := p.parts[0].batches[0].FirstTimestamp.UnixMilli(); got < 0 || got > latest {
			t.Errorf("%d became %d", ts, got)
		}
		p.clear()
	}
}

func BenchmarkPlan(b *testing.B) {
	var c processor.Commit
	for i := range 10_000 {
		c.Records = append(c.Records, []processor.Output{output("topic", int32(i%4), fmt.Sprint(i), "12345678")})
	}
	p, by := newPlan(defaultBatchBytes), testProducer()
	b.ReportAllocs()
	for b.Loop() {
		p.begin(&c)
		for p.next(by, sarama.CompressionNone) {
		}
		p.clear()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10_000, "ns/record")
}

// What retention removes from a store is not told to its changelog, which such a commit leaves alone.
func TestAPartitionWithoutRecordsIsNoPartOfACommit(t *testing.T) {
	t.Parallel()
	windows := store.NewWindow("w", serde.String, serde.String, store.WindowOptions{Size: time.Millisecond, Retention: 10 * time.Millisecond})
	src := source{store.LayersOf(windows, memory.New())}
	view, err := windows.View(src)
	if err != nil {
		t.Fatal(err)
	}
	for i, at := range []int64{0, 100} { // the second makes the first expire
		if _, err := view.Put("k", "v", at); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			break
		}
		src.layers.Prepare()
		src.layers.Committed(-1)
	}
	src.layers.Prepare()
	src.layers.Committed(-1)
	if n, err := src.layers.Expire(0); err != nil || n == 0 {
		t.Fatalf("%d rows expired, %v", n, err)
	}
	p := newPlan(1000)
	p.begin(&processor.Commit{Writes: []processor.Writes{{Changelog: processor.TopicPartition{Topic: "log"}, Set: src.layers.Prepare()}}})
	if len(p.parts) != 0 {
		t.Errorf("the commit has %d partitions", len(p.parts))
	}
}

// source is a store.Source of one store.
type source struct{ layers *store.Layered }

func (s source) Layered(string) (*store.Layered, error) { return s.layers, nil }
func (s source) RecordTime() int64                      { return 0 }
