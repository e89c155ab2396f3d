package topology_test

import (
	"strings"
	"testing"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

type stream = topology.Stream[string, string]

// oneWay is a topology from in to out.
func oneWay(operator func(stream) stream) *rig {
	b := topology.NewBuilder()
	topology.To(operator(topology.From(b, in)), out)
	return start(b, processor.Options{}, nil)
}

// seen panics if a function is called with a null value, which looks like the empty one.
func seen(v string) string {
	if v == "" {
		panic("called with a null value")
	}
	return strings.ToUpper(v)
}

// Every operator gets a whole record, a null key, a tombstone, and both nulls (field report 64 for the stateless ones).
func TestNullsThroughStatelessOperators(t *testing.T) {
	t.Parallel()
	all := []string{"k=A@1", "null=B@2", "k=null@3", "null=null@4"}
	for name, c := range map[string]struct {
		operator func(stream) stream
		want     []string
	}{
		"none":      {func(s stream) stream { return s }, []string{"k=a@1", "null=b@2", "k=null@3", "null=null@4"}},
		"mapvalues": {func(s stream) stream { return topology.MapValues(s, seen) }, all},
		"filter": {func(s stream) stream {
			return topology.Filter(s, func(_, v string) bool { return seen(v) == "A" })
		}, []string{"k=a@1", "k=null@3", "null=null@4"}},
		"peek": {func(s stream) stream {
			return topology.Peek(s, func(_, v string) { seen(v) })
		}, []string{"k=a@1", "null=b@2", "k=null@3", "null=null@4"}},
		"flatmapvalues": {func(s stream) stream {
			return topology.FlatMapValues(s, func(v string) []string { return []string{seen(v), v} })
		}, []string{"k=A@1", "k=a@1", "null=B@2", "null=b@2"}},
		"map": {func(s stream) stream {
			return topology.Map(s, func(k, v string) (string, string) { return seen(v), k })
		}, []string{"A=k@1", "B=@2"}},
		"flatmap": {func(s stream) stream {
			return topology.FlatMap(s, func(k, v string) []topology.Pair[string, string] {
				return []topology.Pair[string, string]{{Key: seen(v), Value: k}, {Key: v, Value: k}}
			})
		}, []string{"A=k@1", "a=k@1", "B=@2", "b=@2"}},
		"selectkey": {func(s stream) stream {
			return topology.SelectKey(s, func(k, v string) string { return k + seen(v) })
		}, []string{"kA=a@1", "B=b@2"}},
		"process": {func(s stream) stream { return topology.Process(s, "mine", newForward) },
			[]string{"k=a@1", "null=b@2", "k=null@3", "null=null@4"}},
		"through": {func(s stream) stream { return topology.Through(s, rekey) },
			[]string{"k=a@1", "null=b@2", "k=null@3", "null=null@4"}},
		"merge": {func(s stream) stream {
			return topology.Merge(topology.MapValues(s, seen), topology.Filter(s, func(_, v string) bool { return false }))
		}, []string{"k=A@1", "null=B@2", "k=null@3", "k=null@3", "null=null@4", "null=null@4"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := oneWay(c.operator)
			r.send("in", text("k", "a", 1), rec{value: []byte("b"), ts: 2}, rec{key: []byte("k"), ts: 3}, rec{ts: 4})
			must(0, r.run())
			equal(t, read(r, out), c.want...)
		})
	}
}

func TestTombstonesReachEveryBranch(t *testing.T) {
	t.Parallel()
	b := topology.NewBuilder()
	split := topology.Split(topology.From(b, in),
		topology.When("a", func(_, v string) bool { return seen(v) == "A" }),
		topology.When("short", func(_, v string) bool { return len(v) == 1 }))
	topology.To(topology.MapValues(split.Branch("a"), func(v string) string { return "a:" + v }), out)
	topology.To(split.Branch("short"), out2)
	topology.To(split.Rest(), in2)
	r := start(b, processor.Options{}, nil)
	r.send("in", text("k", "a", 1), text("k", "b", 2), text("k", "ccc", 3), rec{key: []byte("k"), ts: 4})
	must(0, r.run())
	equal(t, read(r, out), "k=a:a@1", "k=null@4")
	equal(t, read(r, out2), "k=b@2", "k=null@4")
	equal(t, read(r, in2), "k=ccc@3", "k=null@4")
}

// Null keys are skipped and counted where a key is needed, tombstones are ignored by aggregations and delete rows of
// tables; the empty key and the empty value are ordinary (field reports 64 and 46).
func TestNullsInKeyedOperators(t *testing.T) {
	t.Parallel()
	join := func(a, b string) string { return a + b }
	for name, c := range map[string]struct {
		declare func(*topology.Builder) topology.KTable[string, string]
		want    []string
	}{
		"reduce": {func(b *topology.Builder) topology.KTable[string, string] {
			return topology.Reduce(topology.GroupByKey(topology.From(b, in)), join, texts)
		}, []string{"k=a@1", "=@5", "=x@6", "k=ab@7"}},
		"aggregate": {func(b *topology.Builder) topology.KTable[string, string] {
			return topology.Aggregate(topology.GroupByKey(topology.From(b, in)), func() string { return "0" },
				func(k, v, row string) string { return row + k + v }, texts)
		}, []string{"k=0ka@1", "=0@5", "=0x@6", "k=0kakb@7"}},
		"table": {func(b *topology.Builder) topology.KTable[string, string] {
			return topology.Table(b, in, texts)
		}, []string{"k=a@1", "k=null@3", "=@5", "=x@6", "k=b@7", "unknown=null@8"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := topology.NewBuilder()
			topology.To(topology.Changes(c.declare(b)), out)
			dropped := 0
			r := start(b, processor.Options{EveryUpdate: true, Dropped: func(e *processor.RecordError, a processor.Action) {
				if e.Err == processor.ErrNullKey && a == processor.Skip && strings.HasPrefix(e.Node, "in.") {
					dropped++
				}
			}}, nil)
			r.send("in", text("k", "a", 1), rec{value: []byte("b"), ts: 2}, rec{key: []byte("k"), ts: 3}, rec{ts: 4},
				text("", "", 5), text("", "x", 6), text("k", "b", 7), rec{key: []byte("unknown"), ts: 8})
			must(0, r.run())
			equal(t, read(r, out), c.want...)
			task := r.tasks[processor.TaskID{}]
			if dropped != 2 || task.Counters.Skipped != 2 || task.Counters.Processed != 8 {
				t.Errorf("dropped %d, counters %+v", dropped, task.Counters)
			}
		})
	}
}

func TestCountAndGroupByIgnoreTombstones(t *testing.T) {
	t.Parallel()
	b := topology.NewBuilder()
	wordCount(b)
	topology.Count(topology.GroupByKey(topology.From(b, in)), store.NewKeyValue("lines", serde.String, serde.Int64))
	r := start(b, processor.Options{}, map[string]int32{"in": 3})
	r.send("in", text("k", "a b a", 1), rec{key: []byte("k"), ts: 2}, rec{value: []byte("b"), ts: 3})
	must(0, r.run())
	lines := read(r, totals)
	if len(lines) != 2 || get(r, counts, "a") != "2@1" || get(r, counts, "b") != "2@3" {
		t.Errorf("got %q, %s, %s", lines, get(r, counts, "a"), get(r, counts, "b"))
	}
}

func TestNullKeyFailsWhereThePolicySaysSo(t *testing.T) {
	t.Parallel()
	b := topology.NewBuilder()
	topology.Count(topology.GroupByKey(topology.From(b, in)), counts)
	r := start(b, processor.Options{Policy: processor.ErrorPolicy{NullKey: processor.Fail}}, nil)
	r.send("in", rec{value: []byte("b"), ts: 2})
	err := r.run()
	if e, ok := err.(*processor.RecordError); !ok || e.Node != "in.count" || e.Err != processor.ErrNullKey || e.Topic != "in" {
		t.Errorf("got %v", err)
	}
}
