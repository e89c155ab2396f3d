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

// Windows of ten seconds that begin every five: each click is in two of them.
func ExampleHopping() {
	b := topology.NewBuilder()
	hopping := topology.Hopping(10*time.Second, 5*time.Second)
	longest := store.NewWindow("longest-page", serde.String, serde.String, hopping.Store())
	pages := topology.NewTopic("longest-page", store.TimeWindowed(serde.String, 10*time.Second), serde.String)
	perUser := topology.WindowedBy(topology.GroupByKey(topology.From(b, clicks)), hopping)
	topology.To(topology.Changes(topology.ReduceWindows(perUser, func(row, page string) string {
		if len(page) > len(row) {
			return page
		}
		return row
	}, longest)), pages)

	d := at(b, "clicks ann=home 7", "clicks ann=shoes 12")
	defer d.Close()
	shownWindows(d, pages)
	// Output:
	// ann 0-10: home
	// ann 5-15: home
	// ann 5-15: shoes
	// ann 10-20: shoes
}

// What a user saw and clicked in each minute, in one row.
func ExampleAggregateCogroupedWindows() {
	b := topology.NewBuilder()
	rows := store.NewWindow("seen-and-clicked", serde.String, serde.String, perMinute.Store())
	minutes := topology.NewTopic("seen-and-clicked", store.TimeWindowed(serde.String, time.Minute), serde.String)
	seen := topology.Cogroup(topology.GroupByKey(topology.From(b, impressions)), func(_, ad, row string) string { return row + " saw " + ad })
	clicked := topology.Cogroup(topology.GroupByKey(topology.From(b, clicks)), func(_, ad, row string) string { return row + " clicked " + ad })
	topology.To(topology.Changes(topology.AggregateCogroupedWindows(seen.And(clicked), perMinute, func() string { return "ann" }, rows)), minutes)

	d := at(b, "impressions ann=shoes 5", "clicks ann=shoes 8", "impressions ann=hats 61")
	defer d.Close()
	shownWindows(d, minutes)
	// Output:
	// ann 0-60: ann saw shoes
	// ann 0-60: ann saw shoes clicked shoes
	// ann 60-120: ann saw hats
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

// A record that is dated years ahead would close all windows. The guard drops it.
func ExampleTopic_WithMaxAhead() {
	b := topology.NewBuilder()
	perUser := topology.WindowedBy(topology.GroupByKey(topology.From(b, clicks.WithMaxAhead(24*time.Hour))), perMinute)
	topology.To(topology.Changes(topology.CountWindows(perUser, clicksIn)), minutely)

	d := at(b, "clicks ann=a 5", "clicks bob=poison 4000000000", "clicks ann=b 6") // it is 1970
	defer d.Close()
	shownWindows(d, minutely)
	// Output:
	// ann 0-60: 1
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

// The last change of a window is told, when it is closed. Unlike EmitOnClose, this can stand behind any table of windows;
// then the time that counts is that of the rows that come through.
func ExampleUntilWindowCloses() {
	b := topology.NewBuilder()
	perUser := topology.WindowedBy(topology.GroupByKey(topology.From(b, clicks)), perMinute)
	many := topology.FilterTable(topology.CountWindows(perUser, clicksIn), func(_ store.Windowed[string], n int64) bool { return n > 1 })
	held := topology.NewBuffer("held", store.TimeWindowed(serde.String, time.Minute), serde.Int64, topology.BufferOptions{})
	topology.To(topology.Changes(topology.Suppress(many, topology.UntilWindowCloses(held))), minutely)

	d := at(b, "clicks ann=a 5", "clicks bob=b 6", "clicks ann=c 7", "clicks ann=d 70", "clicks ann=e 71")
	defer d.Close()
	shownWindows(d, minutely)
	// Output: ann 0-60: 2
}

// Pairs of an impression and a click of one key that are no more than ten seconds apart.
func ExampleJoinStreams() {
	b := topology.NewBuilder()
	near := topology.Within(10 * time.Second)
	shown := store.NewWindow("shown", serde.String, serde.String, near.Store())
	clicked := store.NewWindow("clicked", serde.String, serde.String, near.Store())
	pairs := topology.JoinStreams(topology.From(b, impressions), topology.From(b, clicks), near,
		func(_, ad, by string) string { return ad + "-" + by }, shown, clicked)
	topology.To(pairs, matched)

	d := at(b, "impressions i1=shoes 10", "clicks i1=ann 20", "clicks i1=bob 21", "clicks i2=cid 25", "impressions i2=hats 26")
	defer d.Close()
	fmt.Println(testdriver.Output(d, matched).ReadPairs())
	// Output: [{i1 shoes-ann} {i2 hats-cid}]
}

// What has no counterpart within ten seconds, on either side, is told too.
func ExampleOuterJoinStreams() {
	b := topology.NewBuilder()
	near := topology.Within(10 * time.Second)
	shown := store.NewWindow("shown", serde.String, serde.String, near.Store())
	clicked := store.NewWindow("clicked", serde.String, serde.String, near.Store())
	waiting := topology.NewOuterStore("waiting", serde.String, serde.String, serde.String)
	all := topology.OuterJoinStreams(topology.From(b, impressions), topology.From(b, clicks), near,
		func(_, ad string, shown bool, by string, clicked bool) string {
			return fmt.Sprintf("%q %v, %q %v", ad, shown, by, clicked)
		},
		shown, clicked, waiting)
	topology.To(all, matched)

	d := at(b, "impressions i1=shoes 0", "clicks i2=ann 5", "clicks i3=bob 50")
	defer d.Close()
	for _, r := range testdriver.Output(d, matched).ReadAll() {
		fmt.Println(r.Key, r.Value)
	}
	// Output:
	// i1 "shoes" true, "" false
	// i2 "" false, "ann" true
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
