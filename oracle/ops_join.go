package oracle

import (
	"github.com/millrace-streams/millrace/oracle/scenario"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/topology"
)

func init() {
	register(map[string]func(*graph, scenario.Op){
		"streamtablejoin": buildJoinTable,
		"streamtableleft": buildLeftJoinTable,
		"tablejoin":       buildJoinTables,
		"tableleft":       buildLeftJoinTables,
		"tableouter":      buildOuterJoinTables,
		"foreignjoin":     buildJoinForeign,
		"foreignleft":     buildLeftJoinForeign,
	})
}

// present makes a value that is not there nil, so that functions can tell.
func present(v []byte, exists bool) []byte {
	if !exists {
		return nil
	}
	return v
}

// graceOf returns the options of a join of a stream and a table.
func graceOf(op scenario.Op) []topology.JoinOption {
	opts := []topology.JoinOption{name(op)}
	if _, given := op.N["grace"]; given {
		opts = append(opts, topology.WithGrace(ms(op, "grace"), topology.NewJoinBuffer(op.ID+".buffer", serde.String, serde.Bytes)))
	}
	return opts
}

func buildJoinTable(g *graph, op scenario.Op) {
	join := joining(op.Fn)
	g.put(op, topology.JoinTable(from[stream](g, op, 0), from[table](g, op, 1), func(_ string, v, row []byte) []byte { return join(v, row) }, graceOf(op)...))
}

func buildLeftJoinTable(g *graph, op scenario.Op) {
	join := joining(op.Fn)
	g.put(op, topology.LeftJoinTable(from[stream](g, op, 0), from[table](g, op, 1), func(_ string, v, row []byte, exists bool) []byte {
		return join(v, present(row, exists))
	}, graceOf(op)...))
}

func buildJoinTables(g *graph, op scenario.Op) {
	g.put(op, topology.JoinTables(from[table](g, op, 0), from[table](g, op, 1), joining(op.Fn), derived(g, op)...))
}

func buildLeftJoinTables(g *graph, op scenario.Op) {
	join := joining(op.Fn)
	g.put(op, topology.LeftJoinTables(from[table](g, op, 0), from[table](g, op, 1), func(left, right []byte, exists bool) []byte {
		return join(left, present(right, exists))
	}, derived(g, op)...))
}

func buildOuterJoinTables(g *graph, op scenario.Op) {
	join := joining(op.Fn)
	g.put(op, topology.OuterJoinTables(from[table](g, op, 0), from[table](g, op, 1), func(left []byte, hasLeft bool, right []byte, hasRight bool) []byte {
		return join(present(left, hasLeft), present(right, hasRight))
	}, derived(g, op)...))
}

// foreignKey declares the foreign key of both tables' serdes.
func foreignKey(op scenario.Op) topology.ForeignKey[string, []byte, string, []byte] {
	t := topology.NewTopic(op.ID, serde.String, serde.Bytes)
	return topology.NewForeignKey(op.ID, t, t)
}

func buildJoinForeign(g *graph, op scenario.Op) {
	g.put(op, topology.JoinForeign(from[table](g, op, 0), from[table](g, op, 1), foreignKey(op), foreign(op.Key), joining(op.Fn), derived(g, op)...))
}

func buildLeftJoinForeign(g *graph, op scenario.Op) {
	join := joining(op.Fn)
	g.put(op, topology.LeftJoinForeign(from[table](g, op, 0), from[table](g, op, 1), foreignKey(op), foreign(op.Key), func(left, right []byte, exists bool) []byte {
		return join(left, present(right, exists))
	}, derived(g, op)...))
}
