package testdriver_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/bolt"
	"github.com/millrace-streams/millrace/store/memory"
	"github.com/millrace-streams/millrace/store/storetest"
	"github.com/millrace-streams/millrace/testdriver"
	"github.com/millrace-streams/millrace/topology"
)

func build(t *testing.T, declare func(b *topology.Builder)) *topology.Topology {
	t.Helper()
	b := topology.NewBuilder()
	declare(b)
	topo, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var events = topology.NewTopic("events", serde.String, serde.String)

func at(key, value string, ts int64) processor.Record[string, string] {
	return processor.Record[string, string]{Key: key, Value: value, Timestamp: ts}
}

func TestFieldReport57(t *testing.T) {
	t.Parallel()
	windowed := topology.Tumbling(10 * time.Millisecond).Grace(90 * time.Millisecond)
	gap := topology.Session(5*time.Millisecond, 90*time.Millisecond)
	windows := store.NewWindow("windows", serde.String, serde.Int64, windowed.Store())
	sessions := store.NewSession("sessions", serde.String, serde.Int64, gap.Store())
	topo := build(t, func(b *topology.Builder) {
		byKey := topology.GroupByKey(topology.From(b, events))
		topology.CountWindows(topology.WindowedBy(byKey, windowed), windows)
		topology.CountSessions(topology.SessionsBy(byKey, gap), sessions)
	})
	for name, opener := range map[string]store.Opener{"memory": memory.Opener{}, "bolt": bolt.Opener{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := testdriver.New(t, topo, testdriver.DefaultPartitions(3), testdriver.Backend(opener))
			in := testdriver.Input(d, events)
			in.SendTo(0, at("a", "", 0))
			in.SendTo(1, at("b", "", 10))
			in.SendTo(2, at("c", "", 20))
			storetest.FieldReport57(t, windows.Query(d), sessions.Query(d))
			d.Crash()
			d.Restart()
			storetest.FieldReport57(t, windows.Query(d), sessions.Query(d))
		})
	}
}

// keeper keeps what it sees in every kind of state.
type keeper struct {
	ctx    *processor.Context[string, string]
	value  *store.ValueStateView[string, string]
	byTime *store.MapStateView[string, int64, string]
	list   *store.ListStateView[string, string]
	brief  *store.KeyValueView[string, string]
}

var (
	newest = store.NewValueState("newest", serde.String, serde.String)
	byTime = store.NewMapState("by-time", serde.String, serde.Int64, serde.String)
	list   = store.NewListState("list", serde.String, serde.String)
	brief  = store.NewKeyValue("brief", serde.String, serde.String, store.WithTTL(100*time.Millisecond))
)

func (k *keeper) Init(ctx *processor.Context[string, string]) error {
	var errs [4]error
	k.ctx = ctx
	k.value, errs[0] = newest.View(ctx)
	k.byTime, errs[1] = byTime.View(ctx)
	k.list, errs[2] = list.View(ctx)
	k.brief, errs[3] = brief.View(ctx)
	return errors.Join(errs[:]...)
}

func (k *keeper) Process(r processor.Record[string, string]) error {
	return errors.Join(
		k.value.SetKey(r.Key), k.value.Update(r.Value), k.byTime.SetKey(r.Key), k.byTime.Put(r.Timestamp, r.Value),
		k.list.SetKey(r.Key), k.list.Append(r.Value), k.brief.Put(r.Key, r.Value),
	)
}

func TestQueriesOfStatesAndVersions(t *testing.T) {
	t.Parallel()
	versions := store.NewVersioned("versions", serde.String, serde.String, time.Second)
	prices := topology.NewTopic("prices", serde.String, serde.String)
	topo := build(t, func(b *topology.Builder) {
		topology.Process(topology.From(b, events), "keeper",
			func() processor.Processor[string, string, string, string] { return &keeper{} }, newest, byTime, list, brief)
		topology.VersionedTable(b, prices, versions)
	})
	d := testdriver.New(t, topo, testdriver.DefaultPartitions(3))
	in, priced := testdriver.Input(d, events), testdriver.Input(d, prices)
	in.SendAll(at("a", "1", 1), at("b", "2", 2), at("a", "3", 3))
	priced.SendAll(at("x", "ten", 10), at("x", "twenty", 20))

	value, ok, err := newest.Query(d).Get("a")
	noError(t, err)
	want(t, []any{value, ok}, []any{"3", true})
	value, ok, err = byTime.Query(d).Get("a", 1)
	noError(t, err)
	want(t, []any{value, ok}, []any{"1", true})
	entries := map[int64]string{}
	noError(t, byTime.Query(d).Each("a", func(at int64, v string) bool { entries[at] = v; return true }))
	want(t, entries, map[int64]string{1: "1", 3: "3"})
	values, err := list.Query(d).Values("a")
	noError(t, err)
	want(t, values, []string{"1", "3"})

	version, ok, err := versions.Query(d).GetAsOf("x", 19)
	noError(t, err)
	want(t, []any{version, ok}, []any{store.Version[string]{Value: "ten", From: 10, To: 20}, true})
	version, ok, err = versions.Query(d).Get("x")
	noError(t, err)
	want(t, []any{version, ok}, []any{store.Version[string]{Value: "twenty", From: 20, To: store.NoEnd}, true})
	var history []string
	noError(t, versions.Query(d).ReverseHistory("x", 0, 100, func(v store.Version[string]) bool {
		history = append(history, v.Value)
		return true
	}))
	want(t, history, []string{"twenty", "ten"})
	noError(t, versions.Query(d).History("x", 15, 15, func(v store.Version[string]) bool { history = append(history, v.Value); return false }))
	want(t, history, []string{"twenty", "ten", "ten"})
}

