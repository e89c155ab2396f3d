package topology_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/testdriver"
	"github.com/millrace-streams/millrace/topology"
)

var (
	clicks      = topology.NewTopic("clicks", serde.String, serde.String)
	impressions = topology.NewTopic("impressions", serde.String, serde.String)
	matched     = topology.NewTopic("matched", serde.String, serde.String)

	perMinute    = topology.Tumbling(time.Minute).Grace(10 * time.Second)
	clicksIn     = store.NewWindow("clicks-per-minute", serde.String, serde.Int64, perMinute.Store())
	minutely     = topology.NewTopic("clicks-per-minute", store.TimeWindowed(serde.String, time.Minute), serde.Int64)
	visit        = topology.Session(30*time.Minute, time.Hour)
	visits       = store.NewSession("visits", serde.String, serde.String, visit.Store())
	visitsByUser = topology.NewTopic("visits", store.SessionWindowed(serde.String), serde.String)
)

// at runs a topology on "topic key=value seconds", one after the other.
func at(b *topology.Builder, lines ...string) *testdriver.Driver {
	d := must(testdriver.Open(must(b.Build())))
	for _, line := range lines {
		var topic, pair string
		var seconds int64
		must(fmt.Sscan(line, &topic, &pair, &seconds))
		key, value, _ := strings.Cut(pair, "=")
		testdriver.Input(d, topology.NewTopic(topic, serde.String, serde.String)).SendAt(key, value, seconds*1000)
	}
	return d
}

// shownWindows prints a topic of windows.
func shownWindows[V any](d *testdriver.Driver, t topology.Topic[store.Windowed[string], V]) {
	for _, r := range testdriver.Output(d, t).ReadAll() {
		value := fmt.Sprint(r.Value)
		if r.NullValue {
			value = "deleted"
		}
		fmt.Printf("%s %d-%d: %s\n", r.Key.Key, r.Key.Start/1000, r.Key.End/1000, value)
	}
}

// Each update of a window is forwarded, late ones for as long as the grace allows.
func ExampleCountWindows() {
	b := topology.NewBuilder()
	perUser := topology.WindowedBy(topology.GroupByKey(topology.From(b, clicks)), perMinute)
	topology.To(topology.Changes(topology.CountWindows(perUser, clicksIn)), minutely)

	d := at(b, "clicks ann=a 5", "clicks ann=b 50", "clicks ann=c 62", "clicks ann=late 59", "clicks ann=d 70", "clicks ann=too-late 59")
	defer d.Close()
	shownWindows(d, minutely)
	// Output:
	// ann 0-60: 1
	// ann 0-60: 2
	// ann 60-120: 1
	// ann 0-60: 3
	// ann 60-120: 2
}

// One result per window, when it is closed: a minute and ten seconds after its start.
func ExampleEmitOnClose() {
	b := topology.NewBuilder()
	perUser := topology.WindowedBy(topology.GroupByKey(topology.From(b, clicks)), perMinute)
	topology.To(topology.Changes(topology.CountWindows(perUser, clicksIn, topology.EmitOnClose())), minutely)

	d := at(b, "clicks ann=a 5", "clicks bob=b 50", "clicks ann=c 59", "clicks bob=d 69", "clicks ann=e 70")
	defer d.Close()
	shownWindows(d, minutely)
	// Output:
	// ann 0-60: 2
	// bob 0-60: 1
}

// When the input falls silent, the wall clock may close windows.
func ExampleWallClockClose() {
	b := topology.NewBuilder()
	perUser := topology.WindowedBy(topology.GroupByKey(topology.From(b, clicks)), perMinute)
	counts := topology.CountWindows(perUser, clicksIn, topology.EmitOnClose(), topology.WallClockClose(5*time.Minute))
	topology.To(topology.Changes(counts), minutely)

	d := at(b, "clicks ann=a 5", "clicks ann=b 6")
	defer d.Close()
	d.Advance(4 * time.Minute)
	fmt.Println("after 4 minutes:")
	shownWindows(d, minutely)
	d.Advance(time.Minute)
	fmt.Println("after 5 minutes:")
	shownWindows(d, minutely)
	// Output:
	// after 4 minutes:
	// after 5 minutes:
	// ann 0-60: 2
}

