package topology_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

var (
	partialCounts = topology.NewRepartition("partial", serde.String, serde.Int64)
	partialWords  = topology.NewRepartition("partial", serde.String, serde.String)
	partialSets   = topology.NewRepartition("partial", serde.String, serde.JSON[map[string]int]())
	wordSets      = store.NewKeyValue("sets", serde.String, serde.JSON[map[string]int]())
	longest       = store.NewKeyValue("longest", serde.String, serde.String)
)

func words(b *topology.Builder) topology.Stream[string, string] {
	return topology.FlatMapValues(topology.From(b, in), strings.Fields)
}

func itself(_, word string) string { return word }

func TestPreCountSendsOneRecordPerKeyAndCommit(t *testing.T) {
	b := topology.NewBuilder()
	topology.To(topology.Changes(topology.Combine(topology.PreCount(words(b), partialCounts, itself), counts)), totals)
	r := start(b, processor.Options{}, nil)
	r.send("in", text("1", "a b a", 5), text("2", "a", 3), rec{key: []byte("3"), ts: 9})
	if err := r.run(); err != nil {
		t.Fatal(err)
	}
	if n := len(r.out["app-partial-repartition"]); n != 2 {
		t.Errorf("%d records went through the repartition topic, want one for each word", n)
	}
	r.send("in", text("1", "b", 4))
	if err := r.run(); err != nil {
		t.Fatal(err)
	}
	equal(t, read(r, totals), "a=3@5", "b=1@5", "b=2@5")
}

func TestPreCountAtOnce(t *testing.T) {
	b := topology.NewBuilder()
	topology.To(topology.Changes(topology.Combine(topology.PreCount(words(b), partialCounts, itself), counts)), totals)
	r := start(b, processor.Options{EveryUpdate: true}, nil)
	r.send("in", text("1", "a b a", 5))
	if err := r.run(); err != nil {
		t.Fatal(err)
	}
	equal(t, read(r, totals), "a=1@5", "b=1@5", "a=2@5")
}

// What a failed step has added, an in-place change of a row included, is not part of what is sent.
func TestPreAggregateUndoesFailedSteps(t *testing.T) {
	poisoned := errors.New("poisoned")
	b := topology.NewBuilder()
	checked := topology.FlatMapValues(topology.From(b, in), strings.Fields)
	p := topology.PreAggregate(checked, partialSets, func(key, _ string) string { return key },
		func() map[string]int { return map[string]int{} },
		func(_ string, word string, row map[string]int) map[string]int {
			row[word]++
			if word == "poison" {
				panic(poisoned)
			}
			return row
		},
		func(row, partial map[string]int) map[string]int {
			for word, n := range partial {
				row[word] += n
			}
			return row
		})
	topology.Combine(p, wordSets)
	r := start(b, processor.Options{Policy: processor.ErrorPolicy{Process: processor.Skip}}, nil)
	r.send("in", text("k", "a", 1), text("k", "a b poison", 7), text("k", "c", 2), text("new", "poison", 1))
	if err := r.run(); err != nil {
		t.Fatal(err)
	}
	r.send("in", text("k", "a", 3))
	if err := r.run(); err != nil {
		t.Fatal(err)
	}
	if got := get(r, wordSets, "k"); got != "map[a:2 c:1]@3" {
		t.Errorf("k is %s", got)
	}
	if got := get(r, wordSets, "new"); got != "none" {
		t.Errorf("new is %s", got)
	}
}

func TestPreReduceOverPartitions(t *testing.T) {
	b := topology.NewBuilder()
	longer := func(row, word string) string {
		if len(word) > len(row) {
			return word
		}
		return row
	}
	p := topology.PreReduce(words(b), partialWords, func(_, word string) string { return word[:1] }, longer)
	topology.Combine(p, longest)
	r := start(b, processor.Options{}, map[string]int32{"in": 4})
	for _, line := range []string{"ant bee", "ape antelope", "bear a", "apes b"} {
		r.send("in", text(line, line, 1))
	}
	if err := r.run(); err != nil {
		t.Fatal(err)
	}
	if a, b := get(r, longest, "a"), get(r, longest, "b"); a != "antelope@1" || b != "bear@1" {
		t.Errorf("a is %s, b is %s", a, b)
	}
}

func TestHeldPartialsAreStagedBytes(t *testing.T) {
	b := topology.NewBuilder()
	topology.Combine(topology.PreCount(words(b), partialCounts, itself), counts)
	r := start(b, processor.Options{}, nil)
	task := r.tasks[processor.TaskID{}]
	before := task.StagedBytes()
	r.send("in", text("1", "a b c", 5))
	r.step()
	if held := task.StagedBytes() - before; held < 3*100 {
		t.Errorf("three partial aggregates stage %d bytes", held)
	}
}

func TestPreAggregateMistakes(t *testing.T) {
	b := topology.NewBuilder()
	topology.Combine(topology.PreReduce[string, string, string](words(b), partialWords, nil, nil), longest)
	_, err := b.Build()
	for _, want := range []string{"the key's function", "the function", "combine_test.go:"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

// Words are counted in the task that reads the lines, and only one count per word and commit goes through the repartition
// topic.
func ExamplePreCount() {
	b := topology.NewBuilder()
	words := topology.FlatMapValues(topology.From(b, orders), strings.Fields)
	partial := topology.NewRepartition("by-word", serde.String, serde.Int64)
	table := topology.Combine(topology.PreCount(words, partial, func(_, word string) string { return word }), counts)
	topology.To(topology.Changes(table), numbers)

	r := start(b, processor.Options{}, nil)
	r.send(orders.Name(), text("line1", "to be or", 0), text("line2", "not to be", 1))
	must(0, r.run())
	for _, line := range read(r, numbers) {
		fmt.Println(line)
	}
	// Output:
	// to=2@1
	// be=2@1
	// or=1@0
	// not=1@1
}
