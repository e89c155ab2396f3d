package integration

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// text declares a topic of strings.
func text(name string) topology.Topic[string, string] {
	return topology.NewTopic(name, serde.String, serde.String)
}

// build returns what declare has declared.
func build(t testing.TB, declare func(*topology.Builder)) *topology.Topology {
	t.Helper()
	b := topology.NewBuilder()
	declare(b)
	topo, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

// counting counts the records of each key in store "counts", and writes every single count.
func counting(t testing.TB, in, out string) *topology.Topology {
	t.Helper()
	return build(t, func(b *topology.Builder) { countEach(topology.From(b, text(in)), out) })
}

func countEach(s topology.Stream[string, string], out string) {
	counts := store.NewKeyValue("counts", serde.String, serde.Int64)
	table := topology.Count(topology.GroupByKey(s), counts, topology.CachingDisabled())
	topology.To(topology.Changes(table), topology.NewTopic(out, serde.String, serde.Int64))
}

// wordCount is the topology of examples/wordcount.
func wordCount(b *topology.Builder, in, out string) {
	counts := store.NewKeyValue("counts", serde.String, serde.Int64)
	byWord := topology.NewRepartition("by-word", serde.String, serde.String)
	words := topology.FlatMapValues(topology.From(b, text(in)), strings.Fields)
	table := topology.Count(topology.GroupBy(words, byWord, func(_, word string) string { return word }), counts)
	topology.To(topology.Changes(table), topology.NewTopic(out, serde.String, serde.Int64))
}

// wordCountTopics are the topics that the word count reads, upstream first.
func wordCountTopics(app, in string) []string { return []string{in, app + "-by-word-repartition"} }

// keeping is the topology of a ledger.
func keeping(t testing.TB, in, out string) *topology.Topology {
	t.Helper()
	return build(t, func(b *topology.Builder) { ledger(topology.From(b, text(in)), out, nil) })
}

// ledger is a store that obeys the values of its input, see Process.
func ledger(s topology.Stream[string, string], out string, seen func(key, value string)) {
	declared := store.NewKeyValue("ledger", serde.String, serde.String)
	answers := topology.Process(s, "ledger", func() processor.Processor[string, string, string, string] {
		return &ledgerNode{store: declared, seen: seen}
	}, declared)
	topology.To(answers, text(out))
}

type ledgerNode struct {
	ctx   *processor.Context[string, string]
	store *store.KeyValue[string, string]
	view  *store.KeyValueView[string, string]
	seen  func(key, value string)
}

// Init implements processor.Processor.
func (l *ledgerNode) Init(ctx *processor.Context[string, string]) (err error) {
	l.ctx = ctx
	l.view, err = l.store.View(ctx)
	return err
}

// Process puts "put=...", deletes at "del" and answers at "get": with the value, or a tombstone when there is none.
func (l *ledgerNode) Process(r processor.Record[string, string]) (err error) {
	value, put := strings.CutPrefix(r.Value, "put=")
	switch {
	case put:
		err = l.view.Put(r.Key, value)
	case r.Value == "del":
		err = l.view.Delete(r.Key)
	case r.Value == "get":
		err = l.answer(r)
	}
	if l.seen != nil && err == nil {
		l.seen(r.Key, r.Value)
	}
	return err
}

func (l *ledgerNode) answer(r processor.Record[string, string]) error {
	found, ok, err := l.view.Get(r.Key)
	if err != nil {
		return err
	}
	r.Value, r.NullValue = found, !ok
	return l.ctx.Forward(r)
}

// count decodes the value of a count.
func count(t testing.TB, r brokertest.Record) int64 {
	t.Helper()
	if len(r.Value) != 8 {
		t.Fatalf("a count of %d bytes for %q at %d@%d", len(r.Value), r.Key, r.Partition, r.Offset)
	}
	return int64(binary.BigEndian.Uint64(r.Value))
}

// lastCounted wants the latest counts in a topic to be these.
func lastCounted(t *testing.T, brokers []string, out string, want ...int64) {
	t.Helper()
	all := settled(t, brokers, out)
	for i, n := range want {
		if r := all[len(all)-len(want)+i]; count(t, r) != n {
			t.Errorf("%s is counted %d, want %d", r.Key, count(t, r), n)
		}
	}
}

func encoded(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// exactlyCounted checks that the committed output holds, for each key, every count from 1 on, once, in order.
func exactlyCounted(t *testing.T, out string, want map[string]int64) {
	t.Helper()
	last := map[string]int64{}
	for _, r := range settled(t, brokertest.Brokers(t), out) {
		key, n := string(r.Key), count(t, r)
		if n != last[key]+1 {
			t.Errorf("%s: count %d after %d at %d@%d", key, n, last[key], r.Partition, r.Offset)
		}
		last[key] = n
	}
	for key, n := range want {
		if last[key] != n {
			t.Errorf("%s: counted %d, want %d", key, last[key], n)
		}
	}
	if len(last) != len(want) {
		t.Errorf("%d keys were counted, want %d", len(last), len(want))
	}
}

// show prints committed records as key=value, null as "null".
func show(t *testing.T, topic string) []string {
	t.Helper()
	var all []string
	for _, r := range settled(t, brokertest.Brokers(t), topic) {
		all = append(all, fmt.Sprintf("%s=%s", printable(r.Key), printable(r.Value)))
	}
	return all
}

func printable(b []byte) string {
	if b == nil {
		return "null"
	}
	return string(b)
}

// joining joins a stream with a table.
func joining(t testing.TB, left, right, out string) *topology.Topology {
	t.Helper()
	return build(t, func(b *topology.Builder) {
		rows := topology.Table(b, text(right), store.NewKeyValue("rows", serde.String, serde.String))
		joined := topology.JoinTable(topology.From(b, text(left)), rows, func(_, l, r string) string { return l + r })
		topology.To(joined, text(out))
	})
}
