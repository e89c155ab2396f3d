package topology_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/internal/seed"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// follower checks that every change of a table that is committed begins where the last one has ended.
type follower struct {
	t    *testing.T
	told map[string]string
}

var changesOf = topology.NewTopic("changes", serde.String, serde.JSON[processor.Change[string]]())

func follow(t *testing.T, of table) *follower {
	topology.To(topology.ChangesWithOld(of), changesOf)
	return &follower{t, map[string]string{}}
}

func (f *follower) read(r *rig) {
	for _, o := range r.out[changesOf.Name()] {
		k, c := string(o.Key), must(changesOf.ValueSerde().Decode(o.Value))
		if old, ok := f.told[k]; old != c.Old || ok != c.HasOld {
			f.t.Errorf("%s: the change begins at %q, %v, but the last has ended at %q, %v", k, c.Old, c.HasOld, old, ok)
		}
		if f.told[k] = c.New; !c.HasNew {
			delete(f.told, k)
		}
	}
	delete(r.out, changesOf.Name())
}

// shapes are tables of two others, and what their rows must be.
var shapes = map[string]struct {
	declare func(l, r table, opts ...topology.DerivedOption) table
	want    func(l, r map[string]string) map[string]string
}{
	"inner": {
		func(l, r table, opts ...topology.DerivedOption) table {
			return topology.JoinTables(l, r, plus, opts...)
		},
		func(l, r map[string]string) map[string]string {
			return combine(l, r, func(a string, hasA bool, b string, hasB bool) (string, bool) { return plus(a, b), hasA && hasB })
		},
	},
	"left": {
		func(l, r table, opts ...topology.DerivedOption) table {
			return topology.LeftJoinTables(l, r, leftPlus, opts...)
		},
		func(l, r map[string]string) map[string]string {
			return combine(l, r, func(a string, hasA bool, b string, hasB bool) (string, bool) { return leftPlus(a, b, hasB), hasA })
		},
	},
	"outer of derived": {
		func(l, r table, opts ...topology.DerivedOption) table {
			mapped := topology.MapTableValues(l, keyed)
			return topology.OuterJoinTables(mapped, topology.FilterTable(r, odd), outerPlus, opts...)
		},
		func(l, r map[string]string) map[string]string {
			return combine(l, r, func(a string, hasA bool, b string, hasB bool) (string, bool) {
				hasB = hasB && odd("", b)
				return outerPlus(a, hasA, b, hasB), hasA || hasB
			})
		},
	},
}

func odd(_, v string) bool { return (v[len(v)-1]-'0')%2 == 1 }

func combine(l, r map[string]string, fn func(string, bool, string, bool) (string, bool)) map[string]string {
	rows := map[string]string{}
	for k := range 10 {
		key := strconv.Itoa(k)
		a, hasA := l[key]
		b, hasB := r[key]
		if v, ok := fn(a, hasA, b, hasB); ok {
			rows[key] = v
		}
	}
	return rows
}

// Random changes, failures and commits, with and without stores, each update forwarded or the last one of a commit: the
// changes of joined tables are without a gap, end at the right rows, and sums over them are right. In Kafka Streams with its
// cache on they are not (KAFKA-4609).
func TestJoinedTablesAgainstMaps(t *testing.T) {
	t.Parallel()
	random := seed.Rand(t)
	for name, shape := range shapes {
		for _, opts := range [][]topology.DerivedOption{nil, {derived}} {
			for _, everyUpdate := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s,%d,%v", name, len(opts), everyUpdate), func(t *testing.T) {
					againstMaps(t, random, everyUpdate, shape.want, func(l, r table) table { return shape.declare(l, r, opts...) })
				})
			}
		}
	}
}

