package testdriver_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/eos"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/bolt"
	"github.com/millrace-streams/millrace/testdriver"
	"github.com/millrace-streams/millrace/topology"
)

func words(t *testing.T) *topology.Topology {
	t.Helper()
	topo, err := wordCount()
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

func want(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v\nwant %v", got, want)
	}
}

func TestWordCount(t *testing.T) {
	t.Parallel()
	d := testdriver.New(t, words(t))
	lines, counts := testdriver.Input(d, Lines), testdriver.Output(d, WordCounts)
	lines.Send("", "a b a")
	want(t, counts.ReadPairs(), []testdriver.Pair[string, int64]{{"a", 1}, {"b", 1}, {"a", 2}})
	lines.Send("", "b")
	want(t, testdriver.ReadMap(counts), map[string]int64{"b": 2})
	if _, more := counts.Read(); more {
		t.Fatal("more than everything")
	}
}

func TestCachedForwardsOncePerKeyAndCommit(t *testing.T) {
	t.Parallel()
	d := testdriver.New(t, words(t), testdriver.Cached())
	lines, counts := testdriver.Input(d, Lines), testdriver.Output(d, WordCounts)
	lines.SendAll(processor.Record[string, string]{Value: "a b a"}, processor.Record[string, string]{Value: "a"})
	want(t, counts.ReadPairs(), []testdriver.Pair[string, int64]{{"a", 3}, {"b", 1}})
}

func TestPartitions(t *testing.T) {
	t.Parallel()
	d := testdriver.New(t, words(t), testdriver.DefaultPartitions(3), testdriver.Partitions("word-counts", 2))
	lines, counts := testdriver.Input(d, Lines), testdriver.Output(d, WordCounts)
	for i := range 30 {
		lines.Send(fmt.Sprint(i), fmt.Sprintf("w%d w%d", i%7, i%5))
	}
	lines.SendNullKey("w0")
	lines.SendTo(2, processor.Record[string, string]{Value: "w0"})
	used := map[int32]bool{}
	sum := int64(0)
	last := map[string]int64{}
	for _, r := range counts.ReadAll() {
		used[r.Partition] = true
		want(t, r.Partition, processor.PartitionForKey([]byte(r.Key), 2))
		last[r.Key] = r.Value
	}
	for _, n := range last {
		sum += n
	}
	want(t, sum, int64(62))
	want(t, len(used), 2)
	tasks := map[int32]bool{}
	for _, r := range d.Raw("app-counts-changelog") {
		tasks[r.Partition] = true
	}
	want(t, len(tasks), 3)
	for p := range int32(3) {
		if at, ok := d.Committed("lines", p); !ok || at == 0 {
			t.Fatalf("partition %d is committed at %d, %v", p, at, ok)
		}
	}
}

// run does a bit of everything and returns all that can be seen.
func run(t *testing.T) (seen []any) {
	d := testdriver.New(t, words(t), testdriver.DefaultPartitions(4))
	lines := testdriver.Input(d, Lines)
	for i := range 50 {
		lines.Send(fmt.Sprint(i%9), fmt.Sprintf("w%d w%d w%d", i%7, i%5, i%11))
		d.Advance(time.Duration(i) * time.Millisecond)
	}
	for _, r := range testdriver.Output(d, WordCounts).ReadAll() {
		seen = append(seen, r)
	}
	for _, r := range append(d.Raw("app-counts-changelog"), d.Raw("app-by-word-repartition")...) {
		seen = append(seen, r)
	}
	return seen
}

func TestTheSameTwice(t *testing.T) {
	t.Parallel()
	want(t, run(t), run(t))
}

// ticks forwards one word per firing.
type ticks struct {
	every time.Duration
	close func()
}

func (ticks) Process(processor.Record[string, string]) error { return nil }

func (p ticks) Close() error {
	if p.close != nil {
		p.close()
	}
	return nil
}

func (p ticks) Init(ctx *processor.Context[string, string]) error {
	ctx.Schedule(p.every, processor.WallClockTime, func(at int64) error {
		return ctx.Forward(processor.Record[string, string]{Key: "k", Value: fmt.Sprintf("tick at%d", at), Timestamp: at})
	})
	return nil
}

