package oracle

import (
	"github.com/millrace-streams/millrace/oracle/scenario"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/topology"
)

func init() {
	register(map[string]func(*graph, scenario.Op){
		"stream": func(g *graph, op scenario.Op) { g.put(op, topology.From(g.b, g.topic(op.From[0]))) },
		"map":    buildMap,
		"mapvalues": func(g *graph, op scenario.Op) {
			g.put(op, topology.MapValues(from[stream](g, op, 0), mapping(op.Fn), name(op)))
		},
		"flatmap": buildFlatMap,
		"flatmapvalues": func(g *graph, op scenario.Op) {
			g.put(op, topology.FlatMapValues(from[stream](g, op, 0), flat, name(op)))
		},
		"filter": func(g *graph, op scenario.Op) {
			g.put(op, topology.Filter(from[stream](g, op, 0), keep(op.Fn), name(op)))
		},
		"filternot": buildFilterNot,
		"selectkey": func(g *graph, op scenario.Op) {
			g.put(op, topology.SelectKey(from[stream](g, op, 0), keying(op.Key), name(op)))
		},
		"merge":      buildMerge,
		"split":      buildSplit,
		"through":    func(g *graph, op scenario.Op) { g.put(op, topology.Through(from[stream](g, op, 0), repartition(op))) },
		"groupbykey": func(g *graph, op scenario.Op) { g.put(op, topology.GroupByKey(from[stream](g, op, 0))) },
		"groupby": func(g *graph, op scenario.Op) {
			g.put(op, topology.GroupBy(from[stream](g, op, 0), repartition(op), keying(op.Key)))
		},
		"to": buildTo,
	})
}

func buildMap(g *graph, op scenario.Op) {
	key, value := keying(op.Key), mapping(op.Fn)
	g.put(op, topology.Map(from[stream](g, op, 0), func(k string, v []byte) (string, []byte) { return key(k, v), value(v) }, name(op)))
}

func buildFlatMap(g *graph, op scenario.Op) {
	key := keying(op.Key)
	g.put(op, topology.FlatMap(from[stream](g, op, 0), func(k string, v []byte) (pairs []topology.Pair[string, []byte]) {
		for _, part := range flat(v) {
			pairs = append(pairs, topology.Pair[string, []byte]{Key: key(k, part), Value: part})
		}
		return pairs
	}, name(op)))
}

func buildFilterNot(g *graph, op scenario.Op) {
	drop := keep(op.Fn)
	g.put(op, topology.Filter(from[stream](g, op, 0), func(k string, v []byte) bool { return !drop(k, v) }, name(op)))
}

func buildMerge(g *graph, op scenario.Op) {
	var others []stream
	for i := range op.From[1:] {
		others = append(others, from[stream](g, op, i+1))
	}
	g.put(op, topology.MergeAs(op.ID+".node", from[stream](g, op, 0), others...))
}

func buildSplit(g *graph, op scenario.Op) {
	var branches []topology.Branch[string, []byte]
	for _, fn := range op.Branches {
		branches = append(branches, topology.When(fn, keep(fn)))
	}
	split := topology.SplitAs(op.ID+".node", from[stream](g, op, 0), branches...)
	for _, fn := range op.Branches {
		g.handles[op.ID+"."+fn] = split.Branch(fn)
	}
	g.handles[op.ID+".rest"] = split.Rest()
}

func buildTo(g *graph, op scenario.Op) {
	keys := g.windows[op.From[0]]
	switch s := g.handles[op.From[0]].(type) {
	case stream:
		writeTo(g, op, s, serde.String, plain, serde.Bytes, text)
	case topology.Stream[string, int64]:
		writeTo(g, op, s, serde.String, plain, serde.Int64, number)
	case topology.Stream[windowed, []byte]:
		writeTo(g, op, s, keys, showWindow, serde.Bytes, text)
	case topology.Stream[windowed, int64]:
		writeTo(g, op, s, keys, showWindow, serde.Int64, number)
	default:
		from[stream](g, op, 0)
	}
}

func writeTo[K, V any](
	g *graph, op scenario.Op, s topology.Stream[K, V], keys serde.Serde[K], key func(K) string, values serde.Serde[V], value func(V) string,
) {
	t := topology.NewTopic(op.ID, keys, values)
	topology.To(s, t)
	g.outputs = append(g.outputs, outputOf(t, key, value))
}
