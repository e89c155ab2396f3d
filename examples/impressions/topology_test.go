package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/examples/internal/example"
	"github.com/millrace-streams/millrace/examples/internal/exampletest"
	"github.com/millrace-streams/millrace/testdriver"
)

// driver returns a driver of the topology, and its topics.
func driver(t *testing.T) (*testdriver.Driver, topics) {
	t.Helper()
	topics := newTopics("impressions", "clicks", "outcomes")
	topo, err := topics.clickedImpressions()
	if err != nil {
		t.Fatal(err)
	}
	return testdriver.New(t, topo), topics
}

// An outcome has the time of the click, or of the impression if there was none.
func TestOutcomes(t *testing.T) {
	d, topics := driver(t)
	exampletest.Feed(d, topics.sample(example.FirstDay))
	var got []string
	for _, r := range testdriver.Output(d, topics.outcomes).ReadAll() {
		got = append(got, fmt.Sprintf("%s %+v @%s", r.Key, r.Value, example.ClockOf(r.Timestamp)))
	}
	want := []string{
		"i1 {Ad:shoes Page:/news User:ann Seconds:120} @09:02",
		"i3 {Ad:shoes Page:/sports User:bob Seconds:120} @09:05",
		"i1 {Ad:shoes Page:/news User:ann Seconds:360} @09:06",
		"i2 {Ad:hats Page:/news User: Seconds:0} @09:01",
		"i4 {Ad:boats Page:/sports User:cid Seconds:120} @09:10",
		"i5 {Ad:hats Page:/weather User: Seconds:0} @09:14",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%q\nwant:\n%q", got, want)
	}
}

// A click counts from the moment of the impression up to ten minutes later, both included. An impression is given up once
// something is more than twelve minutes newer.
func TestEdges(t *testing.T) {
	d, topics := driver(t)
	impressions, clicks := testdriver.Input(d, topics.impressions), testdriver.Input(d, topics.clicks)
	outcomes := testdriver.Output(d, topics.outcomes)
	after := func(d time.Duration) time.Time { return example.FirstDay.Add(d) }

	for _, id := range []string{"before", "at once", "in time", "too late"} {
		impressions.Send(id, Impression{Ad: "shoes", Page: "/", At: after(time.Minute)})
	}
	clicks.Send("before", Click{"ann", after(time.Minute - time.Millisecond)})
	clicks.Send("at once", Click{"ann", after(time.Minute)})
	clicks.Send("in time", Click{"ann", after(11 * time.Minute)})
	clicks.Send("too late", Click{"ann", after(11*time.Minute + time.Millisecond)})
	impressions.Send("another", Impression{At: after(13 * time.Minute)})
	for _, want := range []testdriver.Pair[string, Outcome]{
		{Key: "at once", Value: Outcome{Ad: "shoes", Page: "/", User: "ann"}},
		{Key: "in time", Value: Outcome{Ad: "shoes", Page: "/", User: "ann", Seconds: 600}},
	} {
		if got, ok := outcomes.Read(); !ok || got.Key != want.Key || got.Value != want.Value {
			t.Errorf("got %+v, want %+v", got.Record, want)
		}
	}
	if got := outcomes.ReadAll(); len(got) > 0 {
		t.Errorf("after exactly 12 minutes: %+v", got)
	}
	impressions.Send("another", Impression{At: after(13*time.Minute + time.Millisecond)})
	var given []string
	for _, r := range outcomes.ReadAll() {
		given = append(given, r.Key+r.Value.User)
	}
	slices.Sort(given)
	if want := []string{"before", "too late"}; !slices.Equal(given, want) {
		t.Errorf("a millisecond later %q were given up, want %q", given, want)
	}
}
