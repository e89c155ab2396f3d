package topology_test

import (
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/testdriver"
	"github.com/millrace-streams/millrace/topology"
)

// Field report 26: a left record is never joined with nothing before its match can come, and once if none comes.
func TestFieldReport26NoEagerLeftJoin(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"left", "outer"} {
		d := drive(t, streamJoins(kind, within))
		equal(t, d.send("left k a 0", "right k b 5", "left q c 0", "right x x 10"), "k=a/b@5")
		equal(t, d.send("left z z 11"), "q=c/~@0")
		equal(t, d.send("left z z 12", "left z z 13"))
	}
}

// Field report 28: with asymmetric windows each side waits for its own.
func TestFieldReport28AsymmetricWindows(t *testing.T) {
	t.Parallel()
	d := drive(t, streamJoins("left", after100))
	equal(t, d.send("left k a 0", "left other o 50", "right k b 90"), "k=a/b@90")
	equal(t, d.send("left z z 151"), "other=o/~@50")
	mirrored := topology.WithinBeforeAfter(100*ms, 0)
	d = drive(t, streamJoins("outer", mirrored))
	equal(t, d.send("right k a 0", "right other o 50", "left k b 90"), "k=b/a@90")
	equal(t, d.send("right z z 151"), "other=~/o@50")
	d = drive(t, streamJoins("outer", mirrored))
	equal(t, d.send("left k a 0", "right q b 1", "left z z 2"), "k=a/~@0")
	equal(t, d.send("left z z 101"), "z=z/~@2")
	equal(t, d.send("left z z 102"), "q=~/b@1", "z=z/~@101")
}

// The bytes in the changelog of the outer store are Kafka Streams' (taken from its own changelog, 4.2.0).
func TestOuterStoreBytesAreKafkaStreams(t *testing.T) {
	t.Parallel()
	d := drive(t, streamJoins("outer", within))
	equal(t, d.send("left k a 5", "left k b 5", "right z c 6", "left w e 40"), "k=a/~@5", "k=b/~@5", "z=~/c@6")
	want := strings.Fields(`
		0000000000000005016b 0100000001000000020161
		0000000000000005016b 0100000002000000020161000000020162
		0000000000000006007a 0100000001000000020063
		0000000000000005016b null
		0000000000000006007a null
		00000000000000280177 0100000001000000020165`)
	var got []string
	for _, r := range d.Raw("app-outer-changelog") {
		value := "null"
		if r.Value != nil {
			value = hex.EncodeToString(r.Value)
		}
		got = append(got, hex.EncodeToString(r.Key), value)
	}
	equal(t, got, want...)
}

// A record that its store does not take any more is told of as late; it is still joined with what there is.
func TestLateRecordsOfJoins(t *testing.T) {
	t.Parallel()
	told, counted, r := late(streamJoins("left", within), "right k r 15", "left x x 40", "left k old 18")
	equal(t, read(r, out), "k=old/r@18")
	want := processor.Late{Node: "left.joinstreams.left", Topic: "left", Offset: 1, Timestamp: 18, Start: 18, End: 18, StreamTime: 40}
	if counted != 1 || told[0] != want {
		t.Errorf("counted %d, told %+v", counted, told)
	}
}

// Results carry the headers of the later record; what has met no other carries none, since the record that tells so is
// another one.
func TestHeadersOfJoins(t *testing.T) {
	t.Parallel()
	d := drive(t, streamJoins("left", within))
	header := func(v string) []processor.Header { return []processor.Header{{Key: "h", Value: []byte(v)}} }
	d.sendTo(0, "left k a 0", header("a"))
	d.sendTo(0, "left q c 0", header("c"))
	d.sendTo(0, "right k b 5", header("b"))
	d.sendTo(0, "right x x 50", header("x"))
	got := d.out.ReadAll()
	if len(got) != 2 || string(got[0].Headers[0].Value) != "b" || len(got[1].Headers) != 0 {
		t.Errorf("got %+v", got)
	}
}

// The topics of a join must have equal partition counts.
func TestJoinedStreamsAreCopartitioned(t *testing.T) {
	t.Parallel()
	b := topology.NewBuilder()
	streamJoins("inner", within)(b)
	_, err := must(b.Build()).Layout(app, map[string]int32{"left": 2, "right": 3, "out": 1}, "")
	mismatch := new(topology.PartitionMismatchError)
	if !errors.As(err, &mismatch) || !slices.Equal(mismatch.Topics, []string{"left", "right"}) || mismatch.Counts["right"] != 3 {
		t.Errorf("got %v", err)
	}
}

// A stream may be joined with itself: each pair comes twice, a record with itself once.
func TestStreamJoinedWithItself(t *testing.T) {
	t.Parallel()
	d := drive(t, func(b *topology.Builder) {
		s := topology.From(b, in)
		l, r := store.NewWindow("l", serde.String, serde.String, within.Store()), store.NewWindow("r", serde.String, serde.String, within.Store())
		topology.To(topology.JoinStreams(s, s, within, func(_, l, r string) string { return l + r }, l, r), out)
	})
	equal(t, d.send("in k a 0"), "k=aa@0")
	equal(t, d.send("in k b 5"), "k=ba@5", "k=ab@5", "k=bb@5")
}

// A longer retention of the stores than the windows need lets late records meet older ones.
func TestJoinStoresMayKeepMore(t *testing.T) {
	t.Parallel()
	o := within.Store()
	o.Retention *= 10
	d := drive(t, func(b *topology.Builder) {
		l, r := store.NewWindow("l", serde.String, serde.String, o), store.NewWindow("r", serde.String, serde.String, o)
		join := func(_, l, r string) string { return l + r }
		topology.To(topology.JoinStreams(topology.From(b, lefties), topology.From(b, righties), within, join, l, r), out)
	}, testdriver.DefaultPartitions(1))
	equal(t, d.send("left k a 0", "left x x 100", "right k b 1"), "k=ab@1")
}

// When unmatched records are looked at depends on the oldest that was seen at the last look, as in Kafka Streams: here the look
// at 4 ends at the second of two records of one time and key.
func TestUnmatchedRecordsComeWhenKafkaStreamsGivesThem(t *testing.T) {
	t.Parallel()
	d := drive(t, streamJoins("outer", topology.WithinBeforeAfter(0, 5*ms).Grace(3*ms)))
	equal(t, d.send("right r c2 1", "right r a5 1", "left q a4 0", "left k a4 4", "right k a3 4"), "k=a4/a3@4")
	equal(t, d.send("right r a1 5"), "r=~/c2@1", "r=~/a5@1")
}
