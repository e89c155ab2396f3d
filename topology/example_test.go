package topology_test

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

var (
	orders  = topology.NewTopic("orders", serde.String, serde.String)
	results = topology.NewTopic("results", serde.String, serde.String)
	numbers = topology.NewTopic("numbers", serde.String, serde.Int64)
)

// play sends "key=value" records to the topic orders ("key=" alone is a tombstone) and prints what comes out.
func play[K, V any](b *topology.Builder, out topology.Topic[K, V], records ...string) {
	r := start(b, processor.Options{EveryUpdate: true}, nil)
	for i, record := range records {
		key, value, _ := strings.Cut(record, "=")
		if value == "" {
			r.send(orders.Name(), rm(key, int64(i)))
		} else {
			r.send(orders.Name(), text(key, value, int64(i)))
		}
	}
	must(0, r.run())
	for _, line := range read(r, out) {
		line, _, _ = strings.Cut(line, "@")
		fmt.Println(line)
	}
}

// The word count: split, group by another key through a repartition topic, count, write the changes.
func Example() {
	words := topology.NewRepartition("by-word", serde.String, serde.String)
	counts := store.NewKeyValue("counts", serde.String, serde.Int64)

	b := topology.NewBuilder()
	lines := topology.From(b, orders)
	grouped := topology.GroupBy(topology.FlatMapValues(lines, strings.Fields), words, func(_, word string) string { return word })
	topology.To(topology.Changes(topology.Count(grouped, counts)), numbers)

	play(b, numbers, "line1=to be or", "line2=not to be")
	// Output:
	// to=1
	// be=1
	// or=1
	// not=1
	// to=2
	// be=2
}

// A record happened when its value says so, here in seconds behind "@", and not when it was written.
func ExampleTopic_WithEventTime() {
	sent := orders.WithEventTime(func(_, what string, recordTime, _ int64) int64 {
		_, seconds, _ := strings.Cut(what, "@")
		if n, err := strconv.ParseInt(seconds, 10, 64); err == nil {
			return n * 1000
		}
		return recordTime
	})
	b := topology.NewBuilder()
	topology.To(topology.From(b, sent), results)

	r := start(b, processor.Options{}, nil)
	r.send("orders", text("ann", "tea@7", 1), text("bob", "milk", 2))
	must(0, r.run())
	for _, line := range read(r, results) {
		fmt.Println("key=value@timestamp:", line)
	}
	// Output:
	// key=value@timestamp: ann=tea@7@7000
	// key=value@timestamp: bob=milk@2
}

func ExampleMapValues() {
	b := topology.NewBuilder()
	topology.To(topology.MapValues(topology.From(b, orders), strings.ToUpper), results)

	play(b, results, "ann=tea", "ann=") // a tombstone passes on
	// Output:
	// ann=TEA
	// ann=null
}

func ExampleMap() {
	b := topology.NewBuilder()
	swapped := topology.Map(topology.From(b, orders), func(who, what string) (string, string) { return what, who })
	topology.To(swapped, results)

	play(b, results, "ann=tea")
	// Output:
	// tea=ann
}

func ExampleFlatMap() {
	b := topology.NewBuilder()
	items := topology.FlatMap(topology.From(b, orders), func(who, list string) (out []topology.Pair[string, string]) {
		for _, item := range strings.Split(list, ",") {
			out = append(out, topology.Pair[string, string]{Key: item, Value: who})
		}
		return out
	})
	topology.To(items, results)

	play(b, results, "ann=tea,milk")
	// Output:
	// tea=ann
	// milk=ann
}

func ExampleFilter() {
	b := topology.NewBuilder()
	tea := topology.Filter(topology.From(b, orders), func(_, what string) bool { return what == "tea" })
	topology.To(tea, results)

	play(b, results, "ann=tea", "bob=coffee")
	// Output:
	// ann=tea
}

func ExampleSplit() {
	b := topology.NewBuilder()
	kinds := topology.Split(topology.From(b, orders),
		topology.When("hot", func(_, what string) bool { return what == "tea" || what == "coffee" }),
		topology.When("cold", func(_, what string) bool { return what == "milk" }))
	hot := topology.MapValues(kinds.Branch("hot"), func(what string) string { return "hot " + what })
	rest := topology.MapValues(kinds.Rest(), func(what string) string { return "no " + what })
	topology.To(topology.Merge(hot, kinds.Branch("cold"), rest), results)

	play(b, results, "ann=tea", "bob=milk", "cid=soup")
	// Output:
	// ann=hot tea
	// bob=milk
	// cid=no soup
}

// After a new key, records go through a repartition topic before anything is kept by that key.
func ExampleThrough() {
	byItem := topology.NewRepartition("by-item", serde.String, serde.String)
	buyers := store.NewKeyValue("buyers", serde.String, serde.String)

	b := topology.NewBuilder()
	swapped := topology.Map(topology.From(b, orders), func(who, what string) (string, string) { return what, who })
	perItem := topology.GroupByKey(topology.Through(swapped, byItem))
	all := topology.Reduce(perItem, func(row, who string) string { return row + "+" + who }, buyers)
	topology.To(topology.Changes(all), results)

	play(b, results, "ann=tea", "bob=tea")
	// Output:
	// tea=ann
	// tea=ann+bob
}

