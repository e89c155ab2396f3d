package main

import (
	"slices"
	"testing"

	"github.com/millrace-streams/millrace/examples/internal/exampletest"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/testdriver"
)

func driver(t *testing.T, opts ...testdriver.Option) (*testdriver.Driver, topics) {
	t.Helper()
	topics := newTopics("customers", "orders", "deliveries")
	topo, err := topics.ordersOfCustomers()
	if err != nil {
		t.Fatal(err)
	}
	return testdriver.New(t, topo, opts...), topics
}

// The tables need not be partitioned alike.
func TestDeliveries(t *testing.T) {
	d, topics := driver(t, testdriver.Partitions("customers", 3), testdriver.Partitions("orders", 2))
	out := testdriver.Output(d, topics.deliveries)
	want := [][]string{
		nil, nil, // customers without orders
		{"o1: 2 books, for Ann in Oslo"},
		{"o2: 1 lamp, for Ann in Oslo"},
		{"o3: 1 desk, customer unknown"},
		{"o1: 2 books, for Ann in Bergen", "o2: 1 lamp, for Ann in Bergen"},
		{"o2: 1 lamp, for Bob in Rome"},
		{"o3: 1 desk, for Cid in Lima"},
		{"o2: 1 lamp, customer unknown"},
		{"o1: deleted"},
	}
	for i, in := range topics.sample() {
		exampletest.Feed(d, topics.sample()[i:i+1])
		var got []string
		for _, r := range out.ReadAll() {
			got = append(got, show(r.Record))
		}
		slices.Sort(got) // of orders in different partitions
		if !slices.Equal(got, want[i]) {
			t.Errorf("%s: got %q, want %q", in.Says, got, want[i])
		}
	}
}

// A delivery has the later time of an order and its customer if the order has changed, and the customer's if that has. An
// order that names no customer is delivered to nobody.
func TestTimes(t *testing.T) {
	d, topics := driver(t)
	customers, orders := testdriver.Input(d, topics.customers), testdriver.Input(d, topics.orders)
	customers.SendAt("c1", Customer{"Ann", "Oslo"}, 30)
	orders.SendAt("o1", Order{"c1", "2 books"}, 20)
	orders.SendAt("o1", Order{"c1", "3 books"}, 40)
	customers.SendAt("c1", Customer{"Ann", "Bergen"}, 35)
	orders.SendAt("o2", Order{"", "1 lamp"}, 50)
	orders.SendAll(processor.Record[string, Order]{Key: "o1", NullValue: true, Timestamp: 60})

	out := testdriver.Output(d, topics.deliveries)
	for _, want := range []struct {
		text string
		time int64
	}{
		{"o1: 2 books, for Ann in Oslo", 30},
		{"o1: 3 books, for Ann in Oslo", 40},
		{"o1: 3 books, for Ann in Bergen", 35},
		{"o2: 1 lamp, customer unknown", 50},
		{"o1: deleted", 60},
	} {
		if got, ok := out.Read(); !ok || show(got.Record) != want.text || got.Timestamp != want.time {
			t.Errorf("got %s @%d, want %s @%d", show(got.Record), got.Timestamp, want.text, want.time)
		}
	}
}
