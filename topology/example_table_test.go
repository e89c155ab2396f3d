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

var (
	ordersByID    = store.NewKeyValue("orders-by-id", serde.String, serde.String)
	customers     = topology.NewTopic("customers", serde.String, serde.String)
	ordersPerKey  = store.NewKeyValue("orders-per-key", serde.String, serde.Int64)
	customersByID = store.NewKeyValue("customers-by-id", serde.String, serde.String)
)

// scene sends "topic key=value" records ("key=" alone is a tombstone), each to be processed before the next, and prints what
// comes out.
func scene[K, V any](b *topology.Builder, out topology.Topic[K, V], records ...string) {
	r := start(b, processor.Options{EveryUpdate: true}, nil)
	for i, record := range records {
		topic, record, _ := strings.Cut(record, " ")
		key, value, _ := strings.Cut(record, "=")
		in := text(key, value, int64(i))
		if value == "" {
			in = rm(key, int64(i))
		}
		r.send(topic, in)
		must(0, r.run())
	}
	for _, line := range read(r, out) {
		line, _, _ = strings.Cut(line, "@")
		fmt.Println(line)
	}
}

// A row that no longer passes is deleted; of one that never did nothing is heard.
func ExampleFilterTable() {
	b := topology.NewBuilder()
	all := topology.Table(b, orders, ordersByID)
	open := topology.FilterTable(all, func(_, state string) bool { return state != "closed" })
	topology.To(topology.Changes(open), results)

	play(b, results, "o1=new", "o2=closed", "o1=paid", "o1=closed", "o2=")
	// Output:
	// o1=new
	// o1=paid
	// o1=null
}

func ExampleMapTableValues() {
	b := topology.NewBuilder()
	shouted := topology.MapTableValues(topology.Table(b, orders, ordersByID), func(id, state string) string {
		return id + " is " + state
	}, topology.Materialized(store.NewKeyValue("states", serde.String, serde.String)))
	topology.To(topology.Changes(shouted), results)

	play(b, results, "o1=new", "o1=")
	// Output:
	// o1=o1 is new
	// o1=null
}

// A stream whose records are the newest rows of their keys is a table.
func ExampleToTable() {
	b := topology.NewBuilder()
	known := topology.Filter(topology.From(b, orders), func(_, state string) bool { return state != "draft" })
	topology.To(topology.Changes(topology.ToTable(known, ordersByID)), results)

	play(b, results, "o1=draft", "o1=new", "o1=draft", "o1=")
	// Output:
	// o1=new
	// o1=null
}

// The changes of a table under another key, deletions included.
func ExampleChangesBy() {
	b := topology.NewBuilder()
	byState := topology.ChangesBy(topology.Table(b, orders, ordersByID), func(id, state string, exists bool) string {
		if !exists {
			return "deleted " + id
		}
		return state
	})
	topology.To(byState, results)

	play(b, results, "o1=new", "o1=")
	// Output:
	// new=new
	// deleted o1=null
}

// titled writes what it knows of a customer before his name.
type titled struct {
	titles *store.KeyValueView[string, string]
}

var titles = store.NewKeyValue("titles", serde.String, serde.String)

func (t *titled) Init(ctx *processor.Context[string, string]) (err error) {
	t.titles, err = titles.View(ctx)
	return err
}

func (t *titled) Transform(id, name string, exists bool) (string, bool, error) {
	title, _, err := t.titles.Get(id)
	return title + name, exists, err
}

// The transformer of a table reaches stores, such as that of another table.
func ExampleTransformTable() {
	b := topology.NewBuilder()
	topology.Table(b, orders, titles)
	names := topology.TransformTable(topology.Table(b, customers, customersByID),
		func() topology.Transformer[string, string, string] { return &titled{} }, topology.WithStores(titles))
	topology.To(topology.Changes(names), results)

	scene(b, results, "customers c1=Ann", "orders c1=Dr. ", "customers c1=Anna")
	// Output:
	// c1=Ann
	// c1=Dr. Anna
}

// A table forwards the last update of each row once per commit. CachingDisabled makes it forward every update.
func ExampleCachingDisabled() {
	for _, opts := range [][]topology.TableOption{nil, {topology.CachingDisabled()}} {
		b := topology.NewBuilder()
		counts := topology.Count(topology.GroupByKey(topology.From(b, orders)), ordersPerKey, opts...)
		topology.To(topology.Changes(counts), numbers)

		d := must(testdriver.Open(must(b.Build()), testdriver.Cached()))
		one := processor.Record[string, string]{Key: "ann", Value: "tea"}
		testdriver.Input(d, orders).SendAll(one, one, one) // in one commit
		fmt.Println(testdriver.Output(d, numbers).ReadPairs())
		d.Close()
	}
	// Output:
	// [{ann 3}]
	// [{ann 1} {ann 2} {ann 3}]
}

// How many orders are in each state: an order that changes its state leaves one group and enters another.
func ExampleGroupTableBy() {
	byState := topology.NewRepartition("by-state", serde.String, serde.String)
	states := store.NewKeyValue("orders-in-state", serde.String, serde.Int64)

	b := topology.NewBuilder()
	groups := topology.GroupTableBy(topology.Table(b, orders, ordersByID), byState, func(id, state string) (string, string) {
		return state, id
	})
	topology.To(topology.Changes(topology.CountTable(groups, states)), numbers)

	scene(b, numbers, "orders o1=new", "orders o2=new", "orders o1=paid", "orders o2=")
	// Output:
	// new=1
	// new=2
	// new=1
	// paid=1
	// new=0
}

