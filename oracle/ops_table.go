package oracle

import (
	"strconv"

	"github.com/millrace-streams/millrace/oracle/scenario"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/topology"
)

type groupedTable = topology.GroupedTable[string, []byte]

func init() {
	register(map[string]func(*graph, scenario.Op){
		"changes": buildChanges,
		"count": func(g *graph, op scenario.Op) {
			g.put(op, topology.Count(from[grouped](g, op, 0), g.numbers(op), name(op)))
		},
		"reduce":    buildReduce,
		"aggregate": buildAggregate,
		"cogroup":   buildCogroup,
		"table":     func(g *graph, op scenario.Op) { g.put(op, topology.Table(g.b, g.topic(op.From[0]), g.rows(op))) },
		"totable": func(g *graph, op scenario.Op) {
			g.put(op, topology.ToTable(from[stream](g, op, 0), g.rows(op), name(op)))
		},
		"tfilter": func(g *graph, op scenario.Op) {
			g.put(op, topology.FilterTable(from[table](g, op, 0), keep(op.Fn), derived(g, op)...))
		},
		"tfilternot": func(g *graph, op scenario.Op) {
			g.put(op, topology.FilterNotTable(from[table](g, op, 0), keep(op.Fn), derived(g, op)...))
		},
		"tmapvalues": buildMapTable,
		"ttransform": buildTransform,
		"tgroupby":   buildGroupTable,
		"tcount": func(g *graph, op scenario.Op) {
			g.put(op, topology.CountTable(from[groupedTable](g, op, 0), g.numbers(op), name(op)))
		},
		"treduce":    buildReduceTable,
		"taggregate": buildAggregateTable,
	})
}

// derived returns the options of a table that is made of another.
func derived(g *graph, op scenario.Op) []topology.DerivedOption {
	opts := []topology.DerivedOption{name(op)}
	if op.Store {
		opts = append(opts, topology.Materialized(g.rows(op)))
	}
	return opts
}

func buildChanges(g *graph, op scenario.Op) {
	switch t := g.handles[op.From[0]].(type) {
	case table:
		g.put(op, topology.Changes(t, name(op)))
	case counts:
		g.put(op, topology.Changes(t, name(op)))
	case windowTable:
		g.windows[op.ID] = g.windows[op.From[0]]
		g.put(op, topology.Changes(t, name(op)))
	case windowCounts:
		g.windows[op.ID] = g.windows[op.From[0]]
		g.put(op, topology.Changes(t, name(op)))
	default:
		from[table](g, op, 0)
	}
}

func buildReduce(g *graph, op scenario.Op) {
	g.put(op, topology.Reduce(from[grouped](g, op, 0), reducing(op.Fn), g.rows(op), name(op)))
}

func buildAggregate(g *graph, op scenario.Op) {
	g.put(op, topology.Aggregate(from[grouped](g, op, 0), initial, adding(op.Fn), g.rows(op), name(op)))
}

// cogrouped combines the groups that an operator is made from; each marks what it adds with its place.
func cogrouped(g *graph, op scenario.Op) topology.Cogrouped[string, []byte] {
	add := adding(op.Fn)
	var all []topology.Cogrouped[string, []byte]
	for i := range op.From {
		place := strconv.Itoa(i)
		all = append(all, topology.Cogroup(from[grouped](g, op, i), func(k string, v, row []byte) []byte {
			return add(k, []byte(place+text(v)), row)
		}))
	}
	return all[0].And(all[1:]...)
}

func buildCogroup(g *graph, op scenario.Op) {
	g.put(op, topology.AggregateCogrouped(cogrouped(g, op), initial, g.rows(op), name(op)))
}

func buildMapTable(g *graph, op scenario.Op) {
	fn := mapping(op.Fn)
	g.put(op, topology.MapTableValues(from[table](g, op, 0), func(_ string, v []byte) []byte { return fn(v) }, derived(g, op)...))
}

// withKey shows the key and the value.
type withKey struct{ fn func([]byte) []byte }

func (withKey) Init(*processor.Context[string, []byte]) error { return nil }

func (w withKey) Transform(key string, v []byte, exists bool) ([]byte, bool, error) {
	if !exists {
		return nil, false, nil
	}
	return []byte(key + ":" + text(w.fn(v))), true, nil
}

func buildTransform(g *graph, op scenario.Op) {
	fn := mapping(op.Fn)
	g.put(op, topology.TransformTable(from[table](g, op, 0), func() topology.Transformer[string, []byte, []byte] { return withKey{fn} }, derived(g, op)...))
}

func buildGroupTable(g *graph, op scenario.Op) {
	key := keying(op.Key)
	switch t := g.handles[op.From[0]].(type) {
	case windowTable:
		g.put(op, topology.GroupTableBy(t, repartition(op), func(k windowed, v []byte) (string, []byte) { return key(k.Key, v), v }))
	case windowCounts:
		g.put(op, topology.GroupTableBy(t, repartition(op), func(k windowed, v int64) (string, []byte) {
			return key(k.Key, []byte(number(v))), []byte(number(v))
		}))
	default:
		g.put(op, topology.GroupTableBy(from[table](g, op, 0), repartition(op), func(k string, v []byte) (string, []byte) { return key(k, v), v }))
	}
}

func buildReduceTable(g *graph, op scenario.Op) {
	subtract := subtracting("")
	g.put(op, topology.ReduceTable(from[groupedTable](g, op, 0), reducing(op.Fn), func(row, v []byte) []byte { return subtract("", v, row) }, g.rows(op), name(op)))
}

func buildAggregateTable(g *graph, op scenario.Op) {
	g.put(op, topology.AggregateTable(from[groupedTable](g, op, 0), initial, adding(op.Fn), subtracting(op.Fn), g.rows(op), name(op)))
}