func againstMaps(t *testing.T, random *rand.Rand, everyUpdate bool, want func(l, r map[string]string) map[string]string, declare func(l, r table) table) {
	b := topology.NewBuilder()
	result := declare(left(b), right(b))
	listener := follow(t, result)
	sizes := store.NewKeyValue("sizes", serde.String, serde.Int64)
	groups := topology.GroupTableBy(result, topology.NewRepartition("sizes", serde.String, serde.Int64),
		func(k, v string) (string, int64) { return "all", int64(len(v)) })
	topology.AggregateTable(groups, func() int64 { return 0 }, func(_ string, v, sum int64) int64 { return sum + v },
		func(_ string, v, sum int64) int64 { return sum - v }, sizes)
	refuse(topology.From(b, in), "picky", func(v string) bool { return strings.HasPrefix(v, "9") })
	r := start(b, processor.Options{EveryUpdate: everyUpdate, Policy: processor.SkipBadRecords()}, nil)
	rows := map[string]map[string]string{"in": {}, "in2": {}}
	for n := range 1500 {
		topic, key := []string{"in", "in2"}[random.IntN(2)], strconv.Itoa(random.IntN(10))
		if value := strconv.Itoa(random.IntN(1000)); random.IntN(4) == 0 {
			delete(rows[topic], key)
			r.send(topic, rm(key, int64(n)))
		} else {
			if topic == "in2" || value[0] != '9' {
				rows[topic][key] = value
			}
			r.send(topic, text(key, value, int64(n)))
		}
		if r.step(); random.IntN(10) == 0 {
			must(0, r.run())
		}
	}
	must(0, r.run())
	listener.read(r)
	told := listener.told
	expect := want(keyedRows(rows["in"], told), rows["in2"])
	if !maps.Equal(told, expect) {
		t.Errorf("listeners know %v, the rows are %v", told, expect)
	}
	sum := 0
	for _, v := range expect {
		sum += len(v)
	}
	if got, want := get(r, sizes, "all"), strconv.Itoa(sum); !strings.HasPrefix(got, want+"@") {
		t.Errorf("the sum is %s, not %s", got, want)
	}
}

// keyedRows shows rows as the shape of derived tables does, which is seen by its colons.
func keyedRows(rows, told map[string]string) map[string]string {
	for _, v := range told {
		if !strings.Contains(v, ":") && !strings.HasPrefix(v, "null") {
			return rows
		}
	}
	out := map[string]string{}
	for k, v := range rows {
		out[k] = keyed(k, v)
	}
	return out
}

// Two changes in one commit are joined once, with the rows as the listeners know them.
func TestJoinOfHeldChanges(t *testing.T) {
	t.Parallel()
	b := topology.NewBuilder()
	topology.To(topology.Changes(joins("inner")(b)), out)
	r := start(b, processor.Options{}, nil)
	for _, line := range []string{"in a l1 1", "in2 a r1 2", "in a l2 3"} {
		topic, in := question1(line)
		r.send(topic, in)
	}
	must(0, r.run())
	equal(t, read(r, out), "a=l2+r1@3")
}

// Field report 36: a row that is set again, as after a crash under at-least-once, is taken out of its group and put in again:
// the sum is right and the update is not lost.
func TestFieldReport36SameRowAgain(t *testing.T) {
	t.Parallel()
	b := topology.NewBuilder()
	sums := store.NewKeyValue("sums", serde.String, serde.String)
	groups := topology.GroupTableBy(left(b), grouping, func(_, v string) (string, string) { return "all", v })
	add := func(sign int) func(row, v string) string {
		return func(row, v string) string {
			return strconv.Itoa(must(strconv.Atoi(row)) + sign*must(strconv.Atoi(v)))
		}
	}
	topology.To(topology.Changes(topology.ReduceTable(groups, add(1), add(-1), sums)), out)
	r := start(b, processor.Options{}, nil)
	r.feed("in p 5 1", "in q 7 2", "in p 5 1", "in p 5 1", "in q 7 2", "in q 8 3")
	equal(t, read(r, out), "all=5@1", "all=12@2", "all=12@2", "all=12@2", "all=12@2", "all=13@3")
}

// What a failing record has written to derived tables, aggregates of them and the ids seen is undone.
func TestFailedStepOfDerivedTables(t *testing.T) {
	t.Parallel()
	for _, everyUpdate := range []bool{false, true} {
		b := topology.NewBuilder()
		l, r := left(b), right(b)
		topology.To(topology.Changes(topology.OuterJoinTables(l, r, outerPlus, derived)), out)
		ids := store.NewKeyValue("ids", serde.String, serde.Int64)
		once := topology.Deduplicate(topology.From(b, in), ids, func(k, v string) string { return v[len(v)-1:] }, time.Hour)
		topology.To(once, out2)
		refuse(topology.From(b, in), "picky", func(v string) bool { return strings.HasPrefix(v, "bad") })
		g := start(b, processor.Options{EveryUpdate: everyUpdate, Policy: processor.SkipBadRecords()}, nil)
		g.feed("in a bad1 1", "in2 a r 2", "in a ok1 3", "in a bad2 4", "in a ok2 5")
		equal(t, read(g, out), "a=null+r@2", "a=ok1+r@3", "a=ok2+r@5")
		equal(t, read(g, out2), "a=ok1@3", "a=ok2@5")
		if got := get(g, lefts, "a"); got != "ok2@5" {
			t.Errorf("the row is %s", got)
		}
	}
}

