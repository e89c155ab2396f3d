package topology_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// The functions below make mistakes. A comment "want" on a line quotes, in backquotes, each error that Build must report for
// this line; there must be no others. In it, @name stands for the number of the line marked so.

func mistakesInNames(b *topology.Builder) {
	s := topology.From(b, topology.NewTopic("in put", serde.String, serde.String)) // want `node "in put": topic "in put": only a-z`
	topology.From(b, topology.NewTopic("", serde.String, serde.String))            // want `topic "": the name is empty`
	topology.From(b, topology.NewTopic("..", serde.String, serde.String))          // want `"." and ".." are not allowed`
	long := strings.Repeat("x", 250)
	topology.To(s, topology.NewTopic(long, serde.String, serde.String))                            // want `250 characters, at most 249`
	topology.Filter(s, nil, topology.Named("a/b"))                                                 // want `node "a/b": only a-z` `the function is nil`
	topology.Count(topology.GroupByKey(s), store.NewKeyValue("a b", serde.String, serde.Int64))    // want `store "a b": only a-z`
	topology.Through(s, topology.NewRepartition("a:b", serde.String, serde.String))                // want `repartition topic "a:b": only a-z`
	topology.Process(s, "", newForward)                                                            // want `Process: the name is empty`
	topology.Split(s, topology.When("l/r", func(_, _ string) bool { return true })).Branch("left") // want `branch "l/r": only a-z` `there is no branch "left"`
}

func mistakesInFunctions(b *topology.Builder) {
	s := topology.From(b, in)
	topology.Map[string, string, string, string](s, nil)                                             // want `node "in.map": the function is nil`
	topology.MapValues[string, string, string](s, nil)                                               // want `is nil`
	topology.FlatMap[string, string, string, string](s, nil)                                         // want `is nil`
	topology.FlatMapValues[string, string, string](s, nil)                                           // want `is nil`
	topology.Peek(s, nil)                                                                            // want `is nil`
	topology.SelectKey[string, string, string](s, nil)                                               // want `is nil`
	topology.Split(s, topology.When[string, string]("left", nil))                                    // want `the condition of branch "left" is nil`
	topology.GroupBy(s, byWord, nil)                                                                 // want `is nil`
	topology.Reduce(topology.GroupByKey(s), nil, texts)                                              // want `is nil`
	topology.Aggregate(topology.GroupByKey(s), nil, func(_, _, a string) string { return a }, users) // want `initial value's function is nil`
	topology.Process[string, string, string, string](s, "mine", nil)                                 // want `the processor's function is nil`
	topology.Process(s, "storeless", newForward, nil)                                                // want `the store declaration is nil`
	topology.To(s, out, topology.WithPartitioner(func(int, string, int32) int32 { return 0 }))       // want `the partitioner is a func\(int, string, int32\) int32, not a func\(string, string, int32\) int32`
	topology.From(b, topology.NewTopic[string, string]("raw", nil, nil))                             // want `the key serde of topic "raw" is nil` `the value serde of topic "raw" is nil`
}