func ticking(t *testing.T, p ticks) *topology.Topology {
	t.Helper()
	b := topology.NewBuilder()
	out := topology.Process(topology.From(b, Lines), "ticks", func() processor.Processor[string, string, string, string] { return p })
	byWord := topology.GroupBy(topology.FlatMapValues(out, strings.Fields), ByWord, func(_, w string) string { return w })
	topology.To(topology.Changes(topology.Count(byWord, Counts)), WordCounts)
	topo, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

// Field report 54: what a punctuation forwards is followed through the repartition topic without another input, on one
// fixed clock; outputs can be read after the close.
func TestFieldReport54PunctuationsAreFollowed(t *testing.T) {
	t.Parallel()
	closed := 0
	d := testdriver.New(t, ticking(t, ticks{every: 10 * time.Millisecond, close: func() { closed++ }}))
	counts := testdriver.Output(d, WordCounts)
	want(t, d.Now(), time.UnixMilli(0).UTC())
	d.Advance(9 * time.Millisecond)
	want(t, counts.ReadPairs(), []testdriver.Pair[string, int64](nil))
	d.Advance(time.Millisecond)
	for _, r := range counts.ReadAll() {
		want(t, r.Timestamp, int64(10))
		want(t, r.Value, int64(1))
	}
	// While 20 ms pass it fires twice, each time when it is due.
	d.Advance(25 * time.Millisecond)
	want(t, testdriver.ReadMap(counts), map[string]int64{"tick": 3, "at20": 1, "at30": 1})
	d.Advance(5 * time.Millisecond)
	d.Close()
	want(t, closed, 1)
	want(t, testdriver.ReadMap(counts), map[string]int64{"tick": 4, "at40": 1})
	got, _ := testdriver.Store(d, Counts).Get("tick")
	want(t, got, int64(4))
}

// A stop commits what a punctuation has forwarded just before, and the next life follows it to the end.
func TestStopCommitsWhatIsPending(t *testing.T) {
	t.Parallel()
	d := testdriver.New(t, ticking(t, ticks{every: 10 * time.Millisecond}), testdriver.Manual())
	counts := testdriver.Output(d, WordCounts)
	d.Settle()
	d.Advance(25 * time.Millisecond)
	d.Turn() // fires once for both
	want(t, len(d.Raw("app-by-word-repartition")), 0)
	d.Stop()
	want(t, len(d.Raw("app-by-word-repartition")), 2)
	d.Settle() // nothing runs
	want(t, len(counts.ReadAll()), 0)
	d.Restart()
	d.Settle()
	want(t, testdriver.ReadMap(counts), map[string]int64{"tick": 1, "at25": 1})
}

func TestLatestSkipsWhatWasThereBefore(t *testing.T) {
	t.Parallel()
	d := testdriver.New(t, words(t), testdriver.Manual(), testdriver.Latest())
	lines, counts := testdriver.Input(d, Lines), testdriver.Output(d, WordCounts)
	lines.Send("", "old")
	d.Settle()
	lines.Send("", "new")
	d.Settle()
	want(t, testdriver.ReadMap(counts), map[string]int64{"new": 1})
}

func TestPreloadedStore(t *testing.T) {
	t.Parallel()
	d := testdriver.New(t, words(t), testdriver.DefaultPartitions(3), testdriver.ExpectErrors())
	counts := testdriver.Store(d, Counts)
	counts.Put("a", 40)
	counts.PutAt("b", 1, 7)
	want(t, counts.All(), []testdriver.Pair[string, int64]{{"a", 40}, {"b", 1}})
	testdriver.Input(d, Lines).Send("", "a a c")
	want(t, counts.All(), []testdriver.Pair[string, int64]{{"a", 42}, {"b", 1}, {"c", 1}})
	_, at, ok := counts.GetWithTime("b")
	want(t, []any{at, ok}, []any{int64(7), true})
	if _, ok := counts.Get("nothing"); ok {
		t.Fatal("found what was never there")
	}
	counts.Put("late", 1)
	if !errors.Is(d.Err(), testdriver.ErrStarted) {
		t.Fatal(d.Err())
	}
}

func TestAFailureStopsTheTopology(t *testing.T) {
	t.Parallel()
	d := testdriver.New(t, words(t), testdriver.ExpectErrors())
	lines := testdriver.Input(d, topology.NewTopic("lines", serde.String, serde.Bytes))
	lines.SendRaw(0, processor.Raw{Value: []byte("fine"), Timestamp: 1})
	lines.SendRaw(0, processor.Raw{Value: []byte("bad"), Timestamp: -1})
	lines.SendRaw(0, processor.Raw{Value: []byte("never"), Timestamp: 1})
	var failed *processor.RecordError
	if !errors.As(d.Err(), &failed) || failed.Topic != "lines" || failed.Offset != 1 || !errors.Is(failed, processor.ErrNegativeTimestamp) {
		t.Fatalf("got %v", d.Err())
	}
	if at, _ := d.Committed("lines", 0); at != 1 {
		t.Fatalf("committed at %d, want 1", at)
	}
	d.Restart()
	if !errors.As(d.Err(), &failed) || failed.Offset != 1 {
		t.Fatalf("after the restart: %v", d.Err())
	}
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	d := testdriver.New(t, words(t), testdriver.ExpectErrors())
	testdriver.Input(d, topology.NewTopic("elsewhere", serde.String, serde.String)).Send("", "a")
	if !errors.Is(d.Err(), testdriver.ErrUnknownTopic) {
		t.Fatal(d.Err())
	}
	testdriver.Store(d, store.NewKeyValue("other", serde.String, serde.Int64))
	if !errors.Is(d.Err(), testdriver.ErrUnknownStore) {
		t.Fatal(d.Err())
	}
	lines := testdriver.Input(d, Lines)
	lines.Send("", "a") // the driver goes on
	if got, _ := testdriver.Store(d, Counts).Get("a"); got != 1 {
		t.Fatal(got)
	}
	if _, err := testdriver.Open(words(t), testdriver.Errors(processor.ErrorPolicy{Decode: processor.SendDeadLetter})); err == nil {
		t.Fatal("a policy without a topic")
	}
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	numbers := topology.NewTopic("numbers", serde.String, serde.Int64)
	b := topology.NewBuilder()
	topology.To(topology.From(b, numbers), topology.NewTopic("out", serde.String, serde.Int64))
	topo, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	d := testdriver.New(t, topo, testdriver.Errors(processor.DeadLetter("dead")))
	in := testdriver.Input(d, numbers)
	in.Send("k", 1)
	in.SendRaw(0, processor.Raw{Key: []byte("k"), Value: []byte("three"), Timestamp: 5, Headers: []processor.Header{{Key: "h", Value: []byte("1")}}})
	in.Send("k", 2)
	in.SendTombstone("k")
	out := testdriver.Output(d, topology.NewTopic("out", serde.String, serde.Int64)).ReadAll()
	want(t, len(out), 3)
	want(t, []any{out[1].Value, out[2].NullValue}, []any{int64(2), true})
	dead := testdriver.Output(d, topology.NewTopic("dead", serde.String, serde.String)).ReadAll()
	want(t, len(dead), 1)
	want(t, []any{dead[0].Key, dead[0].Value, dead[0].Timestamp}, []any{"k", "three", int64(5)})
	headers := map[string]string{}
	for _, h := range dead[0].Headers {
		headers[h.Key] = string(h.Value)
	}
	want(t, []string{headers["h"], headers[processor.HeaderTopic], headers[processor.HeaderPartition], headers[processor.HeaderOffset]},
		[]string{"1", "numbers", "0", "1"})
	want(t, len(d.Dropped()), 1)
	want(t, d.Dropped()[0].Action, processor.SendDeadLetter)
}

func TestPointsAreAll(t *testing.T) {
	t.Parallel()
	constants := []testdriver.Point{
		testdriver.BeforePoll, testdriver.AfterPoll, testdriver.BeforeStoreOpens, testdriver.BeforeReading, testdriver.AfterBatch,
		testdriver.CommitPrepared, testdriver.BeforeInitProducer, testdriver.AfterInitProducer, testdriver.BeforeAddPartitions,
		testdriver.AfterAddPartitions, testdriver.BeforeProduce, testdriver.AfterProduce, testdriver.BeforeAddOffsets,
		testdriver.AfterAddOffsets, testdriver.BeforeCommitOffsets, testdriver.AfterCommitOffsets, testdriver.BeforeEnd,
		testdriver.AfterEnd, testdriver.BeforeFlush, testdriver.AfterFlush, testdriver.BeforeRelease, testdriver.AfterRelease,
	}
	want(t, testdriver.Points(), constants)
}

var input = []string{"a b a", "c", "", "b b a", "d d d d", "a"}

func wordsOf(lines []string) map[string]int64 {
	n := map[string]int64{}
	for _, l := range lines {
		for _, w := range strings.Fields(l) {
			n[w]++
		}
	}
	return n
}

// exact checks outputs and store after everything has settled.
func exact(t *testing.T, d *testdriver.Driver, counts *testdriver.OutputTopic[string, int64], cached bool) {
	t.Helper()
	last := map[string]int64{}
	for _, r := range counts.ReadAll() {
		if r.Value <= last[r.Key] || !cached && r.Value != last[r.Key]+1 {
			t.Fatalf("%q goes from %d to %d", r.Key, last[r.Key], r.Value)
		}
		last[r.Key] = r.Value
	}
	want(t, last, wordsOf(input))
	held := map[string]int64{}
	for _, p := range testdriver.Store(d, Counts).All() {
		held[p.Key] = p.Value
	}
	want(t, held, wordsOf(input))
}

// A crash at every single point of a life, without local state.
func TestCrashAnywhereIsExact(t *testing.T) {
	t.Parallel()
	topo := words(t)
	for name, opts := range map[string][]testdriver.Option{
		"automatic": {testdriver.DefaultPartitions(2)},
		"manual":    {testdriver.DefaultPartitions(2), testdriver.Manual()},
		"cached":    {testdriver.Cached()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reached := map[testdriver.Point]bool{}
			for n := 1; crashAfter(t, topo, n, name == "cached", opts, reached); n++ {
			}
			for _, p := range testdriver.Points() {
				if !reached[p] {
					t.Errorf("died nowhere %s", p)
				}
			}
		})
	}
}

