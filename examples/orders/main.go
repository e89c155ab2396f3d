// Command orders joins orders with their customers: two tables, by a foreign key.
//
// It sends a small sample of orders and customers and changes to them, and prints each with what comes out because of it.
// Without -brokers it starts a Kafka of its own inside the process, so that nothing needs to be installed.
package main

import (
	"context"
	"fmt"
	"io"

	"github.com/millrace-streams/millrace/examples/internal/example"
	"github.com/millrace-streams/millrace/processor"
)

const about = `Orders are joined with their customers: two tables, joined by a foreign key, since an order has an id of
its own and names its customer's. The result follows the changes of both: of an order, of its customer, and
of which customer it is.`

// options are the command's flags.
type options struct {
	example.SceneOptions
	customers, orders, deliveries string
}

func main() { example.Main("orders", parse, run) }

func parse(args []string) (o options, err error) {
	f := o.Flags("orders", about, "orders and customers", 4)
	f.StringVar(&o.customers, "customers", "customers", "input `topic`: key id, value {\"name\": ..., \"city\": ...}")
	f.StringVar(&o.orders, "orders", "orders", "input `topic`: key id, value {\"customer\": id, \"items\": ...}")
	f.StringVar(&o.deliveries, "out", "deliveries", "output `topic`")
	err = example.Parse(f, args)
	return o, err
}

func run(ctx context.Context, o options, stdout io.Writer) error {
	t := newTopics(o.customers, o.orders, o.deliveries)
	topo, err := t.ordersOfCustomers()
	if err != nil {
		return err
	}
	scene := example.Scene{
		About: about, Topology: topo,
		Sample:  func(context.Context, *example.Home) ([]example.Input, error) { return t.sample(), nil },
		Outputs: []example.Output{example.Show(t.deliveries, show)},
	}
	return scene.Play(ctx, o.SceneOptions, stdout)
}

func show(r processor.Record[string, Delivery]) string {
	switch to := r.Value.To; {
	case r.NullValue:
		return r.Key + ": deleted"
	case to == nil:
		return fmt.Sprintf("%s: %s, customer unknown", r.Key, r.Value.Items)
	default:
		return fmt.Sprintf("%s: %s, for %s in %s", r.Key, r.Value.Items, to.Name, to.City)
	}
}
