package topology_test

import (
	"testing"
	"time"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

var (
	prices = store.NewVersioned("prices", serde.String, serde.String, 50*time.Millisecond)
	delays = topology.NewJoinBuffer("delays", serde.String, serde.String)
)

func priced(b *topology.Builder, opts ...topology.JoinOption) {
	table := topology.VersionedTable(b, in2, prices)
	topology.To(topology.LeftJoinTable(topology.From(b, in), table, leftKeyed, opts...), out)
}

// A record is joined with the row as it was at the record's time, whatever came since.
func TestJoinWithVersionedTable(t *testing.T) {
	t.Parallel()
	b := topology.NewBuilder()
	priced(b)
	r := start(b, processor.Options{}, nil)
	r.feed("in2 a p10 10", "in2 a p30 30", "in a s 20", "in a s 30", "in a s 9", "in2 a p15 15", "in a s 20", "in2 a - 40", "in a s 41", "in a s 39", "in a - 39")
	equal(t, read(r, out), "a=a/s+p10@20", "a=a/s+p30@30", "a=a/s+null@9", "a=a/s+p15@20", "a=a/s+null@41", "a=a/s+p30@39")
}

// With a grace, records wait for late updates, and are joined in the order of their times; one that is later than the grace
// is joined at once. What waits survives in the buffer, with headers.
func TestJoinWithGrace(t *testing.T) {
	t.Parallel()
	b := topology.NewBuilder()
	priced(b, topology.WithGrace(10*time.Millisecond, delays))
	r := start(b, processor.Options{}, nil)
	first := text("a", "s", 20)
	first.headers = []processor.Header{{Key: "h", Value: []byte("1")}}
	r.send("in", first)
	r.feed("in a t 19", "in a u 20", "in - n 25")
	equal(t, read(r, out), "null=null/n+null@25")
	r.feed("in2 a p20 20", "in2 a p5 5", "in b v 30")
	equal(t, read(r, out), "a=a/t+p5@19", "a=a/s+p20@20 h:1", "a=a/u+p20@20")
	r.feed("in a w 19", "in a x 29")
	equal(t, read(r, out), "a=a/w+p5@19")
	r.feed("in b y 45")
	equal(t, read(r, out), "a=a/x+p20@29", "b=b/v+null@30")
}

// Tables of a versioned table follow the latest values; changes out of order are marked.
func TestTablesOfVersionedTable(t *testing.T) {
	t.Parallel()
	b := topology.NewBuilder()
	table := topology.VersionedTable(b, in2, prices)
	follower := topology.MapValues(topology.ChangesWithOld(topology.MapTableValues(table, keyed)), func(c processor.Change[string]) string {
		return c.Old + ">" + c.New + map[bool]string{true: " outdated"}[c.Outdated]
	})
	topology.To(follower, out)
	groups := topology.GroupTableBy(table, grouping, func(_, v string) (string, string) { return "all", v })
	topology.To(topology.Changes(topology.ReduceTable(groups, plus, minus, texts)), out2)
	r := start(b, processor.Options{}, nil)
	r.feed("in2 a 1 10", "in2 a 2 5", "in2 a 3 20", "in2 a - 15", "in2 a 4 100", "in2 a 5 49", "in2 a - 110")
	equal(t, read(r, out), "a=>a:1@10", "a=a:1>a:2 outdated@5", "a=a:1>a:3@20", "a=a:3> outdated@15", "a=a:3>a:4@100", "a=a:4>@110")
	equal(t, read(r, out2), "all=1@10", "all=1-1+3@20", "all=1-1+3-3+4@100", "all=1-1+3-3+4-4@110")
}
