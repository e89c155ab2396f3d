package oracle

import (
	"github.com/millrace-streams/millrace/oracle/scenario"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

func init() {
	register(map[string]func(*graph, scenario.Op){
		"streamjoin": func(g *graph, op scenario.Op) {
			w, left, right, _ := joinWindows(g, op)
			join := joining(op.Fn)
			g.put(op, topology.JoinStreams(from[stream](g, op, 0), from[stream](g, op, 1), w, func(_ string, l, r []byte) []byte {
				return join(l, r)
			}, left, right, name(op)))
		},
		"streamleft": func(g *graph, op scenario.Op) {
			w, left, right, outer := joinWindows(g, op)
			join := joining(op.Fn)
			g.put(op, topology.LeftJoinStreams(from[stream](g, op, 0), from[stream](g, op, 1), w, func(_ string, l, r []byte, exists bool) []byte {
				return join(l, present(r, exists))
			}, left, right, outer, name(op)))
		},
		"streamouter": func(g *graph, op scenario.Op) {
			w, left, right, outer := joinWindows(g, op)
			join := joining(op.Fn)
			g.put(op, topology.OuterJoinStreams(from[stream](g, op, 0), from[stream](g, op, 1), w, func(_ string, l []byte, hasLeft bool, r []byte, hasRight bool) []byte {
				return join(present(l, hasLeft), present(r, hasRight))
			}, left, right, outer, name(op)))
		},
	})
}

// joinWindows returns the windows of a join of streams, and declares its stores.
func joinWindows(g *graph, op scenario.Op) (w topology.JoinWindows, left, right *store.Window[string, []byte], outer *topology.OuterStore[string, []byte, []byte]) {
	w = topology.WithinBeforeAfter(ms(op, "before"), ms(op, "after")).Grace(ms(op, "grace"))
	left = store.NewWindow(op.ID+".left", serde.String, serde.Bytes, w.Store())
	right = store.NewWindow(op.ID+".right", serde.String, serde.Bytes, w.Store())
	g.tables = append(g.tables, joinedOf(left, op, 0), joinedOf(right, op, 1))
	return w, left, right, topology.NewOuterStore(op.ID+".outer", serde.String, serde.Bytes, serde.Bytes)
}