// Records that come too late for all their windows are a stream of their own.
func ExampleLateRecords() {
	b := topology.NewBuilder()
	perUser := topology.WindowedBy(topology.GroupByKey(topology.From(b, clicks)), perMinute)
	topology.To(topology.Changes(topology.CountWindows(perUser, clicksIn)), minutely)
	topology.To(topology.LateRecords(perUser), matched)

	d := at(b, "clicks ann=a 100", "clicks ann=b 59", "clicks ann=c 61")
	defer d.Close()
	fmt.Println(testdriver.Output(d, matched).ReadPairs())
	// Output: [{ann b}]
}

// Any two clicks of a user that are at most ten seconds apart meet in a window.
func ExampleSliding() {
	b := topology.NewBuilder()
	sliding := topology.Sliding(10*time.Second, 0)
	counts := store.NewWindow("bursts", serde.String, serde.Int64, sliding.Store())
	bursts := topology.NewTopic("bursts", store.TimeWindowed(serde.String, 10*time.Second), serde.Int64)
	perUser := topology.WindowedBy(topology.GroupByKey(topology.From(b, clicks)), sliding)
	topology.To(topology.Changes(topology.CountWindows(perUser, counts)), bursts)

	d := at(b, "clicks ann=a 20", "clicks ann=b 28", "clicks ann=c 31")
	defer d.Close()
	shownWindows(d, bursts)
	// Output:
	// ann 10-20: 1
	// ann 20-30: 1
	// ann 18-28: 2
	// ann 28-38: 1
	// ann 21-31: 2
}

// A click within half an hour of a visit belongs to it, and may make one of two.
func ExampleAggregateSessions() {
	b := topology.NewBuilder()
	perUser := topology.SessionsBy(topology.GroupByKey(topology.From(b, clicks)), visit)
	pages := topology.AggregateSessions(perUser, func() string { return "" },
		func(_, page, path string) string { return path + "/" + page },
		func(_, a, b string) string { return a + b }, visits)
	topology.To(topology.Changes(pages), visitsByUser)

	d := at(b, "clicks ann=home 0", "clicks ann=cart 3000", "clicks ann=shop 1500")
	defer d.Close()
	shownWindows(d, visitsByUser)
	// Output:
	// ann 0-0: /home
	// ann 3000-3000: /cart
	// ann 0-0: deleted
	// ann 3000-3000: deleted
	// ann 0-3000: /home/cart/shop
}

// Of all changes in ten minutes, the last one is told.
func ExampleSuppress() {
	b := topology.NewBuilder()
	states := topology.Table(b, orders, ordersByID)
	held := topology.NewBuffer("held", serde.String, serde.String, topology.BufferOptions{MaxRecords: 1000, EmitEarly: true})
	calm := topology.Suppress(states, topology.UntilTimeLimit(10*time.Minute, held))
	topology.To(topology.Changes(calm), matched)

	d := at(b, "orders o1=new 0", "orders o1=paid 60", "orders o1=sent 90", "orders o2=new 600", "orders o1=done 700")
	defer d.Close()
	fmt.Println(testdriver.Output(d, matched).ReadPairs())
	// Output: [{o1 sent}]
}

// Every impression with its clicks, or without one when a minute has gone.
func ExampleLeftJoinStreams() {
	b := topology.NewBuilder()
	soon := topology.WithinBeforeAfter(0, time.Minute) // a click comes after what it clicks on
	shown := store.NewWindow("shown", serde.String, serde.String, soon.Store())
	clicked := store.NewWindow("clicked", serde.String, serde.String, soon.Store())
	waiting := topology.NewOuterStore("waiting", serde.String, serde.String, serde.String)
	joined := topology.LeftJoinStreams(topology.From(b, impressions), topology.From(b, clicks), soon,
		func(_, ad, by string, clicked bool) string {
			if !clicked {
				return ad + " was not clicked"
			}
			return ad + " was clicked by " + by
		}, shown, clicked, waiting)
	topology.To(joined, matched)

	d := at(b, "impressions i1=shoes 0", "impressions i2=hats 10", "clicks i1=ann 20", "clicks i9=bob 71")
	defer d.Close()
	for _, line := range testdriver.Output(d, matched).ReadValues() {
		fmt.Println(line)
	}
	// Output:
	// shoes was clicked by ann
	// hats was not clicked
}
