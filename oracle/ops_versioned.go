package oracle

import (
	"github.com/millrace-streams/millrace/oracle/scenario"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

func init() {
	register(map[string]func(*graph, scenario.Op){
		"table versioned": func(g *graph, op scenario.Op) {
			g.put(op, topology.VersionedTable(g.b, g.topic(op.From[0]), history(g, op), name(op)))
		},
		"totable versioned": func(g *graph, op scenario.Op) {
			g.put(op, topology.ToVersionedTable(from[stream](g, op, 0), history(g, op), name(op)))
		},
	})
}

// history declares the store of a versioned table.
func history(g *graph, op scenario.Op) *store.Versioned[string, []byte] {
	s := store.NewVersioned(op.ID, serde.String, serde.Bytes, ms(op, "history"))
	g.tables = append(g.tables, versionsOf(s, text))
	return s
}