// Two streams make one table, each in its own way.
func ExampleCogroup() {
	refunds := topology.NewTopic("refunds", serde.String, serde.String)
	logs := store.NewKeyValue("account-logs", serde.String, serde.String)

	b := topology.NewBuilder()
	bought := topology.Cogroup(topology.GroupByKey(topology.From(b, orders)), func(_, amount, log string) string { return log + "+" + amount })
	returned := topology.Cogroup(topology.GroupByKey(topology.From(b, refunds)), func(_, amount, log string) string { return log + "-" + amount })
	accounts := topology.AggregateCogrouped(bought.And(returned), func() string { return "0" }, logs)
	topology.To(topology.Changes(accounts), results)

	scene(b, results, "orders ann=10", "refunds ann=3", "orders ann=5")
	// Output:
	// ann=0+10
	// ann=0+10-3
	// ann=0+10-3+5
}

// Each order gets the name that its customer has at the moment.
func ExampleLeftJoinTable() {
	b := topology.NewBuilder()
	names := topology.Table(b, customers, customersByID)
	topology.To(topology.LeftJoinTable(topology.From(b, orders), names, func(id, order, name string, known bool) string {
		if !known {
			name = "somebody"
		}
		return name + " orders " + order
	}), results)

	scene(b, results, "orders c1=tea", "customers c1=Ann", "orders c1=milk")
	// Output:
	// c1=somebody orders tea
	// c1=Ann orders milk
}

func ExampleOuterJoinTables() {
	b := topology.NewBuilder()
	both := topology.OuterJoinTables(topology.Table(b, orders, ordersByID), topology.Table(b, customers, customersByID),
		func(order string, hasOrder bool, name string, hasName bool) string {
			return fmt.Sprintf("%q %v, %q %v", order, hasOrder, name, hasName)
		})
	topology.To(topology.Changes(both), results)

	scene(b, results, "orders c1=tea", "customers c1=Ann", "orders c1=", "customers c1=")
	// Output:
	// c1="tea" true, "" false
	// c1="tea" true, "Ann" true
	// c1="" false, "Ann" true
	// c1=null
}

// An order names its customer in its value. It follows changes of either.
func ExampleJoinForeign() {
	customer := topology.NewForeignKey("orders-customer", ordersByID, customersByID)

	b := topology.NewBuilder()
	joined := topology.JoinForeign(topology.Table(b, orders, ordersByID), topology.Table(b, customers, customersByID), customer,
		func(id, order string) (string, bool) {
			_, customer, ok := strings.Cut(order, " for ")
			return customer, ok
		},
		func(order, name string) string { return order + ": " + name })
	topology.To(topology.Changes(joined), results)

	scene(b, results, "customers c1=Ann", "orders o1=tea for c1", "orders o2=milk", "customers c1=Anna", "orders o1=tea for c2", "customers c2=Bob")
	// Output:
	// o1=tea for c1: Ann
	// o1=tea for c1: Anna
	// o1=null
	// o1=tea for c2: Bob
}

// A global table can be joined by any key, and the stream need not be partitioned by it.
func ExampleJoinGlobal() {
	b := topology.NewBuilder()
	names := topology.GlobalTable(b, customers, customersByID)
	topology.To(topology.JoinGlobal(topology.From(b, orders), names,
		func(_, customer string) (string, bool) { return customer, true },
		func(order, _, name string) string { return order + " is for " + name }), results)

	scene(b, results, "customers c1=Ann", "orders o1=c1", "orders o2=c9")
	// Output:
	// o1=o1 is for Ann
}

// A late price is still found: each order is joined with the price of its own time.
func ExampleVersionedTable() {
	b := topology.NewBuilder()
	list := topology.VersionedTable(b, customers, prices)
	topology.To(topology.JoinTable(topology.From(b, orders), list, func(item, n, price string) string { return n + " at " + price }), results)

	r := start(b, processor.Options{}, nil)
	r.feed("customers tea 3 10", "customers tea 4 30", "orders tea 2 20", "orders tea 1 31", "customers tea 5 15", "orders tea 7 20")
	for _, line := range read(r, results) {
		fmt.Println(line)
	}
	// Output:
	// tea=2 at 3@20
	// tea=1 at 4@31
	// tea=7 at 5@20
}

// A price may come a little late: orders wait for it, for 10 ms of stream time.
func ExampleWithGrace() {
	waiting := topology.NewJoinBuffer("orders-waiting", serde.String, serde.String)

	b := topology.NewBuilder()
	list := topology.VersionedTable(b, customers, prices)
	priced := topology.JoinTable(topology.From(b, orders), list,
		func(item, n, price string) string { return n + " at " + price }, topology.WithGrace(10*time.Millisecond, waiting))
	topology.To(priced, results)

	r := start(b, processor.Options{}, nil)
	r.feed("customers tea 3 10", "orders tea 2 20", "customers tea 4 15", "orders tea 1 29", "orders tea 1 30")
	for _, line := range read(r, results) {
		fmt.Println(line)
	}
	// Output:
	// tea=2 at 4@20
}
