package topology_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace-streams/millrace/internal/seed"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/testdriver"
	"github.com/millrace-streams/millrace/topology"
)

type (
	table    = topology.KTable[string, string]
	nullable = topology.KTable[string, *string]
)

// pointers encodes what may be null.
var pointers = serde.Func(func(dst []byte, v *string) ([]byte, error) { return append(dst, *v...), nil },
	func(data []byte) (*string, error) { s := string(data); return &s, nil })

var (
	derived  = topology.Materialized(store.NewKeyValue("derived", serde.String, serde.String))
	mayBe    = topology.Materialized(store.NewKeyValue("derived", serde.String, pointers))
	grouping = topology.NewRepartition("g", serde.String, serde.String)
	mayGroup = topology.NewRepartition("g", pointers, pointers)
	lefts    = store.NewKeyValue("st-in", serde.String, serde.String)
	rights   = store.NewKeyValue("st-in2", serde.String, serde.String)
	byFirst  = topology.NewForeignKey("fk", lefts, rights)
)

func left(b *topology.Builder) table { return topology.Table(b, in, lefts) }

func right(b *topology.Builder) table { return topology.Table(b, in2, rights) }

func yes(_, v string) bool { return strings.HasPrefix(v, "yes") }

func keyed(k, v string) string { return k + ":" + v }

func plus(row, v string) string { return row + "+" + v }

func minus(row, v string) string { return row + "-" + v }

// orNull shows what Java's string concatenation shows.
func orNull(v string, exists bool) string {
	if !exists {
		return "null"
	}
	return v
}

func leftPlus(l, r string, exists bool) string { return plus(l, orNull(r, exists)) }

func outerPlus(l string, hasL bool, r string, hasR bool) string {
	return plus(orNull(l, hasL), orNull(r, hasR))
}

// first is the first letter, null if that is a hyphen.
func first(_, v string) (string, bool) { return v[:1], v[0] != '-' }

// second is what follows the first letter, null if that is a hyphen.
func second(_, v string) (string, bool) { return v[1:], v[0] != '-' }

func written[V any](declare func(*topology.Builder) topology.KTable[string, V], show func(V) string) func(*topology.Builder) {
	return func(b *topology.Builder) {
		topology.To(topology.MapValues(topology.Changes(declare(b)), show), out)
	}
}

func same(v string) string { return v }

func number(n int64) string { return strconv.FormatInt(n, 10) }

func text0(v *string) string { return *v }

// collect makes one row of all, and so shows what a table tells of old values.
func collect(t table) table {
	all := topology.GroupTableBy(t, grouping, func(_, v string) (string, string) { return "all", v })
	return topology.ReduceTable(all, func(row, v string) string { return row + "|+" + v },
		func(row, v string) string { return row + "|-" + v }, store.NewKeyValue("red", serde.String, serde.String))
}

// transformer appends the key; the row c comes back when it is deleted.
type transformer struct{}

func (transformer) Init(*processor.Context[string, string]) error { return nil }

func (transformer) Transform(k, v string, exists bool) (string, bool, error) {
	if !exists {
		return "gone", k == "c", nil
	}
	return v + "#" + k, true, nil
}

func newTransformer() topology.Transformer[string, string, string] { return transformer{} }

// group is null for values that begin with a hyphen, and the value null for those that begin with 0.
func group(_ string, v string) (key, value *string) {
	head, tail := v[:1], v[1:]
	if head != "-" {
		key = &head
	}
	if head != "0" {
		value = &tail
	}
	return key, value
}

func grouped(b *topology.Builder) topology.GroupedTable[*string, *string] {
	return topology.GroupTableBy(left(b), mayGroup, group)
}

func plain(_, v string) bool { return v[0] != '-' && v[0] != '0' }

func countOfGroups(b *topology.Builder) topology.KTable[string, int64] {
	groups := topology.GroupTableBy(topology.FilterTable(left(b), plain), grouping, func(_, v string) (string, string) { return v[:1], v })
	return topology.CountTable(groups, counts)
}

func op(name string) func(*string, *string) *string {
	return func(row, v *string) *string {
		if name == "" {
			return nil
		}
		s := *row + name + *v
		return &s
	}
}

