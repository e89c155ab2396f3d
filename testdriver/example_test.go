package testdriver_test

import (
	"fmt"
	"strings"

	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/testdriver"
	"github.com/millrace-streams/millrace/topology"
)

var (
	Lines      = topology.NewTopic("lines", serde.String, serde.String)
	ByWord     = topology.NewRepartition("by-word", serde.String, serde.String)
	Counts     = store.NewKeyValue("counts", serde.String, serde.Int64)
	WordCounts = topology.NewTopic("word-counts", serde.String, serde.Int64)
)

func wordCount() (*topology.Topology, error) {
	b := topology.NewBuilder()
	words := topology.FlatMapValues(topology.From(b, Lines), strings.Fields)
	byWord := topology.GroupBy(words, ByWord, func(_, word string) string { return word })
	topology.To(topology.Changes(topology.Count(byWord, Counts)), WordCounts)
	return b.Build()
}

// In a test, New(t, topo) fails the test by itself and needs no error checks.
func Example() {
	topo, err := wordCount()
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := testdriver.Open(topo, testdriver.DefaultPartitions(4))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	lines, counts := testdriver.Input(d, Lines), testdriver.Output(d, WordCounts)

	lines.Send("", "a b a")
	for _, r := range counts.ReadAll() {
		fmt.Println(r.Key, r.Value)
	}
	lines.Send("", "a")
	fmt.Println(testdriver.ReadMap(counts), testdriver.Store(d, Counts).All())
	// Output:
	// a 1
	// b 1
	// a 2
	// map[a:3] [{a 3} {b 1}]
}

// A store is queried in a test as in an application, where Counts.Query(app) works on any goroutine.
func ExampleDriver_Queried() {
	topo, err := wordCount()
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := testdriver.Open(topo)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	testdriver.Input(d, Lines).Send("", "to be or not to be")

	counts := Counts.Query(d)
	n, ok, err := counts.Get("be")
	fmt.Println(n, ok, err)
	err = counts.Range("not", "or", func(word string, n int64) bool {
		fmt.Println(word, n)
		return true
	})
	fmt.Println(err)
	// Output:
	// 2 true <nil>
	// not 1
	// or 1
	// <nil>
}
