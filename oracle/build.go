package oracle

import (
	"fmt"

	"github.com/millrace-streams/millrace/oracle/scenario"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// Handles of the types that scenarios use: values are bytes, counts numbers.
type (
	stream  = topology.Stream[string, []byte]
	table   = topology.KTable[string, []byte]
	grouped = topology.Grouped[string, []byte]
	counts  = topology.KTable[string, int64]
)

// graph is what a scenario's operators have built so far.
type graph struct {
	b       *topology.Builder
	handles map[string]any
	windows map[string]serde.Serde[windowed] // how the windows of a handle are encoded as keys
	inputs  []topology.Topic[string, []byte]
	outputs []output
	tables  []contents
	seen    func() // if set, told of each record of an input topic when a task gets it
}

// operators builds each operator of scenarios.
var operators = map[string]func(*graph, scenario.Op){}

// register adds operators of one family. It is called by init functions, one in each file of operators.
func register(family map[string]func(*graph, scenario.Op)) {
	for name, build := range family {
		operators[name] = build
	}
}

// operator returns what builds the operator, nil if nothing does. Versioned tables are operators of their own.
func operator(op scenario.Op) func(*graph, scenario.Op) {
	if _, versioned := op.N["history"]; versioned {
		return operators[op.Op+" versioned"]
	}
	return operators[op.Op]
}

// build declares the scenario's topology.
func build(s scenario.Scenario, seen func()) (*graph, *topology.Topology, error) {
	g := &graph{b: topology.NewBuilder(), handles: map[string]any{}, windows: map[string]serde.Serde[windowed]{}, seen: seen}
	for _, op := range s.Ops {
		add := operator(op)
		if add == nil {
			return nil, nil, fmt.Errorf("oracle: Millrace has no operator %s", op)
		}
		add(g, op)
	}
	top, err := g.b.Build()
	return g, top, err
}

// from returns what the operator reads.
func from[T any](g *graph, op scenario.Op, i int) T {
	h, ok := g.handles[op.From[i]].(T)
	if !ok {
		panic(fmt.Sprintf("oracle: %s: %s is a %T, not a %T", op, op.From[i], g.handles[op.From[i]], h))
	}
	return h
}

// put names a handle.
func (g *graph) put(op scenario.Op, handle any) { g.handles[op.ID] = handle }

// topic declares an input topic.
func (g *graph) topic(name string) topology.Topic[string, []byte] {
	t := topology.NewTopic(name, serde.String, serde.Bytes)
	if g.seen != nil {
		t = t.WithEventTime(func(_ string, _ []byte, recordTime, _ int64) int64 {
			g.seen()
			return recordTime
		})
	}
	g.inputs = append(g.inputs, t)
	return t
}

// rows declares the store that is named after the operator, and has its contents compared.
func (g *graph) rows(op scenario.Op) *store.KeyValue[string, []byte] {
	s := store.NewKeyValue(op.ID, serde.String, serde.Bytes)
	g.tables = append(g.tables, rowsOf(s, text))
	return s
}

func (g *graph) numbers(op scenario.Op) *store.KeyValue[string, int64] {
	s := store.NewKeyValue(op.ID, serde.String, serde.Int64)
	g.tables = append(g.tables, rowsOf(s, number))
	return s
}

func plain(key string) string { return key }

func number(n int64) string { return fmt.Sprint(n) }

// repartition declares the repartition topic that is named after the operator.
func repartition(op scenario.Op) topology.Repartition[string, []byte] {
	return topology.NewRepartition(op.ID, serde.String, serde.Bytes)
}

func name(op scenario.Op) topology.Option { return topology.Named(op.ID + ".node") }
