package topology_test

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/bolt"
	"github.com/millrace-streams/millrace/testdriver"
	"github.com/millrace-streams/millrace/topology"
)

type windowed = store.Windowed[string]

var (
	lefties  = topology.NewTopic("left", serde.String, serde.String)
	righties = topology.NewTopic("right", serde.String, serde.String)
)

const ms = time.Millisecond

// windowOut shows a table of windows in the topic out, keys as Java shows them.
func windowOut[V any](t topology.KTable[windowed, V], show func(V) string) {
	changes := topology.MapValues(topology.Changes(t), show)
	named := topology.Process(changes, "shown", func() processor.Processor[windowed, string, string, string] { return &shower{} })
	topology.To(named, out)
}

type shower struct {
	*processor.Context[string, string]
}

func (s *shower) Init(ctx *processor.Context[string, string]) error {
	s.Context = ctx
	return nil
}

func (s *shower) Process(r processor.Record[windowed, string]) error {
	return s.Forward(processor.Record[string, string]{
		Key: fmt.Sprintf("%s@%d-%d", r.Key.Key, r.Key.Start, r.Key.End), Value: r.Value, NullValue: r.NullValue,
		Timestamp: r.Timestamp, Headers: r.Headers,
	})
}

func zero() string { return "0" }

func appendTo(_, v, row string) string { return row + "," + v }

func bar(_, a, b string) string { return a + "|" + b }

func windows(b *topology.Builder, w topology.Windowing) topology.WindowedStream[string, string] {
	return topology.WindowedBy(topology.GroupByKey(topology.From(b, in)), w)
}

func sessions(b *topology.Builder, w topology.SessionWindows) topology.SessionStream[string, string] {
	return topology.SessionsBy(topology.GroupByKey(topology.From(b, in)), w)
}

func windowStore[V any](w topology.Windowing, values serde.Serde[V]) *store.Window[string, V] {
	return store.NewWindow("windows", serde.String, values, w.Store())
}

func countedIn(w topology.Windowing, opts ...topology.TableOption) func(*topology.Builder) topology.KTable[windowed, int64] {
	return func(b *topology.Builder) topology.KTable[windowed, int64] {
		return topology.CountWindows(windows(b, w), windowStore(w, serde.Int64), opts...)
	}
}

func aggregatedIn(w topology.Windowing, opts ...topology.TableOption) func(*topology.Builder) topology.KTable[windowed, string] {
	return func(b *topology.Builder) topology.KTable[windowed, string] {
		return topology.AggregateWindows(windows(b, w), zero, appendTo, windowStore(w, serde.String), opts...)
	}
}

func reducedIn(w topology.Windowing, opts ...topology.TableOption) func(*topology.Builder) topology.KTable[windowed, string] {
	return func(b *topology.Builder) topology.KTable[windowed, string] {
		return topology.ReduceWindows(windows(b, w), plus, windowStore(w, serde.String), opts...)
	}
}

// forgetting deletes the row at a value that ends in 0.
func forgetting(w topology.Windowing) func(*topology.Builder) topology.KTable[windowed, *string] {
	return func(b *topology.Builder) topology.KTable[windowed, *string] {
		init := func() *string { return new("0") }
		fn := func(_, v string, row *string) *string {
			if strings.HasSuffix(v, "0") {
				return nil
			}
			return new(*row + "," + v)
		}
		return topology.AggregateWindows(windows(b, w), init, fn, windowStore(w, pointers))
	}
}

func sessionStore[V any](w topology.SessionWindows, values serde.Serde[V]) *store.Session[string, V] {
	return store.NewSession("windows", serde.String, values, w.Store())
}

func sessionsAggregated(w topology.SessionWindows) func(*topology.Builder) topology.KTable[windowed, string] {
	return func(b *topology.Builder) topology.KTable[windowed, string] {
		return topology.AggregateSessions(sessions(b, w), zero, appendTo, bar, sessionStore(w, serde.String))
	}
}

func closing[V any](declare func(*topology.Builder) topology.KTable[windowed, V], values serde.Serde[V]) func(*topology.Builder) topology.KTable[windowed, V] {
	buffer := topology.NewBuffer("buffer", store.SessionWindowed(serde.String), values, topology.BufferOptions{})
	return func(b *topology.Builder) topology.KTable[windowed, V] {
		return topology.Suppress(declare(b), topology.UntilWindowCloses(buffer))
	}
}