func keyedOp(name string) func(k, v, row *string) *string {
	return func(k, v, row *string) *string {
		both := *k + *v
		return op(name)(row, &both)
	}
}

func reduced(subtract string) func(*topology.Builder) {
	return func(b *topology.Builder) {
		t := topology.ReduceTable(grouped(b), op("+"), op(subtract), store.NewKeyValue("red", pointers, pointers))
		topology.To(topology.Changes(t), maybeOut)
	}
}

func aggregated(subtract string) func(*topology.Builder) {
	return func(b *topology.Builder) {
		zero := "0"
		t := topology.AggregateTable(grouped(b), func() *string { return &zero }, keyedOp("+"), keyedOp(subtract), store.NewKeyValue("red", pointers, pointers))
		topology.To(topology.Changes(t), maybeOut)
	}
}

// maybeOut is out for what may be null.
var maybeOut = topology.NewTopic("out", pointers, pointers)

// joins are the three joins of tables, with or without a store.
func joins(kind string, opts ...topology.DerivedOption) func(*topology.Builder) table {
	return func(b *topology.Builder) table {
		l, r := left(b), right(b)
		switch kind {
		case "inner":
			return topology.JoinTables(l, r, plus, opts...)
		case "left":
			return topology.LeftJoinTables(l, r, leftPlus, opts...)
		}
		return topology.OuterJoinTables(l, r, outerPlus, opts...)
	}
}

func nullJoin(opts ...topology.DerivedOption) func(*topology.Builder) nullable {
	return func(b *topology.Builder) nullable {
		return topology.LeftJoinTables(left(b), right(b), func(l, r string, exists bool) *string {
			if !exists || strings.HasSuffix(r, "2") {
				return nil
			}
			s := plus(l, r)
			return &s
		}, opts...)
	}
}

func foreign(isLeft bool, opts ...topology.DerivedOption) func(*topology.Builder) table {
	return func(b *topology.Builder) table {
		if isLeft {
			return topology.LeftJoinForeign(left(b), right(b), byFirst, first, leftPlus, opts...)
		}
		return topology.JoinForeign(left(b), right(b), byFirst, first, plus, opts...)
	}
}

func then(declare func(*topology.Builder) table, next func(table) table) func(*topology.Builder) {
	return written(func(b *topology.Builder) table { return next(declare(b)) }, same)
}

