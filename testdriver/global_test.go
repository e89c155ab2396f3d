package testdriver_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/testdriver"
	"github.com/millrace-streams/millrace/topology"
)

// Every task sees all rows of a global table, whatever partition they and its own records are in, and sees them again after
// a crash.
func TestGlobalTable(t *testing.T) {
	orders := topology.NewTopic("orders", serde.String, serde.String)
	names := topology.NewTopic("names", serde.String, serde.String)
	out := topology.NewTopic("out", serde.String, serde.String)
	b := topology.NewBuilder()
	table := topology.GlobalTable(b, names, store.NewKeyValue("names", serde.String, serde.String))
	customer := func(_, who string) (string, bool) { return who, true }
	topology.To(topology.JoinGlobal(topology.From(b, orders), table, customer, func(_, _, name string) string { return name }), out)
	topo, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	d := testdriver.New(t, topo, testdriver.Partitions("orders", 3), testdriver.Partitions("names", 2), testdriver.Partitions("out", 1))
	in, rows, got := testdriver.Input(d, orders), testdriver.Input(d, names), testdriver.Output(d, out)
	want := func(what string, values ...string) {
		t.Helper()
		read := got.ReadValues()
		if len(read) != len(values) {
			t.Fatalf("%s: got %v, want %v", what, read, values)
		}
		for i := range values {
			if read[i] != values[i] {
				t.Fatalf("%s: got %v, want %v", what, read, values)
			}
		}
	}
	in.Send("o1", "ann")
	want("before the row")
	rows.Send("ann", "Ann")
	rows.Send("bob", "Bob")
	for p := range int32(3) {
		in.SendTo(p, record("o", "ann"))
		in.SendTo(p, record("o", "bob"))
	}
	want("from every partition", "Ann", "Bob", "Ann", "Bob", "Ann", "Bob")
	rows.Send("ann", "Anna")
	in.Send("o2", "ann")
	want("changed", "Anna")
	d.Crash()
	d.RestartEmpty()
	in.Send("o3", "ann")
	want("after a crash", "Anna")
	rows.SendTombstone("ann")
	in.Send("o4", "ann")
	want("deleted")
}

func record(key, value string) processor.Record[string, string] {
	return processor.Record[string, string]{Key: key, Value: value}
}

// greeter looks names up by itself, as no join could.
type greeter struct {
	ctx   *processor.Context[string, string]
	names *store.ReadOnlyKeyValue[string, string]
}

var customers = store.NewKeyValue("customers", serde.String, serde.String)

func (g *greeter) Init(ctx *processor.Context[string, string]) error {
	g.ctx, g.names = ctx, customers.Query(ctx)
	if _, err := customers.View(ctx); !errors.Is(err, processor.ErrReadOnly) {
		return fmt.Errorf("a view of a global table: %w", err)
	}
	if _, _, err := store.NewKeyValue("others", serde.String, serde.String).Query(ctx).Get("a"); !errors.Is(err, processor.ErrUnknownStore) {
		return fmt.Errorf("a store that is not named: %w", err)
	}
	return nil
}

func (g *greeter) Process(r processor.Record[string, string]) error {
	name, ok, err := g.names.Get(r.Key)
	if err != nil || !ok {
		return err
	}
	same := 0
	if err := g.names.All(func(_, other string) bool {
		if other == name {
			same++
		}
		return true
	}); err != nil {
		return err
	}
	r.Value = fmt.Sprintf("%s, one of %d", name, same)
	return g.ctx.Forward(r)
}

// A processor that names the store of a global table reads its rows, those of all partitions, and so do queries.
func TestGlobalTableIsReadByProcessorsAndQueries(t *testing.T) {
	t.Parallel()
	orders := topology.NewTopic("orders", serde.String, serde.String)
	names := topology.NewTopic("names", serde.String, serde.String)
	greetings := topology.NewTopic("greetings", serde.String, serde.String)
	topo := build(t, func(b *topology.Builder) {
		topology.GlobalTable(b, names, customers)
		greeted := topology.Process(topology.From(b, orders), "greeter",
			func() processor.Processor[string, string, string, string] { return &greeter{} }, customers)
		topology.To(greeted, greetings)
	})
	d := testdriver.New(t, topo, testdriver.DefaultPartitions(3))
	in, rows, got := testdriver.Input(d, orders), testdriver.Input(d, names), testdriver.Output(d, greetings)
	rows.SendTo(0, record("1", "Ann"))
	rows.SendTo(1, record("2", "Ann"))
	rows.SendTo(2, record("3", "Bob"))
	in.Send("1", "")
	in.Send("3", "")
	in.Send("4", "")
	rows.Send("2", "Bea")
	in.Send("1", "")
	want(t, got.ReadValues(), []string{"Ann, one of 2", "Bob, one of 1", "Ann, one of 1"})

	var all []string
	noError(t, customers.Query(d).ReverseAll(func(k, v string) bool {
		all = append(all, k+v)
		return true
	}))
	want(t, all, []string{"3Bob", "2Bea", "1Ann"})
	if len(topo.Specs()[0].Stores) != 0 {
		t.Error("the global table has become a store of the task's")
	}
}
