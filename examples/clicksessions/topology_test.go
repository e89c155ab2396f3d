package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/examples/internal/example"
	"github.com/millrace-streams/millrace/examples/internal/exampletest"
	"github.com/millrace-streams/millrace/testdriver"
	"github.com/millrace-streams/millrace/topology"
)

// play runs the topology on the sample and returns the visits, with the timestamps of their records, and the late clicks.
func play(t *testing.T, emit topology.TableOption) (visits, late []string) {
	t.Helper()
	topics := newTopics("clicks", "visits", "late")
	topo, err := topics.clickSessions(emit)
	if err != nil {
		t.Fatal(err)
	}
	d := testdriver.New(t, topo)
	exampletest.Feed(d, topics.sample(example.FirstDay))
	for _, r := range testdriver.Output(d, topics.visits).ReadAll() {
		visits = append(visits, fmt.Sprintf("%s @%s", showVisit(r.Record), example.ClockOf(r.Timestamp)))
	}
	for _, r := range testdriver.Output(d, topics.late).ReadAll() {
		late = append(late, fmt.Sprintf("%s @%s", showLate(r.Record), example.ClockOf(r.Timestamp)))
	}
	return visits, late
}

func equal(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// Each visit is told once, when it is over, in the order of their ends.
func TestVisitsWhenTheyAreOver(t *testing.T) {
	visits, late := play(t, topology.EmitOnClose())
	equal(t, "visits", visits,
		"bob 09:03-09:03: /news @09:03",
		"ann 09:00-09:12: /home /shoes /cart @09:12",
		"bob 09:45-09:45: /weather @09:45",
		"cid 09:50-10:25: /home /shoes /help @10:25",
		"bob 10:40-10:40: /news @10:40")
	equal(t, "late clicks", late, "ann 09:20: /pay @09:20")
}

// Each change of a visit is told. One that becomes part of a longer one is deleted.
func TestVisitsAsTheyChange(t *testing.T) {
	visits, late := play(t, topology.CachingDisabled())
	const gone = ": no more, it is part of a longer one"
	equal(t, "visits", visits,
		"ann 09:00-09:00: /home @09:00",
		"bob 09:03-09:03: /news @09:03",
		"ann 09:00-09:00"+gone+" @09:00", "ann 09:00-09:07: /home /shoes @09:07",
		"bob 09:45-09:45: /weather @09:45",
		"ann 09:00-09:07"+gone+" @09:07", "ann 09:00-09:12: /home /shoes /cart @09:12",
		"cid 09:50-09:50: /home @09:50",
		"cid 10:25-10:25: /help @10:25",
		"cid 09:50-09:50"+gone+" @09:50", "cid 10:25-10:25"+gone+" @10:25", "cid 09:50-10:25: /home /shoes /help @10:25",
		"bob 10:40-10:40: /news @10:40",
		"dan 11:30-11:30: /home @11:30")
	equal(t, "late clicks", late, "ann 09:20: /pay @09:20")
}

// A click that comes 30 minutes after the last one belongs to its visit, one a millisecond later does not. A visit is over
// once there was a click more than 40 minutes behind its end.
func TestEdges(t *testing.T) {
	topics := newTopics("clicks", "visits", "late")
	topo, err := topics.clickSessions(topology.EmitOnClose())
	if err != nil {
		t.Fatal(err)
	}
	d := testdriver.New(t, topo)
	clicks, visits := testdriver.Input(d, topics.clicks), testdriver.Output(d, topics.visits)
	click := func(user string, after time.Duration) {
		clicks.Send(user, Click{Page: "/", At: example.FirstDay.Add(after)})
	}

	click("ann", 0)
	click("bob", 0)
	click("ann", 30*time.Minute)
	click("bob", 30*time.Minute+time.Millisecond)
	click("cid", 40*time.Minute)
	if got := visits.ReadAll(); len(got) > 0 {
		t.Errorf("after 40 minutes: %v", got)
	}
	click("cid", 40*time.Minute+time.Millisecond)
	if got := visits.ReadPairs(); len(got) != 1 || got[0].Key.Key != "bob" || len(got[0].Value.Clicks) != 1 {
		t.Errorf("a millisecond later: %v", got)
	}
	click("cid", 3*time.Hour)
	if got := visits.ReadPairs(); len(got) != 3 || got[0].Key.Key != "ann" || len(got[0].Value.Clicks) != 2 {
		t.Errorf("at the end: %v", got)
	}
}