// peers are the topologies of testdata/peer-tables.txt.
var peers = map[string]func(*topology.Builder){
	"table":      written(left, same),
	"filter":     then(left, func(t table) table { return topology.FilterTable(t, yes) }),
	"filter mat": then(left, func(t table) table { return topology.FilterTable(t, yes, derived) }),
	"filterNot":  then(left, func(t table) table { return topology.FilterNotTable(t, yes) }),
	"map":        then(left, func(t table) table { return topology.MapTableValues(t, keyed) }),
	"map mat":    then(left, func(t table) table { return topology.MapTableValues(t, keyed, derived) }),
	"map null": written(func(b *topology.Builder) nullable {
		return topology.MapTableValues(left(b), func(k, v string) *string {
			if !yes(k, v) {
				return nil
			}
			return &v
		}, mayBe)
	}, text0),
	"map filter": then(left, func(t table) table {
		return topology.FilterTable(topology.MapTableValues(t, keyed), func(_, v string) bool { return strings.Contains(v, "yes") })
	}),
	"filter map mat": then(left, func(t table) table {
		return topology.MapTableValues(topology.FilterTable(t, yes), keyed, derived)
	}),
	"transform":     then(left, func(t table) table { return topology.TransformTable(t, newTransformer) }),
	"transform mat": then(left, func(t table) table { return topology.TransformTable(t, newTransformer, derived) }),
	"toTable": written(func(b *topology.Builder) table {
		return topology.ToTable(topology.From(b, in), texts)
	}, same),
	"toStream mapper": func(b *topology.Builder) {
		topology.To(topology.ChangesBy(left(b), func(k, v string, exists bool) string { return k + "/" + orNull(v, exists) }), out)
	},

	"count table": func(b *topology.Builder) {
		t := topology.CountTable(grouped(b), store.NewKeyValue("cnt", pointers, serde.Int64))
		topology.To(topology.Map(topology.Changes(t), func(k *string, n int64) (string, string) { return *k, number(n) }), out)
	},
	"reduce table":         reduced("-"),
	"reduce table null":    reduced(""),
	"aggregate table":      aggregated("-"),
	"aggregate table null": aggregated(""),
	"filter then count":    written(countOfGroups, number),
	"count of count": written(func(b *topology.Builder) table {
		again := topology.GroupTableBy(countOfGroups(b), topology.NewRepartition("g2", serde.String, serde.String),
			func(k string, n int64) (string, string) { return "n" + number(n), k })
		return topology.ReduceTable(again, plus, minus, texts)
	}, same),

	"inner": written(joins("inner"), same), "inner mat": written(joins("inner", derived), same),
	"left": written(joins("left"), same), "left mat": written(joins("left", derived), same),
	"outer": written(joins("outer"), same), "outer mat": written(joins("outer", derived), same),
	"left null joiner": written(nullJoin(), text0), "left null joiner mat": written(nullJoin(mayBe), text0),
	"inner then reduce": then(joins("inner"), collect), "inner then reduce mat": then(joins("inner", derived), collect),
	"left then reduce": then(joins("left"), collect), "left then reduce mat": then(joins("left", derived), collect),
	"outer then reduce": then(joins("outer"), collect), "outer then reduce mat": then(joins("outer", derived), collect),
	"join of join": written(func(b *topology.Builder) table {
		l, r := left(b), right(b)
		shown := topology.MapTableValues(l, func(_, v string) string { return "[" + v + "]" })
		return topology.LeftJoinTables(topology.JoinTables(l, r, plus), shown, leftPlus)
	}, same),
	"outer of filtered": written(func(b *topology.Builder) table {
		l := topology.FilterTable(left(b), func(_, v string) bool { return !strings.HasSuffix(v, "2") })
		r := topology.FilterTable(right(b), func(_, v string) bool { return !strings.HasSuffix(v, "3") })
		return topology.OuterJoinTables(l, r, outerPlus)
	}, same),
	"self join": then(left, func(t table) table { return topology.JoinTables(t, t, plus) }),
	"join then join view": written(func(b *topology.Builder) table {
		l, r := left(b), right(b)
		return topology.JoinTables(topology.OuterJoinTables(l, r, outerPlus), r, plus)
	}, same),

	"stream-table inner": func(b *topology.Builder) {
		topology.To(topology.JoinTable(topology.From(b, in), right(b), func(k, v, row string) string { return k + "/" + plus(v, row) }), out)
	},
	"stream-table left": func(b *topology.Builder) {
		topology.To(topology.LeftJoinTable(topology.From(b, in), right(b), leftKeyed), out)
	},
	"stream-table left of mapped": func(b *topology.Builder) {
		shown := topology.MapTableValues(right(b), func(_, v string) string { return "<" + v + ">" })
		some := topology.FilterTable(shown, func(_, v string) bool { return v != "<r2>" })
		topology.To(topology.LeftJoinTable(topology.From(b, in), some, leftKeyed), out)
	},
	"stream-global inner": func(b *topology.Builder) {
		g := topology.GlobalTable(b, in2, rights)
		topology.To(topology.JoinGlobal(topology.From(b, in), g, second, func(k, v, row string) string { return leftKeyed(k, v, row, true) }), out)
	},
	"stream-global left": func(b *topology.Builder) {
		g := topology.GlobalTable(b, in2, rights)
		topology.To(topology.LeftJoinGlobal(topology.From(b, in), g, second, leftKeyed), out)
	},
	"cogroup": written(func(b *topology.Builder) table {
		adds := topology.Cogroup(topology.GroupByKey(topology.From(b, in)), func(_, v, row string) string { return plus(row, v) })
		takes := topology.Cogroup(topology.GroupByKey(topology.From(b, in2)), func(_, v, row string) string { return minus(row, v) })
		return topology.AggregateCogrouped(adds.And(takes), func() string { return "0" }, texts)
	}, same),

	"fk inner": written(foreign(false), same), "fk inner mat": written(foreign(false, derived), same),
	"fk left": written(foreign(true), same), "fk left mat": written(foreign(true, derived), same),
	"fk left then reduce": then(foreign(true, derived), collect),
	"fk inner filtered no mat": then(foreign(false), func(t table) table {
		return topology.FilterTable(t, func(_, v string) bool { return !strings.Contains(v, "ra2") })
	}),
}

