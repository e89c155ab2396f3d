package main

import (
	"strings"
	"unicode"

	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// topics declares the input and the output. Counts are big-endian int64, as Java's LongDeserializer reads them.
func topics(in, out string) (lines topology.Topic[string, string], counts topology.Topic[string, int64]) {
	return topology.NewTopic(in, serde.String, serde.String), topology.NewTopic(out, serde.String, serde.Int64)
}

// wordCount declares the topology: lines are cut into words, the words brought together by a repartition topic, counted,
// and each new count written to the output topic.
func wordCount(in topology.Topic[string, string], out topology.Topic[string, int64]) (*topology.Topology, error) {
	var (
		ByWord = topology.NewRepartition("by-word", serde.String, serde.String)
		Counts = store.NewKeyValue("counts", serde.String, serde.Int64)
	)
	b := topology.NewBuilder()
	lines := topology.From(b, in)
	words := topology.FlatMapValues(lines, words)
	byWord := topology.GroupBy(words, ByWord, func(_, word string) string { return word })
	counts := topology.Count(byWord, Counts)
	topology.To(topology.Changes(counts), out)
	return b.Build()
}

// words returns the lower-cased runs of letters and digits.
func words(line string) []string {
	return strings.FieldsFunc(strings.ToLower(line), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}
