package oracle

import (
	"github.com/millrace-streams/millrace/oracle/scenario"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/topology"
)

func init() {
	register(map[string]func(*graph, scenario.Op){
		"session.cogroup": func(g *graph, op scenario.Op) {
			g.put(op, topology.AggregateCogroupedSessions(cogrouped(g, op), sessionWindows(op), initial, merging, sessionStore(g, op, serde.Bytes, text), emission(op)...))
		},
	})
	for _, window := range []string{"tumbling", "hopping", "sliding"} {
		register(map[string]func(*graph, scenario.Op){
			window + ".cogroup": func(g *graph, op scenario.Op) {
				w, _ := windowing(op)
				g.put(op, topology.AggregateCogroupedWindows(cogrouped(g, op), w, initial, windowStore(g, op, serde.Bytes, text), emission(op)...))
			},
		})
	}
}
