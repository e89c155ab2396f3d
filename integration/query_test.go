package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace-streams/millrace"
	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/storetest"
	"github.com/millrace-streams/millrace/topology"
)

// The stores of the topologies here, as queries name them.
var (
	countStore  = store.NewKeyValue("counts", serde.String, serde.Int64)
	ledgerStore = store.NewKeyValue("ledger", serde.String, serde.String)
)

// onBackends runs a test on each backend.
func onBackends(t *testing.T, test func(t *testing.T, cfg millrace.Config)) {
	for name, opener := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := config(t)
			cfg.Store = opener
			test(t, cfg)
		})
	}
}

// contents returns what a query of all rows shows.
func contents[V any](q *store.ReadOnlyKeyValue[string, V]) (map[string]V, error) {
	rows := map[string]V{}
	err := q.All(func(k string, v V) bool {
		rows[k] = v
		return true
	})
	return rows, err
}

// shows waits until a query of all rows shows exactly these.
func shows[V comparable](i *instance, q *store.ReadOnlyKeyValue[string, V], want map[string]V) {
	i.t.Helper()
	i.eventually(func() (bool, string) {
		got, err := contents(q)
		return err == nil && maps.Equal(got, want), fmt.Sprintf("the store holds %v (%v), want %v", got, err, want)
	})
}

func TestFieldReport57(t *testing.T) {
	t.Parallel()
	onBackends(t, func(t *testing.T, cfg millrace.Config) {
		in := brokertest.Topic(t, "in", 3)
		windowed := topology.Tumbling(10 * time.Millisecond).Grace(90 * time.Millisecond)
		gap := topology.Session(5*time.Millisecond, 90*time.Millisecond)
		windows := store.NewWindow("windows", serde.String, serde.Int64, windowed.Store())
		sessions := store.NewSession("sessions", serde.String, serde.Int64, gap.Store())
		app := start(t, build(t, func(b *topology.Builder) {
			byKey := topology.GroupByKey(topology.From(b, text(in)))
			topology.CountWindows(topology.WindowedBy(byKey, windowed), windows)
			topology.CountSessions(topology.SessionsBy(byKey, gap), sessions)
		}), cfg)
		for p, key := range []string{"a", "b", "c"} {
			brokertest.Produce(t, cfg.Brokers, in, brokertest.Record{
				Partition: int32(p), Key: []byte(key), Value: []byte("x"), Timestamp: time.UnixMilli(int64(10 * p)),
			})
		}
		all := func(n *int, err error) bool { return err == nil && *n == 3 }
		app.eventually(func() (bool, string) {
			w, s := 0, 0
			errW := windows.Query(app.app).All(func(store.Row[string, int64]) bool { w++; return true })
			errS := sessions.Query(app.app).All(func(store.Row[string, int64]) bool { s++; return true })
			return all(&w, errW) && all(&s, errS), fmt.Sprintf("%d windows (%v), %d sessions (%v)", w, errW, s, errS)
		})
		storetest.FieldReport57(t, windows.Query(app.app), sessions.Query(app.app))
	})
}

// Deleted keys are not seen, nor nil values; a scan sees what is deleted ahead of it as long as it has copied it already,
// and no longer: the same on both backends.
func TestFieldReport44Queries(t *testing.T) {
	t.Parallel()
	onBackends(t, func(t *testing.T, cfg millrace.Config) {
		in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
		app := start(t, keeping(t, in, out), cfg)
		q := ledgerStore.Query(app.app)
		send(t, in, "0", "put=v")
		send(t, in, "1", "put=v")
		send(t, in, "2", "put=v")
		shows(app, q, map[string]string{"0": "v", "1": "v", "2": "v"})
		send(t, in, "0", "del")
		send(t, in, "1", "del")
		send(t, in, "3", "put=v")
		shows(app, q, map[string]string{"2": "v", "3": "v"})

		want := map[string]string{"2": "v", "3": "v"}
		var puts, deletes []brokertest.Record
		for i := range 500 {
			key := fmt.Sprintf("k%03d", i)
			puts, deletes = append(puts, brokertest.KV(key, "put=v")), append(deletes, brokertest.KV(key, "del"))
			want[key] = "v"
		}
		brokertest.Produce(t, cfg.Brokers, in, puts...)
		shows(app, q, want)
		seen := 0
		if err := q.All(func(k, v string) bool {
			if v != "v" {
				t.Errorf("%s has the value %q", k, v)
			}
			if seen++; k == "2" {
				brokertest.Produce(t, cfg.Brokers, in, deletes...)
				shows(app, q, map[string]string{"2": "v", "3": "v"})
			}
			return true
		}); err != nil {
			t.Error(err)
		}
		if seen != 16 {
			t.Errorf("%d rows were seen, want those of the first piece, 16", seen)
		}
	})
}

