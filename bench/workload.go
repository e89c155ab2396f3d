package main

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"strings"
)

// kind is what a workload does.
type kind string

// The kinds.
const (
	countKeys kind = "count"      // count the records of each key
	wordCount kind = "word-count" // split lines into words, count the words through a repartition topic
)

// workload is some work and its input. It is handed to child processes as JSON.
type workload struct {
	Name     string
	Kind     kind
	Topic    string // the input
	Records  int    // in it
	Distinct int    // keys or words to draw from
}

const (
	partitions   = 4
	valueBytes   = 100
	wordsPerLine = 5
	vocabulary   = 100_000
)

// workloads returns what the options ask for.
func workloads(o options) []workload {
	var all []workload
	for _, k := range o.keys {
		all = append(all, workload{
			Name: fmt.Sprintf("count, %s keys", thousands(k)), Kind: countKeys, Topic: fmt.Sprintf("bench-keyed-%d-%d", k, o.records),
			Records: o.records, Distinct: k,
		})
	}
	if o.lines > 0 {
		all = append(all, workload{
			Name: fmt.Sprintf("word count, %d words a line of %s", wordsPerLine, thousands(vocabulary)), Kind: wordCount,
			Topic: fmt.Sprintf("bench-lines-%d", o.lines), Records: o.lines, Distinct: vocabulary,
		})
	}
	return all
}

// thousands writes 1234567 as 1,234,567.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// draws returns the sequence of keys or words of the input, by number; it is the same at each call.
func (w workload) draws() func() int {
	seed := fnv.New64a()
	seed.Write([]byte(w.Topic))
	rng := rand.New(rand.NewPCG(seed.Sum64(), 1))
	return func() int { return rng.IntN(w.Distinct) }
}

// word is the key or word of a number.
func word(n int) string { return fmt.Sprintf("w%07d", n) }

// number is the inverse of word.
func number(word []byte) (int, error) {
	digits, ok := strings.CutPrefix(string(word), "w")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil {
		return 0, fmt.Errorf("the key %q is none of the input's", word)
	}
	return n, nil
}

// each calls fn with the key (nil for none) and the value of each input record. The slices are used again.
func (w workload) each(fn func(key, value []byte) error) error {
	next := w.draws()
	key, value := []byte(nil), []byte(strings.Repeat("v", valueBytes))
	for range w.Records {
		if w.Kind == countKeys {
			key = fmt.Appendf(key[:0], "w%07d", next())
		} else {
			value = value[:0]
			for range wordsPerLine {
				value = fmt.Appendf(value, "w%07d ", next())
			}
		}
		if err := fn(key, value); err != nil {
			return err
		}
	}
	return nil
}

// expected returns the final table: how often each key or word is in the input, by its number.
func (w workload) expected() []int64 {
	table := make([]int64, w.Distinct)
	next := w.draws()
	n := w.Records
	if w.Kind == wordCount {
		n *= wordsPerLine
	}
	for range n {
		table[next()]++
	}
	return table
}
