package processor_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/memory"
)

type (
	record  = processor.Record[string, string]
	context = processor.Context[string, string]
)

// rig is a task of two sources, in-a and in-b, both feeding one processor, whose children write to the topic out.
type rig struct {
	*processor.Task
	layers *store.Layered
}

// maxRecord bounds what the rig writes.
const maxRecord = 1000

var seen = store.NewKeyValue("seen", serde.String, serde.String)

// newRig binds fn as the processor. It is given the context and the view of the store.
func newRig(t *testing.T, policy processor.ErrorPolicy, fn func(*context, *store.KeyValueView[string, string], record) error) rig {
	t.Helper()
	return newRigAt(t, policy, 0, fn, start("in-a"), start("in-b"))
}

func newRigAt(t *testing.T, policy processor.ErrorPolicy, idle time.Duration, fn func(*context, *store.KeyValueView[string, string], record) error, starts ...processor.Start) rig {
	t.Helper()
	backend, err := memory.Opener{}.Open(t.TempDir(), "seen")
	if err != nil {
		t.Fatal(err)
	}
	layers := store.NewLayered("seen", backend)
	spec := &processor.Spec{
		Nodes: []*processor.Node{
			source("in-a", 2), source("in-b", 2),
			{Name: "user", Stores: []string{"seen"}, Children: []int{3}, Bind: func(b *processor.Binding) (any, error) {
				ctx := processor.NewContext[string, string](b)
				view, err := seen.View(ctx)
				return processor.Emit[string, string](func(r record) error {
					return processor.Failed("user", processor.KindProcess, fn(ctx, view, r))
				}), err
			}},
			{Name: "sink", Kind: processor.KindSink, Topic: processor.Topic{Name: "out"}, Bind: bindSink},
		},
		Stores: []processor.StoreSpec{{Name: "seen", Declaration: seen}},
	}
	task, err := processor.NewTask(processor.TaskID{}, spec, map[string]*store.Layered{"seen": layers}, starts, 0, processor.Options{
		App: "app", Policy: policy, MaxIdle: idle, MaxRecordBytes: maxRecord, Partitions: func(string) int32 { return 4 },
	})
	if err != nil {
		t.Fatal(err)
	}
	return rig{task, layers}
}

func source(topic string, child int) *processor.Node {
	return &processor.Node{Name: topic, Kind: processor.KindSource, Topic: processor.Topic{Name: topic}, Children: []int{child},
		Bind: func(b *processor.Binding) (any, error) {
			emit := processor.FanOut[string, string](b)
			return processor.Source(func(raw *processor.Raw) error {
				if string(raw.Value) == "undecodable" {
					return processor.Failed(topic, processor.KindDecode, errors.New("no"))
				}
				return emit(record{Key: string(raw.Key), Value: string(raw.Value), Timestamp: raw.Timestamp, Headers: raw.Headers})
			}), nil
		}}
}

func bindSink(b *processor.Binding) (any, error) {
	return processor.Emit[string, string](func(r record) error {
		key, err := processor.Encode(&b.Task.Out, serde.String, r.Key)
		if err != nil {
			return err
		}
		value, err := processor.Encode(&b.Task.Out, serde.String, r.Value)
		if err != nil {
			return err
		}
		return b.Task.Out.Add(processor.Output{Topic: "out", Partition: b.Task.Out.Partition(key, 4), Key: key, Value: value, Timestamp: r.Timestamp, Headers: r.Headers})
	}), nil
}

func start(topic string) processor.Start {
	return processor.Start{Position: processor.Position{TopicPartition: partition(topic)}}
}

func partition(topic string) processor.TopicPartition { return processor.TopicPartition{Topic: topic} }

// send enqueues values at ascending offsets from first, all with the key k and timestamps equal to their offsets.
func (r rig) send(topic string, first int64, values ...string) {
	var raws []processor.Raw
	for i, v := range values {
		at := first + int64(i)
		raws = append(raws, processor.Raw{Key: []byte("k"), Value: []byte(v), Timestamp: at, Offset: at})
	}
	r.Enqueue(partition(topic), raws, first+int64(len(values)), 1, false)
}

