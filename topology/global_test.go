package topology_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/memory"
	"github.com/millrace-streams/millrace/topology"
)

// loud is a global table of upper-case rows without those that begin with a hyphen, of values of at least one byte.
func loud(b *topology.Builder) topology.Global[string, string] {
	values := serde.Func(serde.String.Append, func(data []byte) (string, error) {
		if len(data) == 0 {
			return "", errors.New("nothing")
		}
		return string(data), nil
	})
	return topology.GlobalTableOf(b, topology.NewTopic("in2", serde.String, values), rights, func(_, v string) (string, bool) {
		return strings.ToUpper(v), v[0] != '-'
	})
}

func contents(l *store.Layered) (rows []string) {
	must(0, l.ScanCommitted(store.Range{}, func(p store.Pair) (bool, error) {
		rows = append(rows, string(p.Key)+"="+string(p.Value))
		return true, nil
	}))
	return rows
}

// Field report 23: what is read at a start goes through the same serde, function and policy as what comes later, so that the
// table is the same.
func TestFieldReport23GlobalTableIsTheSameAfterARestart(t *testing.T) {
	t.Parallel()
	top := build(func(b *topology.Builder) { topology.From(b, in); loud(b) })
	spec, tp := top.Globals()[0], processor.TopicPartition{Topic: "in2"}
	log := []processor.Raw{
		{Key: []byte("a"), Value: []byte("one"), Timestamp: 1}, {Key: []byte("b"), Value: []byte("two"), Timestamp: 2, Offset: 1},
		{Key: []byte("b"), Value: []byte{}, Timestamp: 3, Offset: 2}, {Key: []byte("c"), Value: []byte("-3"), Timestamp: 4, Offset: 3},
		{Value: []byte("x"), Timestamp: 5, Offset: 4}, {Key: []byte("a"), Value: []byte("-1"), Timestamp: 6, Offset: 5},
		{Key: []byte("d"), Value: []byte("four"), Timestamp: 7, Offset: 6}, {Key: []byte("e"), Value: []byte("five"), Timestamp: 8, Offset: 7},
		{Key: []byte("e"), Timestamp: 9, Offset: 8}, {Key: []byte("f"), Value: []byte("six"), Timestamp: -1, Offset: 9},
	}
	table := func(batches ...[]processor.Raw) ([]string, *processor.Global) {
		l := store.LayersOf(spec.Declaration, memory.New())
		g := processor.NewGlobal(spec, l, processor.Options{App: app, Policy: processor.SkipBadRecords()})
		for _, batch := range batches {
			must(0, g.Apply(tp, batch))
		}
		return contents(l), g
	}
	live, g := table(log[:1], log[1:4], log[4:8], log[8:])
	again, _ := table(log)
	equal(t, live, "b=TWO", "d=FOUR")
	if !slices.Equal(live, again) || g.Counters.Skipped != 3 {
		t.Errorf("%v after a restart, skipped %d", again, g.Counters.Skipped)
	}

	strict := processor.NewGlobal(spec, store.LayersOf(spec.Declaration, memory.New()), processor.Options{})
	var e *processor.RecordError
	if err := strict.Apply(tp, log); !errors.As(err, &e) || e.Node != "st-in2" || e.Topic != "in2" || e.Offset != 2 {
		t.Errorf("got %v", err)
	}
}

// Every task sees the rows of all partitions, and the topic's count does not matter.
func TestGlobalTableInEveryTask(t *testing.T) {
	t.Parallel()
	b := topology.NewBuilder()
	key := func(_, v string) (string, bool) { return v, true }
	topology.To(topology.JoinGlobal(topology.From(b, in), loud(b), key, func(_, v, row string) string { return plus(v, row) }), out)
	r := start(b, processor.Options{Policy: processor.SkipBadRecords()}, map[string]int32{"in": 4, "in2": 3})
	r.feed("in2 x one 1", "in2 y two 1", "in2 z three 1")
	for _, k := range []string{"a", "b", "c", "d", "e"} {
		r.feed("in "+k+" x 2", "in "+k+" z 2")
	}
	if lines := read(r, out); len(lines) != 10 || lines[0] != "a=x+ONE@2" || lines[9] != "e=z+THREE@2" {
		t.Errorf("got %q", lines)
	}
	if len(r.layout.Tasks) != 4 || len(r.layout.Changelogs) != 0 || len(r.layout.Create) != 0 {
		t.Errorf("layout %+v", r.layout)
	}
}

func TestGlobalTopicMustExist(t *testing.T) {
	t.Parallel()
	top := build(func(b *topology.Builder) {
		g := loud(b)
		topology.To(topology.JoinGlobal(topology.From(b, in), g, second, leftKeyed3), out)
	})
	_, err := top.Layout(app, map[string]int32{"in": 1, "out": 1}, "")
	var e *topology.MissingTopicsError
	if !errors.As(err, &e) || !slices.Equal(e.Topics, []string{"in2"}) {
		t.Errorf("got %v", err)
	}
}