func TestFieldReport44SignedKeys(t *testing.T) {
	t.Parallel()
	in := brokertest.Topic(t, "in", 3)
	ordered := store.NewKeyValue("ordered", serde.OrderedInt64, serde.String)
	javas := store.NewKeyValue("javas", serde.Int64, serde.String)
	numbers := topology.NewTopic(in, serde.Int64, serde.String)
	onBackends(t, func(t *testing.T, cfg millrace.Config) {
		app := start(t, build(t, func(b *topology.Builder) {
			s := topology.From(b, numbers)
			topology.ToTable(s, ordered)
			topology.ToTable(s, javas, topology.Named("javas"))
		}), cfg)
		for i := -5; i <= 5; i++ {
			brokertest.Produce(t, cfg.Brokers, in, brokertest.Record{ByKey: true, Key: encoded(int64(i)), Value: []byte("v")})
		}
		count := func(q *store.ReadOnlyKeyValue[int64, string], from, to int64) (n int) {
			if err := q.Range(from, to, func(int64, string) bool { n++; return true }); err != nil {
				t.Log(err)
				return -1
			}
			return n
		}
		app.eventually(func() (bool, string) {
			a, b, c := count(ordered.Query(app.app), -2, 2), count(javas.Query(app.app), -2, 2), count(javas.Query(app.app), -5, -1)
			return a == 5 && b == 0 && c == 5, fmt.Sprintf("-2..2 has %d keys in order, Java's %d; -5..-1 %d of Java's", a, b, c)
		})
	})
}

// A scan that stands still holds up nothing: much is written meanwhile, flushed, and read.
func TestFieldReport45(t *testing.T) {
	t.Parallel()
	onBackends(t, func(t *testing.T, cfg millrace.Config) { slowScan(t, cfg, 6<<20) })
}

func slowScan(t *testing.T, cfg millrace.Config, size int) {
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg.FlushBytes, cfg.FlushInterval = 1<<20, 50*time.Millisecond
	app := start(t, keeping(t, in, out), cfg)
	q := ledgerStore.Query(app.app)
	brokertest.Produce(t, cfg.Brokers, in, puts(0, 600)...)
	app.eventually(func() (bool, string) {
		rows, err := contents(q)
		return len(rows) == 600, fmt.Sprintf("%d rows (%v)", len(rows), err)
	})
	value := "put=" + strings.Repeat("v", 8<<10)
	n := 0
	if err := q.All(func(k, v string) bool {
		if n++; n != 300 {
			return true
		}
		for i := 0; i < size; i += 1 << 20 {
			var batch []brokertest.Record
			for j := 0; j < 1<<20; j += len(value) {
				batch = append(batch, brokertest.KV(fmt.Sprintf("big%d-%d", i, j), value))
			}
			brokertest.Produce(t, cfg.Brokers, in, batch...)
		}
		send(t, in, "last", "put=v")
		app.eventually(func() (bool, string) {
			v, ok, err := q.Get("last")
			return ok, fmt.Sprintf("last is %q (%v)", v, err)
		})
		if v, ok, err := q.Get("k599"); v != "599" || !ok || err != nil {
			t.Errorf("meanwhile: %q, %v, %v", v, ok, err)
		}
		return true
	}); err != nil {
		t.Error(err)
	}
	if n < 600 {
		t.Errorf("%d rows were seen of 600 that were there all the time", n)
	}
	app.stop()
}

