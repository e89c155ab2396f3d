package topology_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// See mistakes_test.go for how these are read.

func mistakesInWindows(b *topology.Builder) {
	g := topology.GroupByKey(topology.From(b, in))
	count := func(name string, w topology.Windowing, o store.WindowOptions, opts ...topology.TableOption) {
		topology.CountWindows(topology.WindowedBy(g, w), store.NewWindow(name, serde.String, serde.Int64, o), append(opts, named(name))...) // want `node "a": the window's size is 0s` `node "a": store "a" does not fit` `node "b": the window's size is -10ms` `node "b": store "b" does not fit` `node "c": the windows advance by 11ms, it must be .* at most their size, 10ms` `node "d": the grace is -1ms, it must not be negative` `node "e": store "e" does not fit: its retention is 11ms, 12ms is needed` `node "f": store "f" does not fit: its window size is 20ms, the windows' is 10ms` `node "g": store "g" does not fit: it must be declared with RetainDuplicates false` `node "h": the difference is 0s` `node "h": store "h" does not fit` `node "i": .* its retention is 22ms, 23ms is needed` `node "j": the windows advance by 0s` `node "k": WallClockClose waits for 0s` `node "k": WallClockClose needs EmitOnClose` `node "l": the windows is nil` `node "m": store: m: the window size`
	}
	count("a", topology.Tumbling(0), ten.Store())
	count("b", topology.Tumbling(-10*ms), ten.Store())
	count("c", topology.Hopping(10*ms, 11*ms), ten.Store())
	count("d", ten.Grace(-ms), ten.Store())
	count("e", ten.Grace(2*ms), store.WindowOptions{Size: 10 * ms, Retention: 11 * ms})
	count("f", ten, store.WindowOptions{Size: 20 * ms, Retention: 20 * ms})
	count("g", ten, store.WindowOptions{Size: 10 * ms, RetainDuplicates: true})
	count("h", topology.Sliding(0, 0), ten.Store())
	count("i", topology.Sliding(10*ms, 3*ms), store.WindowOptions{Size: 10 * ms, Retention: 22 * ms})
	count("j", topology.Hopping(10*ms, 0), ten.Store())
	count("k", ten, ten.Store(), topology.WallClockClose(0))
	count("l", nil, ten.Store())
	count("m", topology.Tumbling(1500*time.Microsecond), topology.Tumbling(1500*time.Microsecond).Store())
	topology.CountWindows(topology.WindowedBy(g, ten), nil)                                                                                // want `node "in.countwindows": the store declaration is nil`
	topology.ReduceWindows(topology.WindowedBy(g, ten), nil, store.NewWindow("n", serde.String, serde.String, ten.Store()))                // want `node "in.reducewindows": the function is nil`
	topology.AggregateWindows[string, string, string](topology.WindowedBy(g, ten), nil, nil, windowStore(ten, serde.String))               // want `the initial value's function is nil` `the function is nil`
	topology.CountWindows(topology.WindowedBy(g, ten), store.NewWindow[string, int64]("o", nil, serde.Int64, ten.Store()), named("o"))     // want `the key serde of store "o" is nil`
	topology.LateRecords(topology.WindowedBy(g, ten))                                                                                      // want `LateRecords comes before the aggregation`
	topology.From(b, in2.WithMaxAhead(-time.Second))                                                                                       // want `topic "in2": WithMaxAhead allows -1s`
	topology.CountWindows(topology.WindowedBy(g, ten), store.NewWindow("windows", serde.String, serde.Int64, ten.Store()), named("twice")) // want `store "windows" is declared differently` `store "windows" is already maintained`
}

func mistakesInSessions(b *topology.Builder) {
	g := topology.GroupByKey(topology.From(b, in))
	gap := topology.Session(10*ms, 2*ms)
	kept := func(name string, retention time.Duration) *store.Session[string, int64] {
		return store.NewSession(name, serde.String, serde.Int64, store.SessionOptions{Retention: retention})
	}
	topology.CountSessions(topology.SessionsBy(g, topology.Session(-ms, 0)), kept("a", ms), named("a"))                       // want `the session gap is -1ms, it must not be negative`
	topology.CountSessions(topology.SessionsBy(g, topology.Session(ms, -ms)), kept("b", ms), named("b"))                      // want `the grace is -1ms`
	topology.CountSessions(topology.SessionsBy(g, gap), kept("c", 11*ms), named("c"))                                         // want `store "c" does not fit: its retention is 11ms, 12ms is needed`
	topology.CountSessions(topology.SessionsBy(g, gap), kept("d", 12*ms), named("d"), topology.EmitOnClose())                 // want `store "d" does not fit: its retention is 12ms, 13ms is needed`
	topology.CountSessions(topology.SessionsBy(g, gap), nil, named("e"))                                                      // want `the store declaration is nil`
	topology.CountSessions(topology.SessionsBy(g, gap), kept("f", 0), named("f"))                                             // want `store: f: the retention` `store "f" does not fit`
	merge := topology.AggregateSessions[string, string, string]                                                               // of which every function is missing
	merge(topology.SessionsBy(g, gap), nil, nil, nil, sessionStore(gap, serde.String))                                        // want `initial value's function is nil` `: the function is nil` `the merging function is nil`
	topology.ReduceSessions(topology.SessionsBy(g, gap), nil, store.NewSession("g", serde.String, serde.String, gap.Store())) // want `the function is nil`
	c := topology.Cogroup(g, func(_, _ string, n int64) int64 { return n })
	zero := func() int64 { return 0 }
	topology.AggregateCogroupedSessions(c, gap, zero, nil, kept("h", 12*ms), named("h"), topology.EmitOnClose())              // want `the merging function is nil` `EmitOnClose: the streams have no stream time in common` `13ms is needed`
	topology.AggregateCogroupedWindows(c, ten, nil, store.NewWindow("i", serde.String, serde.Int64, ten.Store()), named("i")) // want `initial value's function is nil`
}