func limiting(limit time.Duration, o topology.BufferOptions) func(*topology.Builder) topology.KTable[windowed, int64] {
	buffer := topology.NewBuffer("buffer", store.SessionWindowed(serde.String), serde.Int64, o)
	return func(b *topology.Builder) topology.KTable[windowed, int64] {
		return topology.Suppress(countedIn(ten.Grace(2*ms))(b), topology.UntilTimeLimit(limit, buffer))
	}
}

func shownIn[V any](declare func(*topology.Builder) topology.KTable[windowed, V], show func(V) string) func(*topology.Builder) {
	return func(b *topology.Builder) { windowOut(declare(b), show) }
}

func tilde(v string, exists bool) string {
	if !exists {
		return "~"
	}
	return v
}

// streamJoins are the three joins of streams.
func streamJoins(kind string, w topology.JoinWindows) func(*topology.Builder) {
	lefts, rights := store.NewWindow("lefts", serde.String, serde.String, w.Store()), store.NewWindow("rights", serde.String, serde.String, w.Store())
	outer := topology.NewOuterStore("outer", serde.String, serde.String, serde.String)
	both := func(_ string, l string, hasL bool, r string, hasR bool) string {
		return tilde(l, hasL) + "/" + tilde(r, hasR)
	}
	return func(b *topology.Builder) {
		l, r := topology.From(b, lefties), topology.From(b, righties)
		var joined topology.Stream[string, string]
		switch kind {
		case "inner":
			joined = topology.JoinStreams(l, r, w, func(k, l, r string) string { return both(k, l, true, r, true) }, lefts, rights)
		case "left":
			joined = topology.LeftJoinStreams(l, r, w, func(k, l, r string, ok bool) string { return both(k, l, true, r, ok) }, lefts, rights, outer)
		default:
			joined = topology.OuterJoinStreams(l, r, w, both, lefts, rights, outer)
		}
		topology.To(joined, out)
	}
}

var (
	ten      = topology.Tumbling(10 * ms)
	byFour   = topology.Hopping(10*ms, 4*ms).Grace(2 * ms)
	byFive   = topology.Hopping(10*ms, 5*ms)
	within   = topology.Within(10 * ms)
	after100 = topology.WithinBeforeAfter(0, 100*ms)
)

// windowPeers are the topologies of testdata/peer-windows.txt.
var windowPeers = map[string]func(*topology.Builder){
	"tumbling count":          shownIn(countedIn(ten), number),
	"tumbling count grace 1":  shownIn(countedIn(ten.Grace(ms)), number),
	"tumbling reduce grace 5": shownIn(reducedIn(ten.Grace(5*ms)), same),
	"tumbling forget grace 5": shownIn(forgetting(ten.Grace(5*ms)), text0),
	"hopping count":           shownIn(countedIn(byFour), number),
	"hopping aggregate close": shownIn(aggregatedIn(byFive.Grace(3*ms), topology.EmitOnClose()), same),
	"tumbling count close":    shownIn(countedIn(ten, topology.EmitOnClose()), number),

	"sliding aggregate":             shownIn(aggregatedIn(topology.Sliding(10*ms, 0)), same),
	"sliding aggregate grace 8":     shownIn(aggregatedIn(topology.Sliding(10*ms, 8*ms)), same),
	"sliding count close":           shownIn(countedIn(topology.Sliding(10*ms, 2*ms), topology.EmitOnClose()), number),
	"sliding early":                 shownIn(aggregatedIn(topology.Sliding(10*ms, 5*ms)), same),
	"sliding reduce early grace 60": shownIn(reducedIn(topology.Sliding(10*ms, 60*ms)), same),

	"session aggregate":          shownIn(sessionsAggregated(topology.Session(10*ms, 0)), same),
	"session aggregate grace 15": shownIn(sessionsAggregated(topology.Session(10*ms, 15*ms)), same),
	"session count": shownIn(func(b *topology.Builder) topology.KTable[windowed, int64] {
		w := topology.Session(10*ms, 2*ms)
		return topology.CountSessions(sessions(b, w), sessionStore(w, serde.Int64))
	}, number),
	"session reduce close": shownIn(func(b *topology.Builder) topology.KTable[windowed, string] {
		w := topology.Session(10*ms, 2*ms)
		return topology.ReduceSessions(sessions(b, w), plus, sessionStore(w, serde.String), topology.EmitOnClose())
	}, same),

	"suppress tumbling":              shownIn(closing(countedIn(ten.Grace(2*ms)), serde.Int64), number),
	"suppress hopping":               shownIn(closing(reducedIn(byFive.Grace(ms)), serde.String), same),
	"suppress sliding":               shownIn(closing(aggregatedIn(topology.Sliding(10*ms, 2*ms)), serde.String), same),
	"suppress session":               shownIn(closing(sessionsAggregated(topology.Session(10*ms, 2*ms)), serde.String), same),
	"suppress for 5":                 shownIn(limiting(5*ms, topology.BufferOptions{}), number),
	"suppress for 30 with 2 records": shownIn(limiting(30*ms, topology.BufferOptions{MaxRecords: 2, EmitEarly: true}), number),

	"join": streamJoins("inner", within), "left join": streamJoins("left", within), "outer join": streamJoins("outer", within),
	"join grace 3": streamJoins("inner", within.Grace(3*ms)), "left join grace 3": streamJoins("left", within.Grace(3*ms)),
	"outer join grace 3": streamJoins("outer", within.Grace(3*ms)),
	"join after 100":     streamJoins("inner", after100), "left join after 100": streamJoins("left", after100),
	"outer join after 100":  streamJoins("outer", after100),
	"join before 100":       streamJoins("inner", topology.WithinBeforeAfter(100*ms, 0).Grace(5*ms)),
	"left join before 100":  streamJoins("left", topology.WithinBeforeAfter(100*ms, 0).Grace(5*ms)),
	"outer join before 100": streamJoins("outer", topology.WithinBeforeAfter(100*ms, 0).Grace(5*ms)),
}

