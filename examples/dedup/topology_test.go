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
	topics := newTopics("payments", "payments-once")
	topo, err := topics.once()
	if err != nil {
		t.Fatal(err)
	}
	return testdriver.New(t, topo, testdriver.DefaultPartitions(2)), topics
}

// A payment that goes through keeps what it was, its time included.
func TestPaymentsOnce(t *testing.T) {
	d, topics := driver(t)
	exampletest.Feed(d, topics.sample(example.FirstDay))
	var got []string
	for _, r := range testdriver.Output(d, topics.out).ReadAll() {
		got = append(got, fmt.Sprintf("%s %s %d %s @%s", r.Key, r.Value.ID, r.Value.Amount, example.Clock(r.Value.At), example.ClockOf(r.Timestamp)))
	}
	want := []string{
		"ann p1 30 09:00 @09:00", "bob p2 12 09:01 @09:01", "ann p3 30 09:10 @09:10", "bob p4 7 09:45 @09:45", "ann p1 55 10:00 @10:00",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%q\nwant:\n%q", got, want)
	}
}

// What is remembered survives a crash, with or without the commit in which it happens.
func TestCrash(t *testing.T) {
	for _, point := range []testdriver.Point{testdriver.BeforeEnd, testdriver.AfterEnd} {
		d, topics := driver(t)
		sample := topics.sample(example.FirstDay)
		exampletest.Feed(d, sample[:1])
		d.CrashAt(point)
		exampletest.Feed(d, sample[1:3])
		if _, crashed := d.Crashed(); !crashed {
			t.Fatalf("no crash %s", point)
		}
		d.RestartEmpty()
		exampletest.Feed(d, sample[3:])
		if got := testdriver.Output(d, topics.out).ReadAll(); len(got) != 5 {
			t.Errorf("crash %s: %d payments went through: %+v", point, len(got), got)
		}
	}
}

// An id is free again once an hour has passed, to the millisecond, and not before.
func TestEdges(t *testing.T) {
	d, topics := driver(t)
	in, out := testdriver.Input(d, topics.in), testdriver.Output(d, topics.out)
	for _, after := range []time.Duration{time.Hour, 2*time.Hour - time.Millisecond, time.Millisecond, 2 * time.Hour} {
		in.Send("ann", Payment{ID: "p", At: example.FirstDay.Add(after)})
	}
	got := out.ReadAll()
	if len(got) != 2 || got[0].Timestamp != example.FirstDay.Add(time.Hour).UnixMilli() || got[1].Timestamp != example.FirstDay.Add(2*time.Hour).UnixMilli() {
		t.Errorf("got %+v", got)
	}
}
