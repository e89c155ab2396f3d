package main

import (
	"strings"
	"unicode"

	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// wordCount declares the topology: lines are cut into words, the words brought together by a repartition topic, counted,
// and each new count written to the output topic. Its value is a big-endian int64, as Java's LongDeserializer reads it.
func wordCount(in, out string) (*topology.Topology, error) {
	var (
		Lines  = topology.NewTopic(in, serde.String, serde.String)
		ByWord = topology.NewRepartition("by-word", serde.String, serde.String)
		Counts = store.NewKeyValue("counts", serde.String, serde.Int64)
		Out    = topology.NewTopic(out, serde.String, serde.Int64)
	)
	b := topology.NewBuilder()
	lines := topology.From(b, Lines)
	words := topology.FlatMapValues(lines, words)
	byWord := topology.GroupBy(words, ByWord, func(_, word string) string { return word })
	counts := topology.Count(byWord, Counts)
	topology.To(topology.Changes(counts), Out)
	return b.Build()
}

// words returns the lower-cased runs of letters and digits.
func words(line string) []string {
	return strings.FieldsFunc(strings.ToLower(line), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}
