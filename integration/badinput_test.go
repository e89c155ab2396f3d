package integration

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// summing adds up the values of each key; its node "check" fails on 13.
func summing(t *testing.T, in, out string, fixed bool) *topology.Topology {
	return build(t, func(b *topology.Builder) {
		numbers := topology.From(b, topology.NewTopic(in, serde.String, serde.Int64))
		topology.Process(numbers, "check", func() processor.Processor[string, int64, string, int64] { return check{fixed} })
		sums := store.NewKeyValue("sums", serde.String, serde.Int64)
		table := topology.Reduce(topology.GroupByKey(numbers), func(a, b int64) int64 { return a + b }, sums)
		topology.To(topology.Changes(table), topology.NewTopic(out, serde.String, serde.Int64))
	})
}

// check fails on 13, unless that is fixed.
type check struct{ fixed bool }

// Init implements processor.Processor.
func (check) Init(*processor.Context[string, int64]) error { return nil }

// Process implements processor.Processor.
func (c check) Process(r processor.Record[string, int64]) error {
	if r.Value == 13 && !c.fixed {
		return errors.New("13 is not liked")
	}
	return nil
}

func number(key string, n int64) brokertest.Record {
	return brokertest.Record{Key: []byte(key), Value: encoded(n)}
}

// sums reads the newest value of each key.
func sums(t *testing.T, topic string) map[string]int64 {
	t.Helper()
	got := map[string]int64{}
	for _, r := range settled(t, brokertest.Brokers(t), topic) {
		got[string(r.Key)] = count(t, r)
	}
	return got
}

// Failing names the record, commits nothing of it, and after a fix nothing is missing.
func TestBadInputFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bad    brokertest.Record
		node   string // the input's name when empty
		policy processor.ErrorPolicy
		after  map[string]int64 // sums when the cause is gone
	}{
		"processor": {number("k", 13), "check", processor.ErrorPolicy{}, map[string]int64{"k": 1 + 13 + 2, "other": 5}},
		"decode": {brokertest.Record{Key: []byte("k"), Value: []byte("bad")}, "", processor.ErrorPolicy{Decode: processor.Skip},
			map[string]int64{"k": 1 + 2, "other": 5}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
			cfg := config(t)
			brokertest.Produce(t, cfg.Brokers, in, number("k", 1), number("other", 5), c.bad, number("k", 2))
			failing := start(t, summing(t, in, out, false), cfg)
			err := failing.join()
			var e *processor.RecordError
			if !errors.As(err, &e) {
				t.Fatalf("Run returned %v, want a RecordError", err)
			}
			node := c.node
			if node == "" {
				node = in
			}
			want := processor.RecordError{Node: node, Topic: in, Partition: 0, Offset: 2, Err: e.Err}
			if *e != want {
				t.Errorf("got %+v, want %+v", *e, want)
			}
			for _, part := range []string{"task 0_0", fmt.Sprintf("node %q", node), in + "-0@2"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not name %q", err, part)
				}
			}
			if at := brokertest.GroupOffsets(t, cfg.Brokers, cfg.ApplicationID, in)[0]; at > 2 {
				t.Errorf("committed offset %d, behind the bad record", at)
			}

			cfg.Errors = c.policy
			again := start(t, summing(t, in, out, true), cfg)
			again.drain()
			if got := sums(t, out); !maps.Equal(got, c.after) {
				t.Errorf("after the fix: %v, want %v", got, c.after)
			}
		})
	}
}

// badRecords are two good records among one bad one of each kind.
func badRecords() []brokertest.Record {
	old := number("k", 100)
	old.Timestamp = time.UnixMilli(-5)
	return []brokertest.Record{
		number("k", 1), {Key: []byte("k"), Value: []byte("bad"), Headers: []brokertest.Header{{Key: []byte("h"), Value: []byte("1")}}},
		old, number("k", 13), {Value: encoded(7)}, number("k", 2),
	}
}

// badOffsets are the offsets of the bad ones, badErrors what they are.
var badOffsets = []int64{1, 2, 3, 4}

func TestBadInputIsSkipped(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	cfg.Errors = processor.SkipBadRecords()
	brokertest.ProduceBatch(t, cfg.Brokers, in, badRecords()...)
	app := start(t, summing(t, in, out, false), cfg)
	app.drain()
	if got, want := sums(t, out), map[string]int64{"k": 3}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	var offsets []int64
	for _, d := range app.drops() {
		offsets = append(offsets, d.err.Offset)
		if d.action != processor.Skip {
			t.Errorf("action %d for %v", d.action, d.err)
		}
	}
	slices.Sort(offsets)
	if !slices.Equal(offsets, badOffsets) {
		t.Errorf("dropped the offsets %v, want %v", offsets, badOffsets)
	}
}

func TestBadInputGoesToDeadLetterTopic(t *testing.T) {
	t.Parallel()
	in, out, dead := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1), brokertest.Topic(t, "dead", 1)
	cfg := config(t)
	cfg.Errors = processor.DeadLetter(dead)
	records := badRecords()
	brokertest.ProduceBatch(t, cfg.Brokers, in, records...)
	app := start(t, summing(t, in, out, false), cfg)
	app.drain()
	if got, want := sums(t, out), map[string]int64{"k": 3}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	got := settled(t, cfg.Brokers, dead)
	if len(got) != len(badOffsets) {
		t.Fatalf("%d dead letters, want %d", len(got), len(badOffsets))
	}
	slices.SortFunc(got, func(a, b brokertest.Record) int { return strings.Compare(header(a, "offset"), header(b, "offset")) })
	for i, offset := range badOffsets {
		r, sent := got[i], records[offset]
		if string(r.Key) != string(sent.Key) || (r.Key == nil) != (sent.Key == nil) || string(r.Value) != string(sent.Value) {
			t.Errorf("dead letter of offset %d: %q=%q, want the bytes as they were sent", offset, r.Key, r.Value)
		}
		if len(sent.Headers) > 0 && string(r.Headers[0].Value) != "1" {
			t.Errorf("dead letter of offset %d: headers %v", offset, r.Headers)
		}
		where := header(r, "topic") + "-" + header(r, "partition") + "@" + header(r, "offset")
		if want := fmt.Sprintf("%s-0@%d", in, offset); where != want {
			t.Errorf("dead letter says that it comes from %s, want %s", where, want)
		}
		if header(r, "message") == "" || header(r, "exception") == "" {
			t.Errorf("dead letter of offset %d does not say what went wrong: %v", offset, r.Headers)
		}
	}
}

func header(r brokertest.Record, name string) string {
	for _, h := range r.Headers {
		if string(h.Key) == "__streams.errors."+name {
			return string(h.Value)
		}
	}
	return ""
}
