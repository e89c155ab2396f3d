package oracle_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/oracle"
	"github.com/millrace-streams/millrace/oracle/scenario"
	"github.com/millrace-streams/millrace/store"
)

// newFlock prepares scenarios for the broker. What is done to them follows from the seed.
func newFlock(t *testing.T, seed uint64, list []golden, opener store.Opener, partitions int32) *flock {
	f := &flock{
		broker: openBroker(t), random: rand.New(rand.NewPCG(seed, 0)), opener: opener, partitions: partitions,
		id: brokertest.UniqueName(t, "oracle"),
	}
	for i, g := range list {
		p := &placed{golden: g, Scenario: probed(g.Scenario).Prefixed(fmt.Sprintf("%s.%d.", f.id, i))}
		p.rounds = rounds(p.Scenario, f.random, partitions > 1)
		f.list = append(f.list, p)
	}
	f.tally.scenarios.Add(int64(len(list)))
	return f
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

// numbered is a step with its number, which its record bears in a header.
type numbered struct {
	scenario.Step
	number int
}

// rounds cuts a scenario's steps where the outcome depends on their order: what is in a round may be on the broker at once.
// Records of one topic are processed in their order, if the topic has one partition. A join by foreign key sends a record
// on two ways to its end. The wall clock goes by itself, and no operator of scenarios looks at it.
func rounds(s scenario.Scenario, random *rand.Rand, alone bool) (all [][]numbered) {
	alone = alone || s.Uses("foreignjoin", "foreignleft")
	last := ""
	for i, step := range s.In {
		if step.Topic == scenario.Clock {
			continue
		}
		if alone || step.Topic != last || random.IntN(4) == 0 {
			all = append(all, nil)
		}
		last = step.Topic
		all[len(all)-1] = append(all[len(all)-1], numbered{step, i})
	}
	return all
}

// round returns what all scenarios send in a round.
func (f *flock) round(i int) (steps []numbered) {
	for _, p := range f.list {
		if i < len(p.rounds) {
			steps = append(steps, p.rounds[i]...)
		}
	}
	return steps
}

// on is the fate of a life that goes on.
const on fate = -1

// fates draws how lives end: for each round, how the one ends that sees its records first.
func (f *flock) fates() (all []fate) {
	n := 0
	for _, p := range f.list {
		n = max(n, len(p.rounds))
	}
	for range n {
		end := on
		if f.random.IntN(4) == 0 {
			end = []fate{stopped, stopped, dropped, dropped, unseen}[f.random.IntN(5)]
		}
		all = append(all, end)
	}
	return all
}

// next returns how the life ends that begins now.
func (f *flock) next(fates []fate) fate {
	for _, end := range fates {
		if end != on {
			if end == unseen { // has a life of its own
				return stopped
			}
			return end
		}
	}
	return stopped
}

// sendUnseen sends a round and waits until all of it has come to tasks.
func (f *flock) sendUnseen(round []numbered) {
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

func (f *flock) global(topic string) bool {
	return slices.ContainsFunc(f.list, func(p *placed) bool {
		return slices.ContainsFunc(p.Ops, func(op scenario.Op) bool { return op.Op == "globaltable" && op.From[0] == topic })
	})
}

// probed adds to each global table a stream that is joined with it: the application's lag does not say whether the table is
// up to date.
func probed(s scenario.Scenario) scenario.Scenario {
	s.Ops = slices.Clone(s.Ops)
	for _, op := range s.Ops {
		if op.Op == "globaltable" {
			s.Ops = append(s.Ops,
				scenario.Op{ID: op.ID + ".probe", Op: "stream", From: []string{op.From[0] + ".probe"}},
				scenario.Op{ID: op.ID + ".look", Op: "streamgloballeft", From: []string{op.ID + ".probe", op.ID}, Key: "same"},
				scenario.Op{ID: op.From[0] + ".found", Op: "to", From: []string{op.ID + ".look"}})
		}
	}
	return s
}

// probe waits until what a round has sent to topics of global tables is in the tables.
func (f *flock) probe(i int) {
	f.t.Helper()
	want := map[string]map[string]string{} // by topic and key
	for _, s := range f.round(i) {
		if s.Key == nil || !f.global(s.Topic) {
			continue
		}
		if want[s.Topic] == nil {
			want[s.Topic] = map[string]string{}
		}
		want[s.Topic][*s.Key] = "~"
		if s.Value != nil {
			want[s.Topic][*s.Key] = *s.Value
		}
	}
	for tries := 0; len(want) > 0; tries++ {
		token := fmt.Sprintf("%d.%d", i, tries)
		for topic, rows := range want {
			for key := range rows {
				f.send([]numbered{{scenario.Step{Topic: topic + ".probe", Key: &key, Value: &token}, i}})
			}
		}
		f.drain()
		for topic, rows := range want {
			for _, r := range f.read(topic+".found", f.app.Outputs[topic+".found"]) {
				if *r.Value == token+"/"+rows[*r.Key] {
					delete(rows, *r.Key)
				}
			}
		}
		maps.DeleteFunc(want, func(_ string, rows map[string]string) bool { return len(rows) == 0 })
	}
}

// compare compares what the scenarios have left on the broker with the answers of Kafka Streams.
func (f *flock) compare() {
	f.t.Helper()
	for i, p := range f.list {
		prefix := fmt.Sprintf("%s.%d.", f.id, i)
		var want, got scenario.Answer
		for _, topic := range p.golden.Scenario.Outputs() {
			want.Out = append(want.Out, f.written(p.Answer.Out, topic)...)
			got.Out = append(got.Out, f.written(f.read(prefix+topic, f.app.Outputs[prefix+topic]), topic)...)
		}
		want.Stores, got.Stores = p.Answer.Stores, map[string][]scenario.Row{}
		for name := range want.Stores {
			if text := f.app.Stores[prefix+name]; text != nil {
				got.Stores[name] = f.content(prefix+name, text)
			}
		}
		if diff := oracle.Compare(want, got); diff != "" {
			f.t.Errorf("on the broker: %v\n%s", p.golden.Scenario, diff)
		}
	}
}

// written returns the records of a topic, without what is not known of those on the broker: after which step they came, and
// of several partitions, in what order.
func (f *flock) written(rows []scenario.Row, topic string) (list []scenario.Row) {
	for _, r := range rows {
		if strings.HasSuffix(r.Topic, topic) {
			r.Topic, r.Step = topic, -1
			list = append(list, r)
		}
	}
	if f.partitions > 1 {
		slices.SortFunc(list, func(a, b scenario.Row) int { return strings.Compare(a.String(), b.String()) })
	}
	return list
}

// content returns what a changelog says that its store holds.
func (f *flock) content(store string, text oracle.Text) (rows []scenario.Row) {
	last := map[string]scenario.Row{}
	for _, r := range f.read(f.id+"-"+store+"-changelog", text) {
		r.Topic, r.Origin = "", ""
		last[*r.Key] = r
	}
	for _, key := range slices.Sorted(maps.Keys(last)) {
		if r := last[key]; r.Value != nil {
			rows = append(rows, r)
		}
	}
	return rows
}