func mistakesInSharing(b *topology.Builder) {
	s := topology.From(b, in)                                                                          // @in
	topology.From(b, topology.NewTopic("in", serde.String, serde.Int64))                               // want `topic "in" is declared as topology.Topic\[string,int64\] here and as topology.Topic\[string,string\] at .*:@in`
	topology.From(b, in, topology.Named("other"))                                                      // want `topic "in" is already read by the node "in" at`
	again := topology.From(b, in)                                                                      // the same source
	topology.Peek(topology.Peek(s, ignore), ignore)                                                    // @peek
	topology.Peek(topology.Peek(again, ignore), ignore)                                                // want `node "in.peek": the node at .*:@peek has the same name; give one of them another with topology.Named`
	topology.Count(topology.GroupByKey(s), counts)                                                     // @count
	topology.Count(topology.GroupByKey(s), counts, topology.Named("twice"))                            // want `store "counts" is already maintained by the node "in.count" at .*:@count`
	topology.Process(s, "p", newForward, store.NewKeyValue("counts", serde.String, serde.String))      // want `store "counts" is declared differently at .*:@count`
	keys := topology.SelectKey(s, func(k, v string) string { return k + v })                           // fine
	topology.Count(topology.GroupByKey(topology.MapValues(keys, strings.ToUpper)), counts, named("x")) // want `GroupByKey after the key may have changed` `already maintained`
	topology.GroupBy(s, byWord, func(k, _ string) string { return k })                                 // @groupby
	topology.Through(s, byWord)                                                                        // want `the repartition topic "by-word" is already used at .*:@groupby`
	topology.Merge(s, again)                                                                           // want `the stream "in" is merged with itself`
	other := topology.From(topology.NewBuilder(), in2)
	topology.MergeAs("both", s, other) // want `belong to different builders`
}

func mistakesInTables(b *topology.Builder) {
	t := left(b)
	rekeyed := topology.SelectKey(topology.From(b, in2), func(k, v string) string { return v })
	topology.FilterTable(t, nil)                                                                                            // want `node "in.table.filter": the function is nil`
	topology.FilterNotTable(t, nil)                                                                                         // want `is nil`
	topology.MapTableValues[string, string, string](t, nil)                                                                 // want `is nil`
	topology.TransformTable[string, string, string](t, nil)                                                                 // want `the transformer's function is nil`
	topology.ChangesBy[string, string, string](t, nil)                                                                      // want `is nil`
	topology.FilterTable(t, yes, topology.Named("f"), topology.WithStores(texts))                                           // want `WithStores is for TransformTable only`
	topology.MapTableValues(t, keyed, topology.Named("m"), topology.Materialized(counts))                                   // want `Materialized: the store is a \*store.KeyValue\[string,int64\], not a \*store.KeyValue\[string,string\]`
	topology.FilterTable(t, yes, topology.Named("gg"), topology.Materialized(lefts))                                        // want `store "st-in" is already maintained by the node "in.table"`
	topology.ToTable(rekeyed, texts)                                                                                        // want `the key of "in2.selectkey" may have changed: use Through, or KeyUnchanged, before it`
	topology.VersionedTable(b, in3, store.NewVersioned("v", serde.String, serde.String, -1))                                // want `history`
	topology.GroupTableBy[string, string, string, string](t, grouping, nil)                                                 // want `is nil`
	groups := topology.GroupTableBy(t, rekey, func(k, v string) (string, string) { return v, k }, topology.Named("groups")) // @groups
	topology.GroupTableBy(t, rekey, func(k, v string) (string, string) { return k, v }, topology.Named("again"))            // want `the repartition topic "rekey" is already used at .*:@groups`
	topology.ReduceTable(groups, nil, minus, users)                                                                         // want `the adder is nil`
	topology.AggregateTable(groups, nil, nil, nil, jsonRows)                                                                // want `the initial value's function is nil` `the adder is nil` `the subtractor is nil`
	topology.CountTable(groups, counts)                                                                                     // fine
	topology.CountTable(groups, counts, named("twice"))                                                                     // want `store "counts" is already maintained`
	one := topology.Cogroup(topology.GroupByKey(topology.From(b, in)), func(_, _, row string) string { return row })
	topology.AggregateCogrouped(one.And(one), func() string { return "" }, store.NewKeyValue("co", serde.String, serde.String), named("co")) // want `the stream "in" is cogrouped with itself` `node "co.of.in": the node at .* has the same name`
	topology.Deduplicate(topology.From(b, in), seenIDs, keyOf, 0)                                                                            // want `the span is 0s, it must be a millisecond or more`
}

func keyOf(k, _ string) string { return k }