// peerSections reads a file of what Kafka Streams has answered.
func peerSections(path string, fn func(name string, lines []string)) {
	for _, section := range strings.Split(string(must(os.ReadFile(path))), "\n== ")[1:] {
		name, body, _ := strings.Cut(section, "\n")
		fn(name, strings.Split(strings.TrimSpace(body), "\n"))
	}
}

// TestWindowsSameAsKafkaStreams compares record by record, with every update forwarded at once.
func TestWindowsSameAsKafkaStreams(t *testing.T) {
	t.Parallel()
	peerSections("testdata/peer-windows.txt", func(name string, lines []string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			comparePeer(t, name, lines, func(*testdriver.Driver) {})
		})
	})
}

// TestWindowsSurviveRestarts compares record by record while the process is stopped or killed now and then, and comes back with
// its local state or without, on either backend.
func TestWindowsSurviveRestarts(t *testing.T) {
	t.Parallel()
	peerSections("testdata/peer-windows.txt", func(name string, lines []string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := fnv.New64()
			h.Write([]byte(name))
			rng := rand.New(rand.NewPCG(h.Sum64(), 1))
			restart := func(d *testdriver.Driver) {
				if rng.IntN(2) == 0 {
					d.Crash()
				}
				switch rng.IntN(6) {
				case 0:
					d.Restart()
				case 1:
					d.RestartEmpty()
				default:
					if _, crashed := d.Crashed(); crashed {
						d.Restart()
					}
				}
			}
			comparePeer(t, name, lines, restart)
			comparePeer(t, name, lines, restart, testdriver.Backend(bolt.Opener{}), testdriver.StateDir(t.TempDir()))
		})
	})
}

func comparePeer(t *testing.T, name string, lines []string, before func(*testdriver.Driver), opts ...testdriver.Option) {
	t.Helper()
	declare := windowPeers[name]
	if declare == nil {
		t.Fatal("there is no such topology")
	}
	b := topology.NewBuilder()
	declare(b)
	d := testdriver.New(t, must(b.Build()), opts...)
	written := testdriver.Output(d, out)
	for _, line := range lines {
		before(d)
		question, answer, _ := strings.Cut(line, " -> ")
		topic, in := question1(question)
		testdriver.Input(d, topology.NewTopic(topic, serde.Bytes, serde.Bytes)).SendRaw(0, processor.Raw{Key: in.key, Value: in.value, Timestamp: in.ts})
		if got := strings.Join(readPeer(written), " "); got != answer {
			t.Errorf("%s: got %s, want %s", question, got, answer)
		}
	}
}

func readPeer(o *testdriver.OutputTopic[string, string]) (lines []string) {
	for _, r := range o.ReadAll() {
		key, value := r.Key, r.Value
		if r.NullKey {
			key = "null"
		}
		if r.NullValue {
			value = "null"
		}
		lines = append(lines, fmt.Sprintf("%s=%s@%d", key, value, r.Timestamp))
	}
	return lines
}