// numbering transforms values with a store at hand: it counts how often it was asked for a key.
type numbering struct {
	ctx    *processor.Context[string, string]
	counts *store.KeyValueView[string, int64]
	closed *bool
}

func (n *numbering) Init(ctx *processor.Context[string, string]) (err error) {
	n.ctx = ctx
	n.counts, err = counts.View(ctx)
	return err
}

func (n *numbering) Transform(k, v string, exists bool) (string, bool, error) {
	if v == "forward" {
		return "", false, n.ctx.Forward(processor.Record[string, string]{})
	}
	old, _, err := n.counts.Get(k)
	if err != nil || !exists {
		return "", false, err
	}
	return fmt.Sprintf("%s,%d@%d", v, old+1, n.ctx.RecordTime()), true, n.counts.Put(k, old+1)
}

func (n *numbering) Close() error {
	*n.closed = true
	return nil
}

func TestTransformTableWithStores(t *testing.T) {
	t.Parallel()
	b := topology.NewBuilder()
	closed := false
	made := func() topology.Transformer[string, string, string] { return &numbering{closed: &closed} }
	numbered := topology.TransformTable(left(b), made, topology.WithStores(counts))
	topology.To(topology.Changes(numbered), out)
	topology.To(topology.JoinTable(topology.From(b, in2), numbered, func(_, v, row string) string { return plus(v, row) }), out2)
	var dropped []error
	r := start(b, processor.Options{EveryUpdate: true, Policy: processor.SkipBadRecords(), Dropped: func(e *processor.RecordError, _ processor.Action) {
		dropped = append(dropped, e)
	}}, nil)
	r.feed("in a x 1", "in a y 2", "in2 a s 9", "in2 b s 9", "in a - 3", "in a forward 4")
	equal(t, read(r, out), "a=x,1@1@1", "a=y,2@2@2", "a=null@3")
	equal(t, read(r, out2), "a=s+y,3@2@9") // looked up: computed again, at the row's time
	if len(dropped) != 1 || !errors.Is(dropped[0], processor.ErrForward) {
		t.Errorf("dropped %v", dropped)
	}
	for _, task := range r.tasks {
		must(0, task.Close())
	}
	if !closed {
		t.Error("the transformer is not closed")
	}
}

// A join of tables whose topics have different counts is refused with names and counts.
func TestJoinedTopicsMustHaveEqualCounts(t *testing.T) {
	t.Parallel()
	for _, declare := range []func(*topology.Builder){
		func(b *topology.Builder) { joins("inner")(b) },
		func(b *topology.Builder) {
			topology.JoinTables(topology.FilterTable(left(b), yes), topology.MapTableValues(right(b), keyed), plus)
		},
		func(b *topology.Builder) { topology.LeftJoinTable(topology.From(b, in), right(b), leftKeyed) },
		func(b *topology.Builder) {
			one := topology.Cogroup(topology.GroupByKey(topology.From(b, in)), func(_, v, row string) string { return row })
			topology.AggregateCogrouped(one.And(topology.Cogroup(topology.GroupByKey(topology.From(b, in2)), func(_, v, row string) string { return row })),
				func() string { return "" }, texts)
		},
	} {
		_, err := build(declare).Layout(app, map[string]int32{"in": 2, "in2": 3}, "")
		var e *topology.PartitionMismatchError
		if !errors.As(err, &e) || e.Counts["in"] != 2 || e.Counts["in2"] != 3 {
			t.Errorf("got %v", err)
		}
	}
}

// A re-keyed stream that is known to keep its keys may be grouped, joined and read as a table.
func TestKeyUnchanged(t *testing.T) {
	t.Parallel()
	b := topology.NewBuilder()
	same := topology.KeyUnchanged(topology.Process(topology.From(b, in), "mine", newForward))
	topology.To(topology.Changes(topology.Count(topology.GroupByKey(same), counts)), totals)
	topology.To(topology.JoinTable(same, topology.ToTable(topology.KeyUnchanged(topology.SelectKey(same, func(k, _ string) string { return k })), texts), leftKeyed3), out)
	r := start(b, processor.Options{EveryUpdate: true}, nil)
	r.feed("in a x 1", "in a y 2")
	equal(t, read(r, totals), "a=1@1", "a=2@2")
	equal(t, read(r, out), "a=a/x+x@1", "a=a/y+y@2")
}

func leftKeyed3(k, v, row string) string { return leftKeyed(k, v, row, true) }
