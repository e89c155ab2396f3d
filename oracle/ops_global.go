package oracle

import (
	"github.com/millrace-streams/millrace/oracle/scenario"
	"github.com/millrace-streams/millrace/topology"
)

func init() {
	register(map[string]func(*graph, scenario.Op){
		"globaltable":      buildGlobalTable,
		"streamglobaljoin": buildJoinGlobal,
		"streamgloballeft": buildLeftJoinGlobal,
	})
}

type global = topology.Global[string, []byte]

func buildGlobalTable(g *graph, op scenario.Op) {
	g.put(op, topology.GlobalTable(g.b, g.topic(op.From[0]), g.rows(op)))
}

func buildJoinGlobal(g *graph, op scenario.Op) {
	join := joining(op.Fn)
	g.put(op, topology.JoinGlobal(from[stream](g, op, 0), from[global](g, op, 1), foreign(op.Key), func(_ string, v, row []byte) []byte { return join(v, row) }, name(op)))
}

func buildLeftJoinGlobal(g *graph, op scenario.Op) {
	join := joining(op.Fn)
	g.put(op, topology.LeftJoinGlobal(from[stream](g, op, 0), from[global](g, op, 1), foreign(op.Key), func(_ string, v, row []byte, exists bool) []byte {
		return join(v, present(row, exists))
	}, name(op)))
}
