package integration

import (
	"errors"
	"slices"
	"testing"

	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// named joins orders (key order, value customer) with the global table of customers' names, given in upper case.
func named(t *testing.T, orders, names, out string) *topology.Topology {
	t.Helper()
	return build(t, func(b *topology.Builder) {
		upper := func(_, name string) (string, bool) {
			if name == "panic" {
				panic("no name")
			}
			return name + "!", name != "none"
		}
		table := topology.GlobalTableOf(b, text(names), store.NewKeyValue("names", serde.String, serde.String), upper)
		topology.To(topology.JoinGlobal(topology.From(b, text(orders)), table,
			func(_, customer string) (string, bool) { return customer, true },
			func(_, _, name string) string { return name }), text(out))
	})
}

// A global table is read as a whole before the first record is joined, the same way at each start (field report 23), and
// followed while the application runs.
func TestFieldReport23GlobalTable(t *testing.T) {
	t.Parallel()
	orders, names, out := brokertest.Topic(t, "orders", 3), brokertest.Topic(t, "names", 2), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	brokertest.Produce(t, cfg.Brokers, names, brokertest.KV("a", "ann"), brokertest.KV("b", "bob"), brokertest.KV("n", "none"))
	brokertest.Produce(t, cfg.Brokers, orders, brokertest.KV("1", "a"), brokertest.KV("2", "b"), brokertest.KV("3", "n"), brokertest.KV("4", "z"))
	first := start(t, named(t, orders, names, out), cfg)
	first.drain()
	joined := func(want ...string) {
		t.Helper()
		var got []string
		for _, r := range brokertest.ReadCommitted(t, cfg.Brokers, out) {
			got = append(got, string(r.Key)+"="+string(r.Value))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("joined %v, want %v", got, want)
		}
	}
	first.stop()
	joined("1=ann!", "2=bob!")

	brokertest.Produce(t, cfg.Brokers, names, brokertest.KV("a", "anna"), brokertest.Record{ByKey: true, Key: []byte("b")})
	brokertest.Produce(t, cfg.Brokers, orders, brokertest.KV("5", "a"), brokertest.KV("6", "b"))
	second := start(t, named(t, orders, names, out), cfg)
	second.drain()
	second.stop()
	joined("1=ann!", "2=bob!", "5=anna!")
}

// A record that cannot become a row stops the application, at its start and while it runs, with the record's place.
func TestGlobalTableFails(t *testing.T) {
	t.Parallel()
	orders, names, out := brokertest.Topic(t, "orders", 1), brokertest.Topic(t, "names", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	running := start(t, named(t, orders, names, out), cfg)
	brokertest.Produce(t, cfg.Brokers, orders, brokertest.KV("1", "a"))
	running.drain()
	brokertest.Produce(t, cfg.Brokers, names, brokertest.KV("a", "panic"))
	for what, err := range map[string]error{"running": running.join(), "start": refused(t, named(t, orders, names, out), cfg)} {
		var e *processor.RecordError
		if !errors.As(err, &e) || e.Topic != names || e.Offset != 0 {
			t.Errorf("%s: got %v", what, err)
		}
	}
}
