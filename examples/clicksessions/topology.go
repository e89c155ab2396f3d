package main

import (
	"slices"
	"time"

	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// Click is what a user has done. It is the value of a record whose key is the user.
type Click struct {
	Page string    `json:"page"`
	At   time.Time `json:"at"`
}

// Visit is a session of a user: his clicks, in the order of their times.
type Visit struct {
	Clicks []Click `json:"clicks"`
}

// topics are the input and the outputs. The key of a visit says whose it is, when it began, and when it ended.
type topics struct {
	clicks topology.Topic[string, Click]
	visits topology.Topic[store.Windowed[string], Visit]
	late   topology.Topic[string, Click]
}

// newTopics declares the topics. A click happened when it says so, whenever it was written.
func newTopics(clicks, visits, late string) topics {
	at := func(_ string, c Click, _, _ int64) int64 { return c.At.UnixMilli() }
	return topics{
		clicks: topology.NewTopic(clicks, serde.String, serde.JSON[Click]()).WithEventTime(at),
		visits: topology.NewTopic(visits, store.SessionWindowed(serde.String), serde.JSON[Visit]()),
		late:   topology.NewTopic(late, serde.String, serde.JSON[Click]()),
	}
}

// A visit ends when its user has not clicked for half an hour. It is kept open for ten minutes more, for clicks that come
// out of order.
var sessions = topology.Session(30*time.Minute, 10*time.Minute)

// clickSessions declares the topology: each user's clicks become visits, and those that come too late are written to a topic
// of their own. emit says when a visit is written: topology.EmitOnClose() once, when it is over; or
// topology.CachingDisabled() each time it changes, and a tombstone when another visit has taken it in.
func (t topics) clickSessions(emit topology.TableOption) (*topology.Topology, error) {
	var Visits = store.NewSession("visits", serde.String, serde.JSON[Visit](), sessions.Store())

	b := topology.NewBuilder()
	perUser := topology.SessionsBy(topology.GroupByKey(topology.From(b, t.clicks)), sessions)
	visits := topology.AggregateSessions(perUser, noClicks, withClick, together, Visits, emit)
	topology.To(topology.Changes(visits), t.visits)
	topology.To(topology.LateRecords(perUser), t.late)
	return b.Build()
}

func noClicks() Visit { return Visit{} }

// withClick adds a click to a visit.
func withClick(_ string, c Click, v Visit) Visit {
	return together("", v, Visit{[]Click{c}})
}

// together makes one visit of two: a click between them has closed the gap.
func together(_ string, a, b Visit) Visit {
	clicks := append(a.Clicks, b.Clicks...)
	slices.SortStableFunc(clicks, func(x, y Click) int { return x.At.Compare(y.At) })
	return Visit{clicks}
}
