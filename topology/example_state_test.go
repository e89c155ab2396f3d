package topology_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/testdriver"
	"github.com/millrace-streams/millrace/topology"
)

// basket collects what each customer takes within a minute of stream time, beginning with the first.
type basket struct {
	ctx   *processor.Context[string, string]
	items *store.ListStateView[string, string]
	open  *store.KeyValueView[string, int64]
}

var (
	basketItems = store.NewListState("basket-items", serde.String, serde.String)
	openBaskets = store.NewKeyValue("open-baskets", serde.String, serde.Int64)
)

func newBasket() processor.Processor[string, string, string, string] { return &basket{} }

func (p *basket) Init(ctx *processor.Context[string, string]) (err error) {
	p.ctx = ctx
	ctx.Schedule(10*time.Second, processor.StreamTime, p.sellOld)
	if p.items, err = basketItems.View(ctx); err != nil {
		return err
	}
	p.open, err = openBaskets.View(ctx)
	return err
}

func (p *basket) Process(r processor.Record[string, string]) error {
	if err := p.items.SetKey(r.Key); err != nil {
		return err
	}
	if err := p.items.Append(r.Value); err != nil {
		return err
	}
	_, _, err := p.open.PutIfAbsent(r.Key, r.Timestamp)
	return err
}

// sellOld is the timer.
func (p *basket) sellOld(at int64) error {
	var failed error
	err := p.open.All(func(customer string, since int64) bool {
		if at-since >= time.Minute.Milliseconds() {
			failed = p.sell(customer, at)
		}
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	return err
}

func (p *basket) sell(customer string, at int64) error {
	if err := p.items.SetKey(customer); err != nil {
		return err
	}
	items, err := p.items.Values()
	if err != nil {
		return err
	}
	if err := p.items.Clear(); err != nil {
		return err
	}
	if err := p.open.Delete(customer); err != nil {
		return err
	}
	return p.ctx.Forward(processor.Record[string, string]{Key: customer, Value: strings.Join(items, "+"), Timestamp: at})
}

// A processor of your own with two stores and a timer. As each operator, it is undone as a whole when it fails, and what it
// keeps is restored after a crash.
func ExampleProcess_stateAndTimers() {
	b := topology.NewBuilder()
	topology.To(topology.Process(topology.From(b, orders), "basket", newBasket, basketItems, openBaskets), results)

	d := at(b, "orders ann=tea 70", "orders bob=milk 80", "orders ann=bread 100", "orders cid=jam 131", "orders cid=tea 141")
	defer d.Close()
	for _, r := range testdriver.Output(d, results).ReadAll() {
		fmt.Printf("%s=%s at second %d\n", r.Key, r.Value, r.Timestamp/1000)
	}
	// Output:
	// ann=tea+bread at second 131
	// bob=milk at second 141
}
