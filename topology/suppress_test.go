package topology_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/millrace-streams/millrace/changelog"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/testdriver"
	"github.com/millrace-streams/millrace/topology"
)

// origins shows where a record comes from.
type origins struct {
	*processor.Context[windowed, string]
}

func (o *origins) Init(ctx *processor.Context[windowed, string]) error {
	o.Context = ctx
	return nil
}

func (o *origins) Process(r processor.Record[windowed, int64]) error {
	at := fmt.Sprintf("%d %s-%d@%d t%d", r.Value, o.Topic(), o.Partition(), o.Offset(), o.RecordTime())
	return o.Forward(processor.Record[windowed, string]{Key: r.Key, Value: at, Timestamp: r.Timestamp, Headers: r.Headers})
}

// Field report 40: what is held back keeps the record that caused it: its time, headers, topic, partition and offset, over
// restores too; the changelog gets a tombstone, and nothing is emitted twice.
func TestFieldReport40SuppressKeepsTheRecord(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]testdriver.Option{nil, {testdriver.Cached()}} {
		d := drive(t, func(b *topology.Builder) {
			s := topology.Changes(closing(countedIn(ten), serde.Int64)(b))
			shown := topology.Process(s, "origins", func() processor.Processor[windowed, int64, windowed, string] { return &origins{} })
			topology.To(topology.Process(shown, "shown", func() processor.Processor[windowed, string, string, string] { return &shower{} }), out)
		}, opts...)
		d.sendTo(0, "in k v 1", []processor.Header{{Key: "h", Value: []byte("1")}, {Key: "null"}})
		equal(t, d.send())
		d.RestartEmpty()
		d.sendTo(0, "in x v 10", []processor.Header{{Key: "h", Value: []byte("2")}})
		got := d.out.ReadAll()
		if len(got) != 1 || got[0].Key != "k@0-10" || got[0].Value != "1 in-0@0 t1" || got[0].Timestamp != 1 {
			t.Fatalf("got %+v", got)
		}
		if h := got[0].Headers; len(h) != 2 || string(h[0].Value) != "1" || h[1].Key != "null" || h[1].Value != nil {
			t.Errorf("headers %v", h)
		}
		log := d.Raw("app-buffer-changelog")
		if last := log[len(log)-1]; len(log) != 3 || last.Value != nil || string(last.Key) != string(log[0].Key) {
			t.Errorf("changelog %+v", log)
		}
		d.RestartEmpty()
		equal(t, d.send())
		equal(t, d.send("in y v 20"), "x@10-20=1 in-0@1 t10@10")
	}
}

// The bytes in the changelog are Kafka Streams' (taken from its own changelogs, 4.2.0).
func TestSuppressBytesAreKafkaStreams(t *testing.T) {
	t.Parallel()
	buffer := topology.NewBuffer("sup-store", serde.String, serde.String, topology.BufferOptions{})
	d := drive(t, func(b *topology.Builder) {
		table := topology.Table(b, topology.NewTopic("t", serde.String, serde.String), texts)
		topology.To(topology.Changes(topology.Suppress(table, topology.UntilTimeLimit(5*ms, buffer))), out)
	})
	equal(t, d.send("t x 1 100", "t y 2 106", "t x 3 107", "t x 4 108", "t x - 109"), "x=1@100")
	want := strings.Fields(`
		78 0000000000000064000000000000000000000001740000000000000000ffffffffffffffff00000001310000000000000064
		79 000000000000006a000000000000000100000001740000000000000000ffffffffffffffff0000000132000000000000006a
		78 null
		78 000000000000006b0000000000000002000000017400000000000000000000000131fffffffe0000000133000000000000006b
		78 000000000000006c000000000000000300000001740000000000000000000000013100000001330000000134000000000000006b
		78 000000000000006d00000000000000040000000174000000000000000000000001310000000134ffffffff000000000000006b`)
	var got []string
	for _, r := range d.Raw("app-sup-store-changelog") {
		value := "null"
		if r.Value != nil {
			value = hex.EncodeToString(r.Value)
			if len(r.Headers) != 1 || r.Headers[0].Key != "v" || string(r.Headers[0].Value) != "\x03" {
				t.Errorf("headers %v", r.Headers)
			}
		}
		got = append(got, hex.EncodeToString(r.Key), value)
	}
	equal(t, got, want...)
}