func mistakesInSuppress(b *topology.Builder) {
	t := left(b)
	buffer := func(name string, o topology.BufferOptions) *topology.Buffer[string, string] {
		return topology.NewBuffer(name, serde.String, serde.String, o)
	}
	topology.Suppress(t, topology.UntilTimeLimit(-ms, buffer("a", topology.BufferOptions{})), named("a"))                                      // want `the time limit is -1ms`
	topology.Suppress(t, topology.UntilTimeLimit[string, string](ms, nil), named("b"))                                                         // want `the buffer is nil`
	topology.Suppress(t, topology.UntilTimeLimit(ms, buffer("c", topology.BufferOptions{MaxRecords: -1})), named("c"))                         // want `buffer "c": a bound is negative`
	topology.Suppress(t, topology.UntilTimeLimit(ms, buffer("d", topology.BufferOptions{})), named("d"), topology.EmitOnClose())               // want `EmitOnClose is an option of aggregations`
	topology.Suppress(t, topology.UntilTimeLimit(ms, buffer("e", topology.BufferOptions{})), named("e"), topology.WallClockClose(ms))          // want `WallClockClose needs UntilWindowCloses`
	topology.Suppress(t, topology.UntilTimeLimit(ms, topology.NewBuffer[string, string]("f", nil, nil, topology.BufferOptions{})), named("f")) // want `the key serde of buffer "f" is nil` `the value serde of buffer "f" is nil`
	keyed := topology.NewTopic("by-window", store.TimeWindowed(serde.String, 10*ms), serde.String)
	read := topology.Table(b, keyed, store.NewKeyValue("read", keyed.KeySerde(), serde.String))
	windows := topology.NewBuffer("g", keyed.KeySerde(), serde.String, topology.BufferOptions{EmitEarly: true})
	topology.Suppress(read, topology.UntilWindowCloses(windows)) // want `the table "by-window.table" does not come from an aggregation in windows` `UntilWindowCloses cannot emit early`
}

func mistakesInStreamJoins(b *topology.Builder) {
	l, r := topology.From(b, lefties), topology.From(b, righties)
	kept := func(name string, o store.WindowOptions) *store.Window[string, string] {
		return store.NewWindow(name, serde.String, serde.String, o)
	}
	join := func(_, l, r string) string { return l + r }
	topology.JoinStreams(l, r, topology.WithinBeforeAfter(5*ms, -6*ms), join, kept("a", within.Store()), kept("b", within.Store()), topology.Named("j1")) // want `the join window reaches from 5ms before to -6ms after: that is nothing` `store "a" does not fit` `store "b" does not fit`
	topology.JoinStreams(l, r, within.Grace(-ms), join, kept("c", within.Store()), kept("d", within.Store()), topology.Named("j2"))                       // want `the grace is -1ms`
	topology.JoinStreams(l, r, within, join, kept("e", ten.Store()), kept("f", within.Store()), topology.Named("j3"))                                     // want `store "e" does not fit: its window size is 10ms, the windows' is 20ms\nits retention is 10ms, 20ms is needed\nit must be declared with RetainDuplicates true`
	topology.JoinStreams[string, string, string, string](l, r, within, nil, nil, kept("g", within.Store()), topology.Named("j4"))                         // want `node "j4": the function is nil` `the store declaration is nil`
	topology.LeftJoinStreams(l, r, within, leftKeyed, kept("h", within.Store()), kept("i", within.Store()), nil, topology.Named("j5"))                    // want `the outer store is nil`
	moved := topology.SelectKey(l, func(_, v string) string { return v })
	topology.JoinStreams(moved, r, within, join, kept("k", within.Store()), kept("l", within.Store()), topology.Named("j6")) // want `the key of "left.selectkey" may have changed`
	other := topology.From(topology.NewBuilder(), righties)
	topology.JoinStreams(l, other, within, join, kept("m", within.Store()), kept("n", within.Store()), topology.Named("j7")) // want `belong to different builders`
	topology.JoinStreams(l, r, within, join, kept("m", within.Store()), kept("o", within.Store()), topology.Named("j8"))     // want `store "m" is already maintained`
}

func TestMistakesInWindowsAreReportedWithTheirLines(t *testing.T) {
	t.Parallel()
	const file = "window_mistakes_test.go"
	want := wants(t, file)
	for _, declare := range []func(*topology.Builder){mistakesInWindows, mistakesInSessions, mistakesInSuppress, mistakesInStreamJoins} {
		b := topology.NewBuilder()
		declare(b)
		_, err := b.Build()
		for _, e := range buildErrors(t, err) {
			if filepath.Base(e.File) == file || filepath.Base(e.File) == "window_peer_test.go" {
				match(t, want, e)
			} else {
				t.Errorf("wrong file: %v", e)
			}
		}
	}
	for line, patterns := range want {
		t.Errorf("line %d: not reported: %q", line, patterns)
	}
}