// Process may change keys, so that what it forwards cannot be counted by key, unless somebody knows that it does not.
func ExampleKeyUnchanged() {
	perUser := store.NewKeyValue("orders-per-user", serde.String, serde.Int64)

	b := topology.NewBuilder()
	fresh := topology.Process(topology.From(b, orders), "dedupe", newDedupe, lastSeen)
	counts := topology.Count(topology.GroupByKey(topology.KeyUnchanged(fresh)), perUser)
	topology.To(topology.Changes(counts), numbers)

	play(b, numbers, "ann=tea", "ann=tea", "ann=milk")
	// Output:
	// ann=1
	// ann=2
}

func ExampleReduce() {
	longest := store.NewKeyValue("longest-order", serde.String, serde.String)

	b := topology.NewBuilder()
	table := topology.Reduce(topology.GroupByKey(topology.From(b, orders)), func(row, what string) string {
		if len(what) > len(row) {
			return what
		}
		return row
	}, longest)
	topology.To(topology.Changes(table), results)

	play(b, results, "ann=tea", "ann=coffee", "ann=milk")
	// Output:
	// ann=tea
	// ann=coffee
	// ann=coffee
}

func ExampleAggregate() {
	longest := store.NewKeyValue("longest", serde.String, serde.Int64)

	b := topology.NewBuilder()
	table := topology.Aggregate(topology.GroupByKey(topology.From(b, orders)),
		func() int64 { return 0 },
		func(_, what string, row int64) int64 { return max(row, int64(len(what))) },
		longest)
	topology.To(topology.Changes(table), numbers)

	play(b, numbers, "ann=tea", "ann=coffee", "ann=milk")
	// Output:
	// ann=3
	// ann=6
	// ann=6
}

func ExampleTable() {
	latest := store.NewKeyValue("latest", serde.String, serde.String)

	b := topology.NewBuilder()
	table := topology.Table(b, orders, latest)
	changes := topology.MapValues(topology.ChangesWithOld(table), func(c processor.Change[string]) string {
		return fmt.Sprintf("%q to %q", c.Old, c.New)
	})
	topology.To(changes, results)

	play(b, results, "ann=tea", "ann=milk", "ann=")
	// Output:
	// ann="" to "tea"
	// ann="tea" to "milk"
	// ann="milk" to ""
}

// dedupe drops a record whose value is that of the key's last one.
type dedupe struct {
	ctx  *processor.Context[string, string]
	last *store.KeyValueView[string, string]
}

var lastSeen = store.NewKeyValue("last-seen", serde.String, serde.String)

func newDedupe() processor.Processor[string, string, string, string] { return &dedupe{} }

func (d *dedupe) Init(ctx *processor.Context[string, string]) (err error) {
	d.ctx = ctx
	d.last, err = lastSeen.View(ctx)
	return err
}

func (d *dedupe) Process(r processor.Record[string, string]) error {
	last, known, err := d.last.Get(r.Key)
	if err != nil || known && last == r.Value {
		return err
	}
	if err := d.last.Put(r.Key, r.Value); err != nil {
		return err
	}
	return d.ctx.Forward(r)
}

func ExampleProcess() {
	b := topology.NewBuilder()
	topology.To(topology.Process(topology.From(b, orders), "dedupe", newDedupe, lastSeen), results)

	play(b, results, "ann=tea", "ann=tea", "ann=milk")
	// Output:
	// ann=tea
	// ann=milk
}

func ExampleWithPartitioner() {
	b := topology.NewBuilder()
	topology.To(topology.From(b, orders), results,
		topology.WithPartitioner(func(who, what string, n int32) int32 { return int32(len(what)) % n }))

	play(b, results, "ann=tea")
	// Output:
	// ann=tea
}

func ExampleTopology_Describe() {
	b := topology.NewBuilder()
	topology.To(topology.Peek(topology.From(b, orders), func(_, _ string) {}, topology.Named("audit")), results)
	top, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(top.Describe())
	// Output:
	// Topologies:
	//   Sub-topology: 0
	//     Source: orders (topics: [orders])
	//       --> audit
	//     Processor: audit (stores: [])
	//       --> audit.to.results
	//       <-- orders
	//     Sink: audit.to.results (topic: results)
	//       <-- audit
}

func ExampleTopology_Layout() {
	b := topology.NewBuilder()
	topology.Count(topology.GroupByKey(topology.From(b, orders)), store.NewKeyValue("counts", serde.String, serde.Int64))
	top, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	layout, err := top.Layout("shop", map[string]int32{"orders": 2}, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(layout.Tasks, layout.Create[0].Name, layout.Create[0].Partitions)
	_, err = top.Layout("shop", map[string]int32{"orders": 4, "shop-counts-changelog": 2}, "")
	fmt.Println(err)
	// Output:
	// [0_0 0_1] shop-counts-changelog 2
	// topology: internal topic "shop-counts-changelog" has 2 partitions, the topology needs 4
}