func (r rig) commit(t *testing.T) processor.Commit {
	t.Helper()
	var c processor.Commit
	if err := r.Prepare(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

func values(c processor.Commit) []string {
	var vs []string
	for o := range c.Outputs() {
		vs = append(vs, string(o.Value))
	}
	return vs
}

// echo writes the record to the store, forwards it, and then fails on the value "bad".
func echo(ctx *context, view *store.KeyValueView[string, string], r record) error {
	if err := view.Put(r.Value, r.Key); err != nil {
		return err
	}
	if err := ctx.Forward(r); err != nil {
		return err
	}
	switch r.Value {
	case "bad":
		return errors.New("bad value")
	case "panic":
		panic("bad value")
	}
	return nil
}

func TestRecordsAreTakenByTimestamp(t *testing.T) {
	r := newRig(t, processor.ErrorPolicy{}, echo)
	r.send("in-a", 5, "a5", "a6", "a7")
	r.send("in-b", 4, "b4", "b5", "b6")
	if n, err := r.Run(0, 100); n != 6 || err != nil {
		t.Fatalf("ran %d, %v", n, err)
	}
	if got, want := values(r.commit(t)), []string{"b4", "a5", "b5", "a6", "b6", "a7"}; !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func TestFailureStopsAndNamesTheRecord(t *testing.T) {
	r := newRig(t, processor.ErrorPolicy{}, echo)
	r.send("in-a", 7, "fine", "bad", "later")
	n, err := r.Run(0, 100)
	var e *processor.RecordError
	if n != 1 || !errors.As(err, &e) {
		t.Fatalf("ran %d, %v", n, err)
	}
	if want := (processor.RecordError{Node: "user", Topic: "in-a", Offset: 8, Err: e.Err}); *e != want {
		t.Fatalf("got %+v", *e)
	}
}

// A panic is told with the name of the node that it happened in.
func TestPanicNamesItsNode(t *testing.T) {
	r := newRig(t, processor.ErrorPolicy{}, echo)
	r.send("in-a", 3, "panic")
	_, err := r.Run(0, 1)
	var e *processor.RecordError
	var p *processor.PanicError
	if !errors.As(err, &e) || !errors.As(err, &p) || e.Node != "user" || e.Offset != 3 || p.Value != "bad value" {
		t.Fatalf("got %v", err)
	}
}

// A record too large to be written is an error of the record that caused it, not of the commit.
func TestTooLargeOutput(t *testing.T) {
	r := newRig(t, processor.ErrorPolicy{Process: processor.Skip}, echo)
	r.send("in-a", 0, "small", strings.Repeat("x", maxRecord), "small too")
	if _, err := r.Run(0, 10); err != nil {
		t.Fatal(err)
	}
	if got := values(r.commit(t)); !slices.Equal(got, []string{"small", "small too"}) {
		t.Fatalf("wrote %d records", len(got))
	}
	r = newRig(t, processor.ErrorPolicy{}, echo)
	r.send("in-a", 0, strings.Repeat("x", maxRecord))
	_, err := r.Run(0, 10)
	var large *processor.TooLargeError
	if !errors.As(err, &large) || large.Topic != "out" || large.Size != maxRecord+1 || large.Limit != maxRecord {
		t.Fatalf("got %v", err)
	}
}

// What a skipped record did before it failed is undone: in the store, in the outputs, and for a panic too.
func TestSkippedRecordLeavesNothing(t *testing.T) {
	r := newRig(t, processor.SkipBadRecords(), echo)
	r.send("in-a", 0, "fine", "bad", "panic", "undecodable", "later")
	r.Enqueue(partition("in-b"), []processor.Raw{{Timestamp: -1, Offset: 3}}, 4, 1, false)
	if _, err := r.Run(0, 100); err != nil {
		t.Fatal(err)
	}
	c := r.commit(t)
	if got := values(c); !slices.Equal(got, []string{"fine", "later"}) {
		t.Fatalf("forwarded %v", got)
	}
	var stored []string
	for _, e := range c.Writes[0].Set.Entries() {
		stored = append(stored, e.Key)
	}
	if !slices.Equal(stored, []string{"fine", "later"}) {
		t.Fatalf("stored %v", stored)
	}
	if want := (processor.Counters{Processed: 2, Skipped: 4}); r.Counters != want {
		t.Fatalf("counters %+v", r.Counters)
	}
	if a, b := c.Positions[0], c.Positions[1]; a.Topic != "in-a" || a.Offset != 5 || b.Topic != "in-b" || b.Offset != 4 {
		t.Fatalf("positions %+v", c.Positions)
	}
}

// Field report 55: a dead-letter record carries the bytes and headers that were fetched, whatever the graph did to them.
func TestFieldReport55DeadLetterKeepsTheOriginal(t *testing.T) {
	r := newRig(t, processor.DeadLetter("dead"), func(ctx *context, _ *store.KeyValueView[string, string], rec record) error {
		rec.Headers = processor.WithoutHeader(rec.Headers, "h")
		rec.Value = "changed"
		if err := ctx.Forward(rec); err != nil {
			return err
		}
		return errors.New("no luck")
	})
	original := []processor.Header{{Key: "h", Value: []byte("1")}, {Key: "g", Value: []byte("2")}}
	r.Enqueue(partition("in-a"), []processor.Raw{{Key: []byte("k"), Value: []byte("v"), Timestamp: 9, Offset: 42, Headers: original}}, 43, 1, false)
	if _, err := r.Run(0, 1); err != nil {
		t.Fatal(err)
	}
	c := r.commit(t)
	if len(c.Records) != 1 {
		t.Fatalf("got %d records", len(c.Records))
	}
	dead := c.Records[0][0]
	if dead.Topic != "dead" || string(dead.Key) != "k" || string(dead.Value) != "v" || dead.Timestamp != 9 {
		t.Fatalf("got %+v", dead)
	}
	got := map[string]string{}
	for _, h := range dead.Headers {
		got[h.Key] = string(h.Value)
	}
	for key, want := range map[string]string{"h": "1", "g": "2", processor.HeaderTopic: "in-a", processor.HeaderPartition: "0",
		processor.HeaderOffset: "42", processor.HeaderMessage: "no luck", processor.HeaderException: "*errors.errorString", processor.HeaderNode: "user"} {
		if got[key] != want {
			t.Errorf("header %s is %q, want %q", key, got[key], want)
		}
	}
	if len(original) != 2 || string(original[0].Value) != "1" {
		t.Fatalf("the fetched headers were changed: %v", original)
	}
}

func TestForwardingANegativeTimestampFails(t *testing.T) {
	r := newRig(t, processor.ErrorPolicy{}, func(ctx *context, _ *store.KeyValueView[string, string], rec record) error {
		rec.Timestamp = -5
		return ctx.Forward(rec)
	})
	r.send("in-a", 0, "x")
	if _, err := r.Run(0, 1); !errors.Is(err, processor.ErrNegativeTimestamp) {
		t.Fatalf("got %v", err)
	}
}

// Positions count past control records; one that moved without a record is worth a commit, but is no work.
func TestPositionPastControlRecords(t *testing.T) {
	r := newRig(t, processor.ErrorPolicy{}, echo)
	r.send("in-a", 0, "x", "y")
	if _, err := r.Run(0, 1); err != nil {
		t.Fatal(err)
	}
	if c := r.commit(t); c.Positions[0].Offset != 1 {
		t.Fatalf("position %v with a record waiting", c.Positions)
	}
	r.layers.Committed(1)
	if _, err := r.Run(0, 1); err != nil {
		t.Fatal(err)
	}
	r.commit(t)
	r.layers.Committed(2)
	r.Enqueue(partition("in-a"), nil, 3, 0, false)
	if r.Dirty() || !r.Moved() {
		t.Fatalf("dirty %v, moved %v", r.Dirty(), r.Moved())
	}
	if c := r.commit(t); c.Positions[0].Offset != 3 || len(c.Records)+len(c.Writes) != 0 {
		t.Fatalf("got %+v", c)
	}
}

// Field report 39: not at once, one firing after a gap, then aligned; cancelled is never again.
func TestFieldReport39WallClockPunctuation(t *testing.T) {
	var fired []int64
	var p *processor.Punctuation
	r := newRig(t, processor.ErrorPolicy{}, func(ctx *context, _ *store.KeyValueView[string, string], _ record) error {
		p = ctx.Schedule(10*time.Millisecond, processor.WallClockTime, func(at int64) error {
			fired = append(fired, at)
			if len(fired) == 3 {
				p.Cancel()
			}
			return nil
		})
		return nil
	})
	r.send("in-a", 0, "x")
	for _, now := range []int64{0, 9, 10, 105, 109, 110, 120, 1000} {
		if _, err := r.Run(now, 1); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(fired, []int64{10, 105, 110}) {
		t.Fatalf("fired at %v", fired)
	}
	if _, any := r.NextPunctuation(); any {
		t.Fatal("a cancelled punctuation is still due")
	}
}

func TestStreamTimePunctuation(t *testing.T) {
	var fired []int64
	first := true
	r := newRig(t, processor.ErrorPolicy{}, func(ctx *context, view *store.KeyValueView[string, string], _ record) error {
		if first {
			first = false
			ctx.Schedule(10*time.Millisecond, processor.StreamTime, func(at int64) error {
				fired = append(fired, at)
				return view.Put("punctuated", fmt.Sprint(at))
			})
		}
		return nil
	})
	for _, ts := range []int64{3, 9, 10, 1000, 1005, 1010} {
		r.Enqueue(partition("in-a"), []processor.Raw{{Key: []byte("k"), Timestamp: ts, Offset: ts}}, ts+1, 1, false)
	}
	if _, err := r.Run(0, 100); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(fired, []int64{3, 10, 1000, 1010}) {
		t.Fatalf("fired at %v", fired)
	}
	if e := r.commit(t).Writes[0].Set.Get([]byte("punctuated")); e == nil || e.Timestamp != 1010 {
		t.Fatalf("the punctuation's write is %+v", e)
	}
}

// Kafka's own test vectors for the default partitioner (org.apache.kafka.common.utils.UtilsTest, testMurmur2).
func TestPartitionForKeyIsJavas(t *testing.T) {
	for key, hash := range map[string]int32{"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536,
		"a-little-bit-longer-string": -1486304829, "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971, "abc": 479470107} {
		want := (hash & 0x7fffffff) % 1000
		if got := processor.PartitionForKey([]byte(key), 1000); got != want {
			t.Errorf("%q: partition %d, want %d", key, got, want)
		}
	}
}

// Stream time and the partitions' times survive in the metadata of positions.
func TestStreamTimeSurvivesARestart(t *testing.T) {
	r := newRig(t, processor.ErrorPolicy{}, echo)
	r.send("in-a", 5, "a5", "a6")
	if _, err := r.Run(0, 10); err != nil {
		t.Fatal(err)
	}
	committed := r.commit(t).Positions[0]
	again := newRigAt(t, processor.ErrorPolicy{}, 0, echo, processor.Start{Position: committed}, start("in-b"))
	if got := again.StreamTime(); got != 6 {
		t.Fatalf("stream time %d", got)
	}
}

// Records wait for an input that is empty though the broker has more of it, however long that takes; for one that is
// drained, as long as MaxIdle says; then no more until it brings something.
func TestRecordsWaitForEmptyInputs(t *testing.T) {
	r := newRigAt(t, processor.ErrorPolicy{}, 10*time.Millisecond, echo, start("in-a"), start("in-b"))
	ran := func(now int64, want int, what string) {
		t.Helper()
		if n, err := r.Run(now, 10); n != want || err != nil {
			t.Fatalf("%s: ran %d, %v, want %d", what, n, err, want)
		}
	}
	r.Enqueue(partition("in-b"), nil, 3, 0, true)
	r.send("in-a", 10, "a10")
	ran(100, 0, "the broker has more")
	ran(1000, 0, "the broker still has more")
	r.Enqueue(partition("in-b"), nil, 4, 0, false)
	ran(1000, 0, "idle time begins")
	if until, stalled := r.Stalled(); !stalled || until != 1010 {
		t.Fatalf("stalled until %d, %v", until, stalled)
	}
	ran(1010, 1, "idle time is over")
	r.send("in-a", 11, "a11")
	ran(1011, 1, "and stays over")
	r.send("in-b", 12, "b12")
	r.send("in-a", 13, "a13")
	ran(1012, 1, "in-b has brought something: a13 waits again")
	if got := values(r.commit(t)); !slices.Equal(got, []string{"a10", "a11", "b12"}) {
		t.Fatalf("got %v", got)
	}
}
