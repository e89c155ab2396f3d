package main

import (
	"time"

	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// Impression is an ad that was shown on a page. It is the value of a record whose key is the impression's id.
type Impression struct {
	Ad   string    `json:"ad"`
	Page string    `json:"page"`
	At   time.Time `json:"at"`
}

// Click is a click on an ad that was shown. It is the value of a record whose key is the impression's id.
type Click struct {
	User string    `json:"user"`
	At   time.Time `json:"at"`
}

// Outcome says what has become of an impression: who clicked, and after how many seconds; nobody, if User is empty.
type Outcome struct {
	Ad      string `json:"ad"`
	Page    string `json:"page"`
	User    string `json:"user,omitempty"`
	Seconds int64  `json:"seconds,omitempty"`
}

// topics are the inputs and the output. All of them have the impression's id as key.
type topics struct {
	impressions topology.Topic[string, Impression]
	clicks      topology.Topic[string, Click]
	outcomes    topology.Topic[string, Outcome]
}

// newTopics declares the topics. Impressions and clicks happened when they say so, whenever they were written.
func newTopics(impressions, clicks, outcomes string) topics {
	shownAt := func(_ string, i Impression, _, _ int64) int64 { return i.At.UnixMilli() }
	clickedAt := func(_ string, c Click, _, _ int64) int64 { return c.At.UnixMilli() }
	return topics{
		impressions: topology.NewTopic(impressions, serde.String, serde.JSON[Impression]()).WithEventTime(shownAt),
		clicks:      topology.NewTopic(clicks, serde.String, serde.JSON[Click]()).WithEventTime(clickedAt),
		outcomes:    topology.NewTopic(outcomes, serde.String, serde.JSON[Outcome]()),
	}
}

// A click counts for an impression if it comes at most ten minutes after it, and not before. It is waited for two minutes
// more, since clicks and impressions may come out of order.
var soon = topology.WithinBeforeAfter(0, 10*time.Minute).Grace(2 * time.Minute)

// clickedImpressions declares the topology: a left join of impressions with clicks. Each click gives an outcome at once; an
// impression without any gives one when its time is over. The stores hold what may still find its counterpart.
func (t topics) clickedImpressions() (*topology.Topology, error) {
	var (
		Shown   = store.NewWindow("shown", serde.String, serde.JSON[Impression](), soon.Store())
		Clicked = store.NewWindow("clicked", serde.String, serde.JSON[Click](), soon.Store())
		Waiting = topology.NewOuterStore("waiting", serde.String, serde.JSON[Impression](), serde.JSON[Click]())
	)
	b := topology.NewBuilder()
	impressions, clicks := topology.From(b, t.impressions), topology.From(b, t.clicks)
	outcomes := topology.LeftJoinStreams(impressions, clicks, soon, outcome, Shown, Clicked, Waiting)
	topology.To(outcomes, t.outcomes)
	return b.Build()
}

// outcome joins an impression with a click, or with none.
func outcome(_ string, i Impression, c Click, clicked bool) Outcome {
	o := Outcome{Ad: i.Ad, Page: i.Page}
	if clicked {
		o.User, o.Seconds = c.User, int64(c.At.Sub(i.At)/time.Second)
	}
	return o
}
