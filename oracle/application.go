package oracle

import (
	"github.com/millrace-streams/millrace/oracle/scenario"
	"github.com/millrace-streams/millrace/topology"
)

// Application is a scenario's topology for a broker, and what reads the topics that it leaves there.
type Application struct {
	Topology *topology.Topology
	Outputs  map[string]Text // output topics, by name
	Stores   map[string]Text // changelogs of key-value stores, by the stores' names
}

// NewApplication builds a scenario. seen, if not nil, is told of each record of an input topic when it has come to the task
// that will process it; the topics of global tables are left out. It is called by all workers.
func NewApplication(s scenario.Scenario, seen func()) (*Application, error) {
	g, top, err := build(s, seen)
	if err != nil {
		return nil, err
	}
	a := &Application{Topology: top, Outputs: map[string]Text{}, Stores: map[string]Text{}}
	for _, o := range g.outputs {
		a.Outputs[o.topic] = o.text
	}
	for _, t := range g.tables {
		a.Stores[t.name] = t.text
	}
	return a, nil
}