// A buffer that Kafka Streams has left is taken over, headers and all.
func TestSuppressTakesOverKafkaStreamsBuffer(t *testing.T) {
	t.Parallel()
	declare := shownIn(closing(reducedIn(ten), serde.String), same)
	b, again := topology.NewBuilder(), topology.NewBuilder()
	declare(b)
	declare(again)
	opt := processor.Options{App: app, EveryUpdate: true, Partitions: func(string) int32 { return 1 }}
	r, id, tp := start(b, opt, nil), processor.TaskID{}, processor.TopicPartition{Topic: "in"}
	key := must(store.SessionWindowed(serde.String).Append(nil, windowed{Key: "k", Start: 0, End: 10}))
	value := must(hex.DecodeString("0000000000000001000000000000000000000002696e0000000000000002" +
		"00000001680000000131000000016effffffffffffffffffffffff0000000161000000000000000a"))
	must(0, r.stores[id]["buffer"].RestorePut(key, value, 1))
	r.stores[id]["buffer"].Restored(1)
	starts := []processor.Start{{Position: processor.Position{TopicPartition: tp}}}
	r.tasks[id] = must(processor.NewTask(id, must(again.Build()).Specs()[0], r.stores[id], starts, 0, opt))
	r.reader[tp] = r.tasks[id]
	r.send("in", text("z", "v", 12))
	must(0, r.run())
	equal(t, read(r, out), "k@0-10=a@1 h:1 n:")
}

func TestSuppressBounds(t *testing.T) {
	t.Parallel()
	strict := func(o topology.BufferOptions) driven {
		return drive(t, shownIn(limiting(30*ms, o), number), testdriver.ExpectErrors(), testdriver.Errors(processor.SkipBadRecords()))
	}
	d := strict(topology.BufferOptions{MaxRecords: 2})
	equal(t, d.send("in a v 1", "in b v 1", "in a v 2", "in c v 3"))
	full := new(topology.BufferFullError)
	if !errors.As(d.Err(), &full) || full.Buffer != "buffer" || full.Records != 3 {
		t.Fatalf("got %v", d.Err())
	}
	if at, _ := d.Committed("in", 0); at != 3 {
		t.Errorf("committed %d", at)
	}
	// A change takes 8 bytes, the key's 17, 20 and the topic's 2 for its origin, and 8 for each of its values.
	const size = 8 + 17 + 20 + 2 + 8
	d = strict(topology.BufferOptions{MaxBytes: 2*size + 8})
	equal(t, d.send("in a v 1", "in b v 1", "in b v 1"))
	if d.Err() != nil {
		t.Errorf("got %v", d.Err())
	}
	equal(t, d.send("in a v 2"))
	if !errors.As(d.Err(), &full) || full.Bytes != 2*size+16 {
		t.Errorf("got %v", d.Err())
	}
	d = strict(topology.BufferOptions{MaxBytes: 2 * size, EmitEarly: true})
	equal(t, d.send("in b v 1", "in a v 2", "in c v 3", "in a v 4"), "b@0-10=1@1", "a@0-10=2@4")
}

// Behind Suppress, the value before is what was forwarded last, and rows are seen as they were.
func TestSuppressedTablesTellOldValues(t *testing.T) {
	t.Parallel()
	buffer := topology.NewBuffer("buffer", serde.String, serde.String, topology.BufferOptions{})
	d := drive(t, func(b *topology.Builder) {
		slow := topology.Suppress(topology.Table(b, in, texts), topology.UntilTimeLimit(10*ms, buffer))
		topology.To(topology.MapValues(topology.ChangesWithOld(slow), func(c processor.Change[string]) string {
			return fmt.Sprintf("%s>%s", tilde(c.Old, c.HasOld), tilde(c.New, c.HasNew))
		}), out)
		joined := topology.JoinTables(slow, right(b), plus)
		topology.To(topology.Changes(joined, topology.Named("joined.changes")), out2)
	})
	joined := testdriver.Output(d.Driver, out2)
	equal(t, d.send("in2 a r 0", "in a 1 0", "in a 2 1"))
	equal(t, d.send("in z z 10"), "a=~>2@1")
	equal(t, d.send("in a 3 11", "in a 4 12", "in2 a s 13"))
	equal(t, readPeer(joined), "a=2+r@1", "a=2+s@13") // 4 is not out yet
	equal(t, d.send("in a 5 21"), "z=~>z@10", "a=2>5@21")
	equal(t, readPeer(joined), "a=5+s@21")
	equal(t, d.send("in a - 30", "in y y 60"), "a=5>~@30")
}

// A buffer's changelog is read by the library's own reader too.
func TestSuppressedChangelogHasOneRecordPerCommit(t *testing.T) {
	t.Parallel()
	d := drive(t, windowPeers["suppress tumbling"], testdriver.Manual())
	for i := range 5 {
		d.sendTo(0, fmt.Sprintf("in k v %d", i), nil)
	}
	d.Settle()
	if n := len(d.Raw(changelog.Topic("app", "buffer"))); n != 1 {
		t.Errorf("%d records", n)
	}
}