func mistakesInJoins(b *topology.Builder) {
	s, l, r := topology.From(b, in), left(b), right(b)
	rekeyed := topology.SelectKey(s, func(k, v string) string { return v })
	topology.JoinTable(rekeyed, l, func(_, _, _ string) string { return "" }) // want `node "in.selectkey.join": the key of "in.selectkey" may have changed: use Through, or KeyUnchanged, before it`
	topology.JoinTable[string, string, string, string](s, l, nil)             // want `node "in.join": the function is nil`
	grace := topology.WithGrace(time.Second, delays)
	topology.LeftJoinTable(s, l, leftKeyed, topology.Named("graceful"), grace) // want `WithGrace: the table is not a versioned one`
	versions := topology.VersionedTable(b, in3, prices)
	topology.LeftJoinTable(s, versions, leftKeyed, topology.Named("long"), topology.WithGrace(time.Second, topology.NewJoinBuffer("long-buffer", serde.String, serde.String))) // want `the grace of 1s is longer than the table's history of 50ms`
	topology.LeftJoinTable(s, versions, leftKeyed, topology.Named("odd"), topology.WithGrace(0, topology.NewJoinBuffer("odd-buffer", serde.String, serde.Int64)))              // want `WithGrace: the buffer is a`
	topology.JoinTables[string, string, string, string](l, r, nil, topology.Named("tables"))                                                                                   // want `node "tables": the function is nil`
	other := topology.Table(topology.NewBuilder(), out2, users)
	topology.JoinTables(l, other, plus, topology.Named("strangers"))        // want `the joined tables belong to different builders`
	topology.JoinForeign(l, r, byFirst, nil, plus, topology.Named("nokey")) // want `node "nokey.subscribe": the foreign key's function is nil`
	second := topology.NewForeignKey("second", lefts, rights)
	unkept := topology.JoinForeign(l, r, second, first, plus, topology.Named("unkept"))              // @unkept
	topology.JoinForeign(l, r, second, first, plus, topology.Named("reused"))                        // want `the repartition topic "second-subscription-registration" is already used at .*:@unkept` `the repartition topic "second-subscription-response" is already used` `store "second-subscription-store" is already maintained by the node "unkept.subscriptions"`
	topology.ChangesWithOld(unkept)                                                                  // want `the values before a change are wanted of "unkept": give that join a store with topology.Materialized`
	topology.JoinTable(s, unkept, func(_, _, _ string) string { return "" }, topology.Named("read")) // want `the rows of "unkept" are read here but kept nowhere: give it a store with topology.Materialized`
	bad := topology.NewForeignKey("b/d", lefts, rights)
	topology.JoinForeign(l, r, bad, first, plus, topology.Named("badly")) // want `repartition topic "b/d-subscription-registration": only a-z` `repartition topic "b/d-subscription-response": only a-z` `store "b/d-subscription-store": only a-z`
	topology.GlobalTable(b, out, lefts)                                   // want `store "st-in" is already maintained by the node "in.table"`
	global := topology.GlobalTable(b, out, texts)
	topology.JoinGlobal[string, string, string, string, string](s, global, nil, nil, topology.Named("global")) // want `the join's function is nil` `the key's function is nil`
	topology.Process(s, "reader", newForward, texts)                                                           // fine
	topology.Process(s, "misreader", newForward, store.NewKeyValue("texts", serde.String, serde.Int64))        // want `store "texts" is declared differently at`
	topology.ToTable(s, texts, topology.Named("keeper"))                                                       // want `store "texts" is that of the global table at`
	early := store.NewKeyValue("early", serde.String, serde.String)
	topology.Process(s, "hasty", newForward, early) // @hasty
	topology.GlobalTable(b, out, early)             // want `store "early" is used by the node "hasty" at .*:@hasty: declare the global table before what reads it`
}

