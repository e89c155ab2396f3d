package topology_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// describeLayout is one line per task and per topic to create.
func describeLayout(l *topology.Layout) string {
	var s strings.Builder
	for _, id := range l.Tasks {
		fmt.Fprintf(&s, "task %s reads %v", id, l.Inputs[id])
		for _, c := range l.Changelogs[id] {
			fmt.Fprintf(&s, " keeps %s in %s", c.Store, c.TopicPartition)
		}
		s.WriteString("\n")
	}
	for _, c := range l.Create {
		fmt.Fprintf(&s, "create %s with %d partitions", c.Name, c.Partitions)
		for _, k := range slices.Sorted(maps.Keys(c.Config)) {
			fmt.Fprintf(&s, " %s=%s", k, c.Config[k])
		}
		s.WriteString("\n")
	}
	for _, name := range slices.Sorted(maps.Keys(l.Partitions)) {
		fmt.Fprintf(&s, "topic %s has %d\n", name, l.Partitions[name])
	}
	return s.String()
}

func build(declare func(*topology.Builder)) *topology.Topology {
	b := topology.NewBuilder()
	declare(b)
	return must(b.Build())
}

func sum(row, v string) string { return row + v }

func key(k, _ string) string { return k }

// chain declares repartition topics whose writers come after their readers in no particular order: in -> r1 -> r2 -> r3, and
// in2 joins at r2's writer.
func chain(b *topology.Builder) {
	r1 := topology.Through(topology.From(b, in), topology.NewRepartition("r1", serde.String, serde.String))
	merged := topology.Merge(r1, topology.From(b, in2))
	r2 := topology.Through(merged, topology.NewRepartition("r2", serde.String, serde.String))
	r3 := topology.GroupBy(r2, topology.NewRepartition("r3", serde.String, serde.String), key)
	topology.Reduce(r3, sum, texts)
}

// together declares a store that a repartition topic and a topic of the broker share.
func together(b *topology.Builder) {
	moved := topology.Through(topology.From(b, in), rekey)
	topology.Process(moved, "left", newForward, texts)
	topology.Process(topology.From(b, in2), "right", newForward, texts)
}

func TestLayout(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		declare func(*topology.Builder)
		counts  map[string]int32
	}{
		"wordcount": {func(b *topology.Builder) { wordCount(b) }, map[string]int32{"in": 2, "totals": 3, "dead": 1, "unrelated": 9}},
		"restart": {func(b *topology.Builder) { wordCount(b) },
			map[string]int32{"in": 2, "totals": 3, "dead": 1, "app-by-word-repartition": 2, "app-counts-changelog": 2}},
		"chain":    {chain, map[string]int32{"in": 2, "in2": 3, "dead": 1}},
		"together": {together, map[string]int32{"in": 4, "in2": 2, "dead": 1}},
		"stateless": {func(b *topology.Builder) {
			topology.To(topology.Merge(topology.From(b, in), topology.From(b, in2)), out)
			topology.Count(topology.GroupByKey(topology.From(b, in3)), counts)
		}, map[string]int32{"in": 1, "in2": 2, "in3": 3, "out": 1, "dead": 1}},
	} {
		l, err := build(c.declare).Layout(app, c.counts, "dead")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		golden(t, name+"-layout", describeLayout(l))
	}
}

func TestLayoutNamesAllMissingTopics(t *testing.T) {
	t.Parallel()
	_, err := build(everything).Layout(app, map[string]int32{"in2": 1, "out": 0}, "dead")
	var e *topology.MissingTopicsError
	if !errors.As(err, &e) {
		t.Fatalf("got %v", err)
	}
	equal(t, e.Topics, "dead", "in", "in3", "out", "out2")
}

// Field report 60: internal topics with another count than needed, as after the input has grown, and topics that meet at a
// store with different counts are refused with names and counts.
func TestLayoutRefusesWrongCounts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		declare func(*topology.Builder)
		counts  map[string]int32
		want    []string
	}{
		"grown input": {func(b *topology.Builder) { wordCount(b) },
			map[string]int32{"in": 4, "totals": 1, "app-by-word-repartition": 2, "app-counts-changelog": 2},
			[]string{`internal topic "app-by-word-repartition" has 2 partitions, the topology needs 4`,
				`internal topic "app-counts-changelog" has 2 partitions, the topology needs 4`}},
		"two inputs": {func(b *topology.Builder) {
			topology.Reduce(topology.GroupByKey(topology.Merge(topology.From(b, in), topology.From(b, in2))), sum, texts)
			topology.Process(topology.From(b, in), "more", newForward, texts, users)
		}, map[string]int32{"in": 2, "in2": 3},
			[]string{`topics that reach store "texts" (sub-topology 0) must have equal partition counts: in has 2, in2 has 3`}},
		"with a repartition topic": {func(b *topology.Builder) {
			together(b)
			topology.Process(topology.From(b, in3), "third", newForward, texts)
		}, map[string]int32{"in": 4, "in2": 2, "in3": 3},
			[]string{`topics that reach store "texts" (sub-topology 1) must have equal partition counts: ` +
				`app-rekey-repartition has 3, in2 has 2, in3 has 3`}},
		"long name": {func(b *topology.Builder) {
			topology.Count(topology.GroupByKey(topology.From(b, in)), store.NewKeyValue(strings.Repeat("x", 240), serde.String, serde.Int64))
		}, map[string]int32{"in": 1}, []string{"the name has 254 characters, at most 249 are allowed"}},
	} {
		_, err := build(c.declare).Layout(app, c.counts, "")
		joined, ok := err.(interface{ Unwrap() []error })
		if !ok || len(joined.Unwrap()) != len(c.want) {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		for i, err := range joined.Unwrap() {
			if !strings.HasSuffix(err.Error(), c.want[i]) {
				t.Errorf("%s: got %v, want %s", name, err, c.want[i])
			}
		}
	}
	_, err := build(func(b *topology.Builder) { wordCount(b) }).Layout(app, map[string]int32{"in": 1, "totals": 1, "app-counts-changelog": 2}, "")
	var wrong *topology.InternalTopicError
	if !errors.As(err, &wrong) || *wrong != (topology.InternalTopicError{Topic: "app-counts-changelog", Found: 2, Needed: 1}) {
		t.Errorf("got %v", err)
	}
}

func TestTopics(t *testing.T) {
	t.Parallel()
	top := build(everything)
	if got, want := fmt.Sprint(top.SourceTopics()), "[{in false } {rekey true } {in2 false } {in3 false }]"; got != want {
		t.Errorf("sources %s", got)
	}
	if got, want := fmt.Sprint(top.SinkTopics()), "[{rekey true } {out false } {out2 false }]"; got != want {
		t.Errorf("sinks %s", got)
	}
	for i, s := range top.Specs() {
		if s.ID != int32(i) || len(s.Sources()) == 0 || s.Nodes[0].Kind != processor.KindSource {
			t.Errorf("sub-topology %d: %+v", i, s)
		}
	}
}