// crashAfter lets the process die at the n-th point of its life and reports whether it did.
func crashAfter(t *testing.T, topo *topology.Topology, n int, cached bool, opts []testdriver.Option, reached map[testdriver.Point]bool) bool {
	d := testdriver.New(t, topo, opts...)
	lines, counts := testdriver.Input(d, Lines), testdriver.Output(d, WordCounts)
	d.CrashAfter(n)
	for _, line := range input {
		lines.Send(line, line)
	}
	d.Settle()
	d.Stop()
	at, crashed := d.Crashed()
	if crashed {
		reached[at] = true
	}
	d.RestartEmpty()
	d.Settle()
	exact(t, d, counts, cached)
	d.Close()
	return crashed
}

// A crash at each kind of point, with the local state that it leaves.
func TestCrashOnFiles(t *testing.T) {
	t.Parallel()
	topo := words(t)
	for _, p := range testdriver.Points() {
		t.Run(strings.ReplaceAll(string(p), " ", "-"), func(t *testing.T) {
			d := testdriver.New(t, topo, testdriver.Backend(bolt.Opener{}), testdriver.StateDir(t.TempDir()))
			lines, counts := testdriver.Input(d, Lines), testdriver.Output(d, WordCounts)
			for i, line := range input {
				if i == len(input)/2 {
					d.CrashAt(p)
				}
				lines.Send("", line)
			}
			d.Stop()
			records := len(d.Restored())
			d.Restart()
			exact(t, d, counts, false)
			for _, r := range d.Restored()[records:] {
				if r.Records > 4 {
					t.Fatalf("replayed %d records of the changelog, which is not its tail", r.Records)
				}
			}
		})
	}
}

func TestCrashBetweenTurns(t *testing.T) {
	t.Parallel()
	d := testdriver.New(t, words(t), testdriver.Manual())
	lines, counts := testdriver.Input(d, Lines), testdriver.Output(d, WordCounts)
	for _, line := range input {
		lines.Send("", line)
		d.Turn()
	}
	d.Crash()
	if at, crashed := d.Crashed(); !crashed || at == "" {
		t.Fatal(at, crashed)
	}
	d.Settle() // nothing runs
	d.Restart()
	d.Settle()
	exact(t, d, counts, false)
}

func TestAtLeastOnceAfterACrash(t *testing.T) {
	t.Parallel()
	d := testdriver.New(t, words(t), testdriver.Guarantee(eos.AtLeastOnce))
	lines, counts := testdriver.Input(d, Lines), testdriver.Output(d, WordCounts)
	lines.Send("", "a")
	d.CrashAt(testdriver.AfterProduce)
	lines.Send("", "a")
	d.Restart()
	want(t, counts.ReadPairs()[0], testdriver.Pair[string, int64]{Key: "a", Value: 1})
	if got, _ := testdriver.Store(d, Counts).Get("a"); got < 2 {
		t.Fatalf("lost one: %d", got)
	}
}