// leftKeyed shows a null key as Java does.
func leftKeyed(k, v, row string, exists bool) string {
	if k == "" {
		k = "null"
	}
	return k + "/" + leftPlus(v, row, exists)
}

// TestSameAsKafkaStreams compares record by record, with every update forwarded at once.
func TestSameAsKafkaStreams(t *testing.T) {
	t.Parallel()
	data := must(os.ReadFile("testdata/peer-tables.txt"))
	for _, section := range strings.Split(string(data), "\n== ")[1:] {
		name, body, _ := strings.Cut(section, "\n")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			declare := peers[name]
			if declare == nil {
				t.Fatal("there is no such topology")
			}
			b := topology.NewBuilder()
			declare(b)
			r := start(b, processor.Options{EveryUpdate: true}, nil)
			for _, line := range strings.Split(strings.TrimSpace(body), "\n") {
				question, answer, _ := strings.Cut(line, " -> ")
				topic, in := question1(question)
				r.send(topic, in)
				must(0, r.run())
				if got := strings.Join(read(r, out), " "); got != answer {
					t.Errorf("%s: got %s, want %s", question, got, answer)
				}
			}
		})
	}
}

// question1 reads an input.
func question1(line string) (topic string, in rec) {
	words := strings.Fields(line)
	for i, to := range []*[]byte{&in.key, &in.value} {
		switch w := words[i+1]; w {
		case "-":
		case "''":
			*to = []byte{}
		default:
			*to = []byte(w)
		}
	}
	in.ts = must(strconv.ParseInt(words[3], 10, 64))
	return words[0], in
}

// TestTablesSurviveRestarts compares record by record while the process is stopped or killed now and then, and comes back with
// its local state or without.
func TestTablesSurviveRestarts(t *testing.T) {
	t.Parallel()
	random := seed.Rand(t)
	data := must(os.ReadFile("testdata/peer-tables.txt"))
	for _, section := range strings.Split(string(data), "\n== ")[1:] {
		name, body, _ := strings.Cut(section, "\n")
		b := topology.NewBuilder()
		peers[name](b)
		d := testdriver.New(t, must(b.Build()))
		answers := testdriver.Output(d, out)
		for _, line := range strings.Split(strings.TrimSpace(body), "\n") {
			switch random.IntN(6) {
			case 0:
				d.RestartEmpty()
			case 1:
				d.Restart()
			case 2:
				d.Crash()
				d.Restart()
			}
			question, answer, _ := strings.Cut(line, " -> ")
			topic, in := question1(question)
			testdriver.Input(d, topology.NewTopic(topic, serde.Bytes, serde.Bytes)).SendRaw(0, processor.Raw{Key: in.key, Value: in.value, Timestamp: in.ts})
			if got := strings.Join(readPeer(answers), " "); got != answer {
				t.Errorf("%s: %s: got %s, want %s", name, question, got, answer)
			}
		}
		d.Close()
	}
}

// Field report 22: a table is restored to what is committed, from a changelog of its own. The records of its topic that are
// not yet processed go through the processors.
func TestFieldReport22TableIsRestoredToTheCommittedPosition(t *testing.T) {
	t.Parallel()
	b := topology.NewBuilder()
	topology.To(topology.Changes(topology.JoinTables(left(b), right(b), plus)), out)
	d := testdriver.New(t, must(b.Build()), testdriver.Manual())
	answers := testdriver.Output(d, out)
	testdriver.Input(d, in2).SendAt("k", "right", 0)
	for i := range 100 {
		if i == 60 {
			d.Settle()
			if n := len(answers.ReadAll()); n != 60 {
				t.Fatalf("%d answers", n)
			}
		}
		testdriver.Input(d, in).SendAt("k", strconv.Itoa(i), 1)
	}
	d.RestartEmpty()
	d.Settle()
	all := answers.ReadAll()
	if len(all) != 40 || all[0].Value != "60+right" || all[39].Value != "99+right" {
		t.Errorf("%d answers: %v", len(all), all)
	}
}