func noMistakeInSharing(b *topology.Builder) {
	s := topology.From(b, in)
	topology.Process(s, "one", newForward, store.NewKeyValue("mine", serde.String, serde.String))
	topology.Process(s, "two", newForward, store.NewKeyValue("mine", serde.String, serde.String))
	topology.Process(s, "three", newForward, counts, texts)
	topology.Count(topology.GroupByKey(s), counts)
}

func mistakeOfLoop(b *topology.Builder) {
	byKey := topology.Through(topology.From(b, in), rekey) // @loop
	wrapped(byKey)                                         // the error names the line inside
}

func wrapped(s topology.Stream[string, string]) {
	topology.To(s, in) // want `node "rekey.to.in": topic "in" is written by a stream that comes from it, read at .*:@loop`
}

func ignore(_, _ string) {}

func named(name string) topology.TableOption { return topology.Named(name) }

func TestEveryMistakeIsReportedWithItsLine(t *testing.T) {
	t.Parallel()
	want := wants(t, "mistakes_test.go")
	for _, declare := range []func(*topology.Builder){mistakesInNames, mistakesInFunctions, mistakesInSharing, mistakeOfLoop, mistakesInTables, mistakesInJoins} {
		b := topology.NewBuilder()
		declare(b)
		_, err := b.Build()
		for _, e := range buildErrors(t, err) {
			if filepath.Base(e.File) != "mistakes_test.go" {
				t.Errorf("wrong file: %v", e)
			}
			match(t, want, e)
		}
	}
	for line, patterns := range want {
		t.Errorf("line %d: not reported: %q", line, patterns)
	}
}

func TestNoMistake(t *testing.T) {
	t.Parallel()
	b := topology.NewBuilder()
	noMistakeInSharing(b)
	if _, err := b.Build(); err != nil {
		t.Error(err)
	}
}

func TestTopologyWithoutSource(t *testing.T) {
	t.Parallel()
	b := topology.NewBuilder()
	_, err := b.Build()
	if e := buildErrors(t, err); len(e) != 1 || filepath.Base(e[0].File) != "mistakes_test.go" || e[0].Err.Error() != "the topology reads no topic" {
		t.Errorf("got %v", err)
	}
}

// match strikes out the pattern that an error fulfils.
func match(t *testing.T, want map[int][]string, e *topology.BuildError) {
	t.Helper()
	for i, p := range want[e.Line] {
		if regexp.MustCompile(p).MatchString(e.Error()) {
			if want[e.Line] = append(want[e.Line][:i:i], want[e.Line][i+1:]...); len(want[e.Line]) == 0 {
				delete(want, e.Line)
			}
			return
		}
	}
	t.Errorf("unexpected: %v", e)
}

// wants reads the expectations from a file of tests.
func wants(t *testing.T, path string) map[int][]string {
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines, want, quoted := strings.Split(string(source), "\n"), map[int][]string{}, regexp.MustCompile("`([^`]+)`")
	for i, line := range lines {
		_, comment, ok := strings.Cut(line, "// want ")
		for _, q := range quoted.FindAllStringSubmatch(comment, -1) {
			if ok && strings.HasPrefix(line, "\t") {
				want[i+1] = append(want[i+1], numbered(lines, q[1]))
			}
		}
	}
	return want
}

// numbered replaces @name by the number of the line that ends in the comment @name.
func numbered(lines []string, pattern string) string {
	return regexp.MustCompile(`@\w+`).ReplaceAllStringFunc(pattern, func(name string) string {
		line := slices.IndexFunc(lines, func(line string) bool { return strings.HasSuffix(line, "// "+name) })
		return strconv.Itoa(line+1) + `\b`
	})
}

func buildErrors(t *testing.T, err error) (list []*topology.BuildError) {
	t.Helper()
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("not a joined error: %v", err)
	}
	for _, err := range joined.Unwrap() {
		var e *topology.BuildError
		if !errors.As(err, &e) {
			t.Fatalf("not a BuildError: %v", err)
		}
		list = append(list, e)
	}
	return list
}
