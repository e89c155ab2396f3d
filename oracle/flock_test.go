package oracle_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/oracle"
	"github.com/millrace-streams/millrace/oracle/scenario"
	"github.com/millrace-streams/millrace/store"
)

// setting is how a flock is run.
type setting struct {
	opener     store.Opener
	partitions int32
	cached     bool // tables forward the last update per commit: only what is left at the end is compared
}

// flock is a number of scenarios that one application runs side by side, each on topics and in sub-topologies of its own,
// while the application ends and begins again and again.
type flock struct {
	*broker
	setting
	random *rand.Rand
	list   []*placed
	id     string // of the application; all names begin with it
	dir    string
	app    *oracle.Application
	seen   atomic.Int64 // records that have come to tasks
	life   *life

	lives, emptied int
	ends           [unseen + 1]int
	restored       atomic.Int64
}

// placed is a scenario under the names that it has in its flock.
type placed struct {
	scenario.Scenario // as it is run
	given             golden
	prefix            string
	rounds            [][]numbered
}

// newFlock prepares scenarios for the broker. What is done to them follows from the seed.
func newFlock(t *testing.T, seed uint64, list []golden, set setting) *flock {
	t.Helper()
	f := &flock{broker: openBroker(t), setting: set, random: rand.New(rand.NewPCG(seed, 0)), id: brokertest.UniqueName(t, "oracle")}
	f.dir = filepath.Join(t.TempDir(), "state")
	for i, g := range list {
		p := &placed{given: g, prefix: fmt.Sprintf("%s.%d.", f.id, i)}
		p.Scenario = g.Scenario.Prefixed(p.prefix)
		p.rounds = rounds(p.Scenario, f.random, set.partitions > 1)
		f.list = append(f.list, p)
	}
	t.Cleanup(f.abort)
	return f
}

// run takes the scenarios through their rounds and compares what they leave on the broker with what Kafka Streams wrote.
func (f *flock) run() {
	f.t.Helper()
	f.build()
	fates := f.fates()
	f.begin(next(fates))
	for i := range fates {
		f.live(i, fates)
	}
	f.finish(stopped)
	f.empty()
	f.begin(stopped) // what is compared has just been restored
	f.drain()
	for _, p := range f.list {
		if diff := f.compare(p); diff != "" {
			f.t.Errorf("on the broker: %v\n%s", p.given.Scenario, diff)
		}
	}
	f.finish(stopped)
	f.t.Logf("%d scenarios, %d lives: %d dropped in the middle, %d before their first commit; %d times without local state; %d stores restored",
		len(f.list), f.lives, f.ends[dropped], f.ends[unseen], f.emptied, f.restored.Load())
}

// live takes the application through a round.
func (f *flock) live(i int, fates []fate) {
	f.t.Helper()
	round, rest := f.round(i), fates[i+1:]
	switch fates[i] {
	case on:
		f.send(round)
	case stopped:
		f.finish(stopped)
		f.begin(next(rest))
		f.send(round)
	case dropped:
		if f.chance(50) {
			f.send(round)
		} else {
			f.sendSeen(round)
		}
		f.finish(dropped)
		f.begin(next(rest))
	case unseen:
		f.finish(stopped)
		f.begin(unseen)
		f.sendSeen(round)
		f.finish(unseen)
		f.begin(next(rest))
	}
	f.drain()
	f.follow(i)
}

// sendSeen sends a round and waits until all of it has come to tasks.
func (f *flock) sendSeen(round []numbered) {
	f.t.Helper()
	f.seen.Store(0)
	f.send(round)
	n := int64(0)
	for _, s := range round {
		if !f.global(s.Topic) {
			n++
		}
	}
	f.wait(func() (bool, string) {
		return f.seen.Load() >= n, fmt.Sprintf("%d of %d records have come to tasks", f.seen.Load(), n)
	})
}

// build makes one topology of the scenarios, and all topics.
func (f *flock) build() {
	f.t.Helper()
	var all scenario.Scenario
	counts := map[string]int32{}
	for _, p := range f.list {
		all.Ops = append(all.Ops, p.Ops...)
		for _, topic := range slices.Concat(p.Topics(), p.Outputs()) {
			counts[topic] = f.partitions
		}
	}
	var err error
	if f.app, err = oracle.NewApplication(all, func() { f.seen.Add(1) }); err != nil {
		f.t.Fatal(err)
	}
	layout, err := f.app.Topology.Layout(f.id, counts, "")
	if err != nil {
		f.t.Fatal(err)
	}
	cleanup := map[string]string{}
	for _, internal := range layout.Create {
		counts[internal.Name] = internal.Partitions
		if strings.Contains(internal.Config["cleanup.policy"], "compact") {
			cleanup[internal.Name] = "compact"
		}
	}
	f.create(counts, cleanup)
}

// compare returns what is different between what a scenario has left on the broker and the answer of Kafka Streams.
func (f *flock) compare(p *placed) string {
	f.t.Helper()
	var want, got scenario.Answer
	for _, topic := range p.given.Scenario.Outputs() {
		want.Out = append(want.Out, f.comparable(ofTopic(p.given.Answer.Out, topic), topic)...)
		got.Out = append(got.Out, f.comparable(f.read(p.prefix+topic, f.app.Outputs[p.prefix+topic]), topic)...)
	}
	if f.cached {
		if want, got := last(want.Out), last(got.Out); !maps.Equal(want, got) {
			return fmt.Sprintf("Kafka Streams: %v\nMillrace:      %v", want, got)
		}
		return ""
	}
	want.Stores, got.Stores = p.given.Answer.Stores, map[string][]scenario.Row{}
	for name, rows := range f.stores(p) {
		got.Stores[strings.TrimPrefix(name, p.prefix)] = rows
	}
	return oracle.Compare(want, got)
}

// stores returns what is in a scenario's stores, once all of them can be asked.
func (f *flock) stores(p *placed) (all map[string][]scenario.Row) {
	f.t.Helper()
	f.wait(func() (ok bool, state string) {
		var err error
		all, err = f.app.Stores(p.Scenario, whole{f})
		if err != nil && !errors.Is(err, store.ErrNotReady) && !errors.Is(err, store.ErrNotLocal) {
			f.t.Fatal(err)
		}
		return err == nil, fmt.Sprint(err)
	})
	return all
}

// whole makes queries wait until all partitions of a store are here.
type whole struct{ *flock }

func (w whole) Queried(d store.Declaration) (store.Queried, error) {
	q, err := w.life.app.Queried(d)
	if err == nil && len(q.Partitions) < int(w.partitions) && !w.globalStore(d.Name()) {
		err = &store.UnavailableError{Store: d.Name(), Partition: -1}
	}
	return q, err
}

func ofTopic(rows []scenario.Row, topic string) []scenario.Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r scenario.Row) bool { return r.Topic != topic })
}

// comparable returns records of a topic without what is not known of those on the broker: after which step they came and, if
// there are several partitions, in what order.
func (f *flock) comparable(rows []scenario.Row, topic string) []scenario.Row {
	for i := range rows {
		rows[i].Topic, rows[i].Step = topic, -1
	}
	if f.partitions > 1 {
		slices.SortFunc(rows, func(a, b scenario.Row) int { return strings.Compare(a.String(), b.String()) })
	}
	return rows
}
