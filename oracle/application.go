package oracle

import (
	"github.com/millrace-streams/millrace/oracle/scenario"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// Application is a scenario's topology for a broker, and what reads what it leaves behind.
type Application struct {
	Topology *topology.Topology
	Outputs  map[string]Text // output topics, by name
	graph    *graph
}

// NewApplication builds a scenario. seen, if not nil, is told of each record of an input topic when it has come to the task
// that will process it; the topics of global tables are left out. It is called by all workers.
func NewApplication(s scenario.Scenario, seen func()) (*Application, error) {
	g, top, err := build(s, seen)
	if err != nil {
		return nil, err
	}
	a := &Application{Topology: top, Outputs: map[string]Text{}, graph: g}
	for _, o := range g.outputs {
		a.Outputs[o.topic] = o.text
	}
	return a, nil
}

// Stores returns what is in the stores of some of the operators, by their names. The records of the scenario say which keys
// and times versioned stores are asked for.
func (a *Application) Stores(s scenario.Scenario, from store.QuerySource) (map[string][]scenario.Row, error) {
	return a.graph.contents(s, from)
}
