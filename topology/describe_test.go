package topology_test

import (
	"strings"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// forward is a processor that passes everything on.
type forward struct {
	ctx *processor.Context[string, string]
}

func newForward() processor.Processor[string, string, string, string] { return &forward{} }

func (f *forward) Init(ctx *processor.Context[string, string]) error {
	f.ctx = ctx
	return nil
}

func (f *forward) Process(r processor.Record[string, string]) error { return f.ctx.Forward(r) }

func wordCount(b *topology.Builder) topology.KTable[string, int64] {
	words := topology.FlatMapValues(topology.From(b, in), strings.Fields)
	grouped := topology.GroupBy(words, byWord, func(_, w string) string { return w })
	table := topology.Count(grouped, counts)
	topology.To(topology.Changes(table), totals)
	return table
}

// everything uses each operator once, and two processors that share a store across two inputs.
func everything(b *topology.Builder) {
	yes := func(_, _ string) bool { return true }
	join := func(a, b string) string { return a + b }
	s := topology.From(b, in)
	s = topology.Filter(topology.Peek(s, func(_, _ string) {}, topology.Named("shown")), yes)
	split := topology.Split(topology.MapValues(s, strings.ToUpper), topology.When("left", yes), topology.When("right", yes))
	left := topology.Map(split.Branch("left"), func(k, v string) (string, string) { return v, k })
	right := topology.FlatMap(split.Branch("right"), func(k, v string) []topology.Pair[string, string] {
		return []topology.Pair[string, string]{{Key: k, Value: v}}
	})
	rest := topology.SelectKey(split.Rest(), join)
	merged := topology.Through(topology.Merge(left, right, rest), rekey)
	topology.Reduce(topology.GroupByKey(merged), join, texts, topology.CachingDisabled())

	table := topology.Table(b, in2, users)
	topology.To(topology.Changes(table), out)
	shared := []store.Declaration{store.NewKeyValue("shared", texts.KeySerde(), texts.ValueSerde())}
	topology.Process(topology.Changes(table, topology.Named("user-changes")), "enrich", newForward, shared...)
	topology.To(topology.Process(topology.From(b, in3), "lookup", newForward, shared...), out2, topology.Named("result"))
}

// tables uses each operator of tables once.
func tables(b *topology.Builder) {
	s, l, r := topology.From(b, in), left(b), right(b)
	open := topology.FilterTable(l, yes)
	mapped := topology.MapTableValues(open, keyed, topology.Materialized(texts))
	topology.TransformTable(topology.FilterNotTable(mapped, yes), newTransformer, topology.WithStores(counts))
	both := topology.OuterJoinTables(mapped, r, outerPlus)
	topology.ReduceTable(topology.GroupTableBy(both, grouping, func(_, v string) (string, string) { return v, v }), plus, minus, users)
	topology.To(topology.Changes(topology.JoinForeign(l, r, byFirst, first, plus, derived)), out)
	topology.To(topology.LeftJoinTable(s, both, leftKeyed), out2)
	topology.To(topology.JoinGlobal(s, topology.GlobalTable(b, in3, store.NewKeyValue("all", serde.String, serde.String)), second, leftKeyed3,
		topology.Named("everywhere")), out2, topology.Named("second-sink"))
	parts := topology.Cogroup(topology.GroupByKey(s), func(_, v, row string) string { return row + v })
	topology.AggregateCogrouped(parts.And(topology.Cogroup(topology.GroupByKey(topology.From(b, in2)), func(_, v, row string) string { return v + row })),
		func() string { return "" }, store.NewKeyValue("cogrouped", serde.String, serde.String))
	topology.Deduplicate(topology.KeyUnchanged(topology.SelectKey(s, key)), seenIDs, key, time.Hour)
}

func TestDescription(t *testing.T) {
	t.Parallel()
	for name, declare := range map[string]func(*topology.Builder){
		"wordcount":  func(b *topology.Builder) { wordCount(b) },
		"everything": everything,
		"tables":     tables,
	} {
		b := topology.NewBuilder()
		declare(b)
		top, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name+"-describe", top.Describe())
		golden(t, name+"-mermaid", top.Mermaid())
	}
}

// Inserting a stateless operator renames neither stores nor topics (field report 65).
func TestInsertedOperatorKeepsDurableNames(t *testing.T) {
	t.Parallel()
	durable := func(insert bool) (names []string) {
		b := topology.NewBuilder()
		s := topology.From(b, in)
		if insert {
			s = topology.MapValues(s, strings.ToLower)
		}
		topology.Count(topology.GroupByKey(s), counts)
		topology.Reduce(topology.GroupBy(s, byWord, func(_, v string) string { return v }), func(_, v string) string { return v }, texts)
		layout := must(must(b.Build()).Layout(app, map[string]int32{"in": 2}, ""))
		for _, topic := range layout.Create {
			names = append(names, topic.Name)
		}
		return names
	}
	equal(t, durable(true), durable(false)...)
	equal(t, durable(true), "app-by-word-repartition", "app-counts-changelog", "app-texts-changelog")
}
