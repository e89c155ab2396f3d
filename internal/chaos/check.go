package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/internal/topicread"
)

// check compares what the application has written with the batch computation over what it was given. It returns what
// differs. Nothing may be written any more.
func check(ctx context.Context, k *kafka, a application) ([]string, error) {
	in, err := readInput(ctx, k, a)
	if err != nil {
		return nil, err
	}
	want := compute(in)
	c := &checker{ctx: ctx, kafka: k}
	c.counts(a, want.words)
	c.words(a, want.words)
	c.table(a, want.words)
	c.bag(a.joined(), want.joined)
	c.bag(a.named(), want.named)
	c.kept(a.leftsLog(), want.lefts)
	c.kept(a.rightsLog(), want.rights)
	c.bag(a.history(), want.history)
	c.rows(a, want.rows)
	return c.wrong, c.err
}

// readInput reads back what the suite has written: that is the truth, whatever the suite knows of its own failures.
func readInput(ctx context.Context, k *kafka, a application) (in input, err error) {
	in.users = map[string]string{}
	read := func(topic string, fn func(topicread.Record)) {
		if err == nil {
			err = k.read(ctx, topic, fn)
		}
	}
	read(a.lines(), func(r topicread.Record) { in.lines = append(in.lines, string(r.Value)) })
	read(a.lefts(), func(r topicread.Record) { in.lefts = append(in.lefts, timed{entryOf(r), r.Timestamp}) })
	read(a.rights(), func(r topicread.Record) { in.rights = append(in.rights, timed{entryOf(r), r.Timestamp}) })
	read(a.rows(), func(r topicread.Record) { in.rows = append(in.rows, entryOf(r)) })
	read(a.users(), func(r topicread.Record) { in.users[string(r.Key)] = string(r.Value) })
	return in, err
}

func entryOf(r topicread.Record) entry { return entry{string(r.Key), string(r.Value)} }

// checker reads topics and collects what is wrong with them.
type checker struct {
	ctx   context.Context
	kafka *kafka
	wrong []string
	err   error
}

// shown bounds how many differences of one topic are told.
const shown = 8

// tell adds a topic's differences.
func (c *checker) tell(topic string, differences []string) {
	if n := len(differences); n > shown {
		differences = append(differences[:shown:shown], fmt.Sprintf("and %d more", n-shown))
	}
	for _, d := range differences {
		c.wrong = append(c.wrong, topic+": "+d)
	}
}

func (c *checker) read(topic string, fn func(topicread.Record)) {
	if c.err == nil {
		c.err = c.kafka.read(c.ctx, topic, fn)
	}
}

// counts wants each word's counts in the order in which they were written to go 1, 2, 3 and so on up to the right one; or,
// when counts are held back, to rise up to it.
func (c *checker) counts(a application, want map[string]int64) {
	last := map[string]int64{}
	var differences []string
	c.read(a.counts(), func(r topicread.Record) {
		word, n := string(r.Key), number(r.Value)
		if n <= last[word] || !a.Cached && n != last[word]+1 {
			differences = append(differences, fmt.Sprintf("%q is counted %d after %d, at %d@%d", word, n, last[word], r.Partition, r.Offset))
		}
		last[word] = n
	})
	c.tell(a.counts(), append(differences, differ(last, want)...))
}

// words wants each word to have gone through the repartition topic as often as it occurs, if nothing has been purged there.
func (c *checker) words(a application, want map[string]int64) {
	starts, err := c.kafka.offsets([]string{a.byWord()}, sarama.OffsetOldest)
	if c.err = cmp.Or(c.err, err); c.err != nil {
		return
	}
	for _, start := range starts {
		if start > 0 {
			return
		}
	}
	got := map[string]int64{}
	c.read(a.byWord(), func(r topicread.Record) { got[string(r.Value)]++ })
	c.tell(a.byWord(), differ(got, want))
}

// table wants the changelog of the counts to end with the right ones.
func (c *checker) table(a application, want map[string]int64) {
	last := map[string]int64{}
	c.read(a.countsLog(), func(r topicread.Record) { last[string(r.Key)] = number(r.Value) })
	c.tell(a.countsLog(), differ(last, want))
}

// rows wants the changelog of the rows to end with what they are at last. One that is deleted has a tombstone there, or nothing.
func (c *checker) rows(a application, want map[string]string) {
	last := map[string]string{}
	c.read(a.rowsLog(), func(r topicread.Record) { last[string(r.Key)] = string(r.Value) })
	c.tell(a.rowsLog(), differ(existing(last), existing(want)))
}

func existing(rows map[string]string) map[entry]int {
	all := map[entry]int{}
	for key, value := range rows {
		if value != "" {
			all[entry{key, value}]++
		}
	}
	return all
}

// bag wants a topic to hold exactly these records, in any order.
func (c *checker) bag(topic string, want map[entry]int) {
	got := map[entry]int{}
	c.read(topic, func(r topicread.Record) { got[entryOf(r)]++ })
	c.tell(topic, differ(got, want))
}

// kept wants the changelog of a window store that keeps every record to hold exactly these. Each has a row of its own.
func (c *checker) kept(topic string, want map[entry]int) {
	rows := map[string]string{}
	c.read(topic, func(r topicread.Record) { rows[string(r.Key)] = string(r.Value) })
	got := map[entry]int{}
	for row, value := range rows {
		got[entry{row[:max(0, len(row)-12)], value}]++ // behind the key: start and number
	}
	c.tell(topic, differ(got, want))
}

// number decodes a count, -1 if it is none.
func number(b []byte) int64 {
	if len(b) != 8 {
		return -1
	}
	return int64(binary.BigEndian.Uint64(b))
}

// differ says where two tables differ.
func differ[K comparable, N int | int64](got, want map[K]N) []string {
	var all []string
	for k, n := range want {
		if got[k] != n {
			all = append(all, fmt.Sprintf("%v: %d, want %d", k, got[k], n))
		}
	}
	for k, n := range got {
		if _, ok := want[k]; !ok {
			all = append(all, fmt.Sprintf("%v: %d, want none", k, n))
		}
	}
	slices.SortFunc(all, strings.Compare)
	return all
}

// behind returns the partitions whose position is not at the end, and how far off each is.
func behind(at, ends map[place]int64) []string {
	var all []string
	for _, p := range slices.SortedFunc(maps.Keys(ends), func(a, b place) int { return cmp.Compare(a.String(), b.String()) }) {
		if at[p] != ends[p] {
			all = append(all, fmt.Sprintf("%s at %d of %d", p, at[p], ends[p]))
		}
	}
	return all
}