// While a store is restored its partition cannot be queried; then it can.
func TestQueryDuringRestore(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	log := changelog(t, cfg.ApplicationID, "counts", rows(0, 100)...)
	goOn := make(chan struct{})
	slow := &wire{request: func(key int16, frame []byte) fate {
		if key == keyFetch && bytes.Contains(frame, []byte(log)) {
			<-goOn
		}
		return pass
	}}
	cfg.Configure = slow.configure
	topo := counting(t, in, out)
	idle, err := millrace.New(topo, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := countStore.Query(idle).Get("k1"); !errors.Is(err, millrace.ErrNotRunning) {
		t.Errorf("before Run: %v", err)
	}
	app := start(t, topo, cfg)
	release := sync.OnceFunc(func() { close(goOn) })
	defer release()
	q := countStore.Query(app.app)
	app.eventually(func() (bool, string) {
		_, _, err := q.Get("k1")
		var e *store.UnavailableError
		restoring := errors.As(err, &e) && *e == store.UnavailableError{Store: "counts", State: store.Restoring}
		return restoring && errors.Is(err, store.ErrNotReady), fmt.Sprint(err)
	})
	if err := q.All(func(string, int64) bool { t.Error("a row"); return true }); !errors.Is(err, store.ErrNotReady) {
		t.Errorf("all: %v", err)
	}
	release()
	want := map[string]int64{}
	for i := range 100 {
		want[fmt.Sprintf("k%d", i)] = int64(i)
	}
	shows(app, q, want)
	app.stop()
	if _, _, err := q.Get("k1"); !errors.Is(err, millrace.ErrNotRunning) {
		t.Errorf("after Run: %v", err)
	}
}

// Two processes share the partitions: each answers for its own, and says so of the others. When one ends, the other has all.
func TestQueriesAfterARebalance(t *testing.T) {
	t.Parallel()
	onBackends(t, func(t *testing.T, one millrace.Config) {
		in, out := brokertest.Topic(t, "in", 4), brokertest.Topic(t, "out", 4)
		two := one
		two.StateDir = t.TempDir()
		want := numberedCounts(400, 40)
		brokertest.Produce(t, one.Brokers, in, numbered(400, 40)...)
		a := start(t, counting(t, in, out), one)
		shows(a, countStore.Query(a.app), want)
		b := start(t, counting(t, in, out), two)
		both := []*store.ReadOnlyKeyValue[string, int64]{countStore.Query(a.app), countStore.Query(b.app)}
		b.eventually(func() (bool, string) {
			ofA, errA := contents(both[0])
			ofB, errB := contents(both[1])
			ok := errA == nil && errB == nil && len(ofA) > 0 && len(ofB) > 0 && len(ofA)+len(ofB) == len(want)
			maps.Copy(ofA, ofB)
			return ok && maps.Equal(ofA, want), fmt.Sprintf("together %d of %d keys (%v, %v)", len(ofA), len(want), errA, errB)
		})
		for key, n := range want {
			found := 0
			for _, q := range both {
				switch got, ok, err := q.Get(key); {
				case ok && got == n:
					found++
				case !errors.Is(err, store.ErrNotLocal):
					t.Errorf("%s: %d, %v, %v", key, got, ok, err)
				}
			}
			if found != 1 {
				t.Errorf("%s is at %d of the processes", key, found)
			}
		}
		b.stop()
		if _, err := contents(both[1]); !errors.Is(err, millrace.ErrNotRunning) {
			t.Errorf("after the end: %v", err)
		}
		shows(a, both[0], want)
	})
}

// Queries of many goroutines while records are processed, committed and flushed, and partitions come and go. What a get shows
// is committed, so it never goes back. It is a test for the race detector above all.
func TestQueriesWhileProcessing(t *testing.T) {
	t.Parallel()
	onBackends(t, func(t *testing.T, cfg millrace.Config) {
		in := brokertest.Topic(t, "in", 3)
		cfg.CommitInterval, cfg.FlushBytes, cfg.FlushInterval = 5*time.Millisecond, 8<<10, 10*time.Millisecond
		windowed := topology.Tumbling(time.Hour)
		windows := store.NewWindow("windows", serde.String, serde.Int64, windowed.Store())
		topo := build(t, func(b *topology.Builder) {
			byKey := topology.GroupByKey(topology.From(b, text(in)))
			topology.Count(byKey, countStore)
			topology.CountWindows(topology.WindowedBy(byKey, windowed), windows, topology.Named("windows"))
		})
		app := start(t, topo, cfg)
		const keys, rounds, each = 60, 20, 300
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var readers sync.WaitGroup
		for i := range 3 {
			rng := rand.New(rand.NewPCG(uint64(i), 0))
			readers.Go(func() { readWhile(ctx, t, app.app, windows, keys, rng) })
		}
		for i := range rounds {
			brokertest.Produce(t, cfg.Brokers, in, numbered(each, keys)...)
			if i == rounds/2 { // some partitions go away and come back
				other := cfg
				other.StateDir = t.TempDir()
				guest := start(t, topo, other)
				guest.eventually(func() (bool, string) {
					rows, err := contents(countStore.Query(guest.app))
					return len(rows) > 0, fmt.Sprint("the guest has nothing: ", err)
				})
				guest.stop()
			}
		}
		shows(app, countStore.Query(app.app), numberedCounts(rounds*each, keys))
		cancel()
		readers.Wait()
		app.stop()
	})
}

// readWhile queries until ctx ends.
func readWhile(ctx context.Context, t *testing.T, app *millrace.App, windows *store.Window[string, int64], keys int, rng *rand.Rand) {
	counts, inWindows := countStore.Query(app), windows.Query(app)
	newest := map[string]int64{}
	unavailable := func(err error) bool {
		return errors.Is(err, store.ErrNotReady) || errors.Is(err, store.ErrNotLocal) || errors.Is(err, millrace.ErrNotRunning)
	}
	check := func(key string, n int64) {
		if n < newest[key] {
			t.Errorf("%s: %d after %d", key, n, newest[key])
		}
		newest[key] = n
	}
	for ctx.Err() == nil {
		key := fmt.Sprintf("k%d", rng.IntN(keys))
		n, ok, err := counts.Get(key)
		if ok {
			check(key, n)
		}
		seen := map[string]bool{}
		errAll := counts.All(func(k string, n int64) bool {
			if seen[k] {
				t.Errorf("%s is seen twice", k)
			}
			seen[k] = true
			check(k, n)
			return true
		})
		errWindows := inWindows.FetchAll(0, time.Now().UnixMilli(), func(r store.Row[string, int64]) bool { return r.Key != key })
		for _, err := range []error{err, errAll, errWindows} {
			if err != nil && !unavailable(err) {
				t.Error(err)
			}
		}
	}
}

// The rows of a global table can be queried, and read by processors.
func TestGlobalTableQueries(t *testing.T) {
	t.Parallel()
	orders, names, out := brokertest.Topic(t, "orders", 3), brokertest.Topic(t, "names", 2), brokertest.Topic(t, "out", 1)
	customers := store.NewKeyValue("names", serde.String, serde.String)
	cfg := config(t)
	brokertest.Produce(t, cfg.Brokers, names, brokertest.KV("a", "ann"), brokertest.KV("b", "bob"))
	app := start(t, build(t, func(b *topology.Builder) {
		topology.GlobalTable(b, text(names), customers)
		topology.To(topology.Process(topology.From(b, text(orders)), "names", func() processor.Processor[string, string, string, string] {
			return &namer{declared: customers}
		}, customers), text(out))
	}), cfg)
	brokertest.Produce(t, cfg.Brokers, orders, brokertest.KV("1", "a"), brokertest.KV("2", "b"), brokertest.KV("3", "z"))
	app.drain()
	shows(app, customers.Query(app.app), map[string]string{"a": "ann", "b": "bob"})
	send(t, names, "a", "anna")
	shows(app, customers.Query(app.app), map[string]string{"a": "anna", "b": "bob"})
	if got := show(t, out); !slices.Equal(slices.Sorted(slices.Values(got)), []string{"1=ann", "2=bob"}) {
		t.Errorf("named %v", got)
	}
}

// namer forwards the name that a global table has for a record's value.
type namer struct {
	declared *store.KeyValue[string, string]
	ctx      *processor.Context[string, string]
	names    *store.ReadOnlyKeyValue[string, string]
}

// Init implements processor.Processor.
func (n *namer) Init(ctx *processor.Context[string, string]) error {
	n.ctx, n.names = ctx, n.declared.Query(ctx)
	return nil
}

// Process implements processor.Processor.
func (n *namer) Process(r processor.Record[string, string]) error {
	name, ok, err := n.names.Get(r.Value)
	if err != nil || !ok {
		return err
	}
	r.Value = name
	return n.ctx.Forward(r)
}

// Records that come too late are told of.
func TestOnLate(t *testing.T) {
	t.Parallel()
	in := brokertest.Topic(t, "in", 1)
	cfg := config(t)
	late := make(chan processor.Late, 10)
	cfg.OnLate = func(l processor.Late) { late <- l }
	windowed := topology.Tumbling(10 * time.Millisecond)
	windows := store.NewWindow("windows", serde.String, serde.Int64, windowed.Store())
	start(t, build(t, func(b *topology.Builder) {
		topology.CountWindows(topology.WindowedBy(topology.GroupByKey(topology.From(b, text(in))), windowed), windows, topology.Named("count"))
	}), cfg)
	for _, ms := range []int64{1000, 995} {
		brokertest.Produce(t, cfg.Brokers, in, brokertest.Record{Key: []byte("k"), Value: []byte("x"), Timestamp: time.UnixMilli(ms)})
	}
	select {
	case l := <-late:
		want := processor.Late{Node: "count", Topic: in, Offset: 1, Timestamp: 995, Start: 990, End: 1000, StreamTime: 1000}
		if l != want {
			t.Errorf("got %+v, want %+v", l, want)
		}
	case <-time.After(patience):
		t.Error("nobody was told")
	}
}