// A row with a TTL is seen as of the stream time that is committed: not of that of records in work, and again after a crash.
func TestQueryGoesByTheCommittedStreamTime(t *testing.T) {
	t.Parallel()
	topo := build(t, func(b *topology.Builder) {
		topology.Process(topology.From(b, events), "keeper",
			func() processor.Processor[string, string, string, string] { return &keeper{} }, newest, byTime, list, brief)
	})
	d := testdriver.New(t, topo, testdriver.Manual())
	in, q := testdriver.Input(d, events), brief.Query(d)
	in.SendAll(at("a", "1", 1000))
	d.Settle()
	shows := func(what string, key string, want bool) {
		t.Helper()
		if _, ok, err := q.Get(key); ok != want || err != nil {
			t.Errorf("%s: %s: %v, %v", what, key, ok, err)
		}
	}
	shows("committed", "a", true)
	in.SendAll(at("b", "2", 1101))
	d.Turn() // it is processed, its commit is under way
	shows("in work", "a", true)
	shows("in work", "b", false)
	d.Settle()
	shows("after the commit", "a", false)
	shows("after the commit", "b", true)
	d.Crash()
	d.Restart()
	d.Settle()
	shows("after a crash", "a", false)
	shows("after a crash", "b", true)
}

// What is not committed is not seen, whatever becomes of it.
func TestQueriesSeeWhatIsCommitted(t *testing.T) {
	t.Parallel()
	d := testdriver.New(t, words(t), testdriver.Manual())
	lines, q := testdriver.Input(d, Lines), Counts.Query(d)
	if _, _, err := q.Get("a"); !errors.Is(err, testdriver.ErrNotRunning) {
		t.Errorf("before the start: %v", err)
	}
	lines.Send("", "a")
	d.Settle()
	lines.Send("", "a a a a")
	seen := map[int64]bool{}
	for !seen[5] {
		d.Turn()
		n, ok, err := q.Get("a")
		noError(t, err)
		want(t, ok, true)
		seen[n] = true
	}
	want(t, seen, map[int64]bool{1: true, 5: true})
	d.Crash()
	if _, _, err := q.Get("a"); !errors.Is(err, testdriver.ErrNotRunning) {
		t.Errorf("crashed: %v", err)
	}
	if err := q.All(func(string, int64) bool { return true }); !errors.Is(err, testdriver.ErrNotRunning) {
		t.Errorf("crashed: %v", err)
	}
}

// A store that is not the topology's, or is another kind of store there, is refused.
func TestQueryOfAnUnknownStore(t *testing.T) {
	t.Parallel()
	d := testdriver.New(t, words(t))
	if _, ok, err := Counts.Query(d).Get("a"); ok || err != nil { // it starts with the first query
		t.Errorf("%v, %v", ok, err)
	}
	for _, err := range []error{
		store.NewKeyValue("others", serde.String, serde.Int64).Query(d).All(nil),
		store.NewKeyValue("counts", serde.String, serde.String).Query(d).All(nil),
		store.NewKeyValue("counts", serde.String, serde.Int64, store.WithTTL(time.Second)).Query(d).All(nil),
	} {
		if !errors.Is(err, processor.ErrUnknownStore) {
			t.Errorf("got %v", err)
		}
	}
	_, ok, err := store.NewKeyValue("counts", serde.String, serde.Int64).Query(d).Get("a")
	if ok || err != nil {
		t.Errorf("declared again: %v, %v", ok, err)
	}
}

// Records that come too late are told of, once for each closed window.
func TestLate(t *testing.T) {
	t.Parallel()
	windowed := topology.Hopping(20*time.Millisecond, 10*time.Millisecond)
	windows := store.NewWindow("windows", serde.String, serde.Int64, windowed.Store())
	d := testdriver.New(t, build(t, func(b *topology.Builder) {
		topology.CountWindows(topology.WindowedBy(topology.GroupByKey(topology.From(b, events)), windowed), windows, topology.Named("count"))
	}))
	testdriver.Input(d, events).SendAll(at("a", "", 100), at("a", "", 15), at("a", "", 95))
	var got []string
	for _, l := range d.Late() {
		got = append(got, fmt.Sprintf("%s %s %s-%d@%d [%d,%d) %d/%d", l.Task, l.Node, l.Topic, l.Partition, l.Offset, l.Start, l.End, l.Timestamp, l.StreamTime))
	}
	want(t, got, []string{"0_0 count events-0@1 [0,20) 15/100", "0_0 count events-0@1 [10,30) 15/100", "0_0 count events-0@2 [80,100) 95/100"})
}
