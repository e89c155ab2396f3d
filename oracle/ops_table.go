package oracle

import (
	"github.com/millrace-streams/millrace/oracle/scenario"
	"github.com/millrace-streams/millrace/topology"
)

func init() {
	register(map[string]func(*graph, scenario.Op){
		"changes": buildChanges,
		"count": func(g *graph, op scenario.Op) {
			g.put(op, topology.Count(from[grouped](g, op, 0), g.numbers(op), name(op)))
		},
		"reduce": func(g *graph, op scenario.Op) {
			g.put(op, topology.Reduce(from[grouped](g, op, 0), reducing(op.Fn), g.rows(op), name(op)))
		},
		"aggregate": buildAggregate,
		"table":     func(g *graph, op scenario.Op) { g.put(op, topology.Table(g.b, g.topic(op.From[0]), g.rows(op))) },
	})
}

func buildChanges(g *graph, op scenario.Op) {
	switch t := g.handles[op.From[0]].(type) {
	case table:
		g.put(op, topology.Changes(t, name(op)))
	case counts:
		g.put(op, topology.Changes(t, name(op)))
	default:
		from[table](g, op, 0)
	}
}

func buildAggregate(g *graph, op scenario.Op) {
	g.put(op, topology.Aggregate(from[grouped](g, op, 0), initial, adding(op.Fn), g.rows(op), name(op)))
}
