package testdriver_test

import (
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
