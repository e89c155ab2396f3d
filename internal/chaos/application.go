package main

import (
	"strings"
	"time"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// The join's windows. A round's event times span less than the grace, so that the order in which a task gets its two
// inputs cannot matter; the next round begins later than what the stores retain, so that they expire.
const (
	joinWithin = 100 * time.Millisecond
	joinGrace  = 30 * time.Minute

	joinRetention = joinGrace + 2*joinWithin // of the stores
	roundSpan     = joinGrace / 2
	roundEvery    = 2 * joinRetention
)

// How many partitions the topics have.
const (
	partitions       = 4
	globalPartitions = 3
)

// application is what every process runs: its id prefixes all of its topics.
type application struct {
	ID     string
	Cached bool // counts are held back until a commit, else each one is written
	Usual  bool // commits and batches are of the default sizes, else of small ones

	Standbys int
}

func (a application) topic(name string) string { return a.ID + "-" + name }

func (a application) lines() string     { return a.topic("lines") }
func (a application) lefts() string     { return a.topic("lefts") }
func (a application) rights() string    { return a.topic("rights") }
func (a application) users() string     { return a.topic("users") }
func (a application) rows() string      { return a.topic("rows") }
func (a application) counts() string    { return a.topic("counts") }
func (a application) joined() string    { return a.topic("joined") }
func (a application) named() string     { return a.topic("named") }
func (a application) history() string   { return a.topic("history") }
func (a application) byWord() string    { return a.topic("by-word-repartition") }
func (a application) countsLog() string { return a.topic("counts-changelog") }
func (a application) leftsLog() string  { return a.topic("joined-lefts-changelog") }
func (a application) rightsLog() string { return a.topic("joined-rights-changelog") }
func (a application) rowsLog() string   { return a.topic("rows-changelog") }
func (a application) inputs() []string {
	return []string{a.lines(), a.lefts(), a.rights(), a.rows()}
}
func (a application) outputs() []string {
	return []string{a.counts(), a.joined(), a.named(), a.history()}
}
func (a application) changelogs() []string {
	return []string{a.countsLog(), a.leftsLog(), a.rightsLog(), a.rowsLog()}
}

// consumed are the topics whose positions the group commits, upstream first.
func (a application) consumed() []string { return append(a.inputs(), a.byWord()) }

// noName is what a user is called whom the global table does not have.
const noName = "nobody"

// topology declares it all. step is called in every function of the user's.
func (a application) topology(step func()) (*topology.Topology, error) {
	b := topology.NewBuilder()
	a.countWords(b, step)
	lefts := topology.From(b, text(a.lefts()))
	a.joinStreams(b, lefts, step)
	a.lookUpUsers(b, lefts, step)
	a.recordChanges(b, step)
	return b.Build()
}

func text(name string) topology.Topic[string, string] {
	return topology.NewTopic(name, serde.String, serde.String)
}

func (a application) countWords(b *topology.Builder, step func()) {
	words := topology.FlatMapValues(topology.From(b, text(a.lines())), func(line string) []string {
		step()
		return strings.Fields(line)
	})
	grouped := topology.GroupBy(words, topology.NewRepartition("by-word", serde.String, serde.String), func(_, word string) string {
		step()
		return word
	})
	var opts []topology.TableOption
	if !a.Cached {
		opts = append(opts, topology.CachingDisabled())
	}
	add := func(_, _ string, n int64) int64 {
		step()
		return n + 1
	}
	table := topology.Aggregate(grouped, func() int64 { return 0 }, add, store.NewKeyValue("counts", serde.String, serde.Int64), opts...)
	topology.To(topology.Changes(table), topology.NewTopic(a.counts(), serde.String, serde.Int64))
}

func (a application) joinStreams(b *topology.Builder, lefts topology.Stream[string, string], step func()) {
	windows := topology.Within(joinWithin).Grace(joinGrace)
	join := func(_, left, right string) string {
		step()
		return pair(left, right)
	}
	joined := topology.JoinStreams(lefts, topology.From(b, text(a.rights())), windows, join,
		store.NewWindow("joined-lefts", serde.String, serde.String, windows.Store()),
		store.NewWindow("joined-rights", serde.String, serde.String, windows.Store()))
	topology.To(joined, text(a.joined()))
}

func (a application) lookUpUsers(b *topology.Builder, lefts topology.Stream[string, string], step func()) {
	users := topology.GlobalTable(b, text(a.users()), store.NewKeyValue("users", serde.String, serde.String))
	named := topology.LeftJoinGlobal(lefts, users, func(_, left string) (string, bool) { return userOf(left), true },
		func(_, left, name string, exists bool) string {
			step()
			return withName(left, name, exists)
		})
	topology.To(named, text(a.named()))
}

func (a application) recordChanges(b *topology.Builder, step func()) {
	table := topology.Table(b, text(a.rows()), store.NewKeyValue("rows", serde.String, serde.String), topology.CachingDisabled())
	changes := topology.MapValues(topology.ChangesWithOld(table), func(c processor.Change[string]) string {
		step()
		return change(c.Old, c.New)
	})
	topology.To(changes, text(a.history()))
}

// change tells how a row's value changes; "" is no row.
func change(from, to string) string { return from + ">" + to }

// pair is what the join makes of two records.
func pair(left, right string) string { return left + "|" + right }

// userOf returns the user that a left record names: its value is "<number> <user>".
func userOf(left string) string {
	_, user, _ := strings.Cut(left, " ")
	return user
}

// withName is what the lookup makes of a left record.
func withName(left, name string, exists bool) string {
	if !exists {
		name = noName
	}
	return left + "=" + name
}
