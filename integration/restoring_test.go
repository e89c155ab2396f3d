package integration

import (
	"bytes"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace-streams/millrace"
	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/bolt"
)

// watched opens bbolt files and shows a test what restores load into the file of one task: each load waits for the test.
type watched struct {
	bolt.Opener
	task  string
	loads chan *load
}

// load is what is to be loaded at once. It begins when begin is closed.
type load struct {
	bytes int
	begin chan struct{}
}

// next waits for the next load, nil when the store is restored. What is little at the end is not loaded, but left to the
// store's usual flushes.
func (o *watched) next(app *instance) (l *load) {
	app.t.Helper()
	app.eventually(func() (bool, string) {
		select {
		case l = <-o.loads:
			return true, ""
		default:
		}
		app.mu.Lock()
		defer app.mu.Unlock()
		return slices.ContainsFunc(app.restored, func(r millrace.Restored) bool { return r.Task.String() == o.task }), "neither loads nor is restored"
	})
	return l
}

func (o *watched) Open(dir, name string) (store.Backend, error) {
	b, err := o.Opener.Open(dir, name)
	if err != nil || filepath.Base(dir) != o.task {
		return b, err
	}
	return &watchedBackend{b, o.loads}, nil
}

type watchedBackend struct {
	store.Backend
	loads chan *load
}

func (b *watchedBackend) Load(rows iter.Seq[store.Pair], offset int64) error {
	l := &load{begin: make(chan struct{})}
	for row := range rows {
		l.bytes += len(row.Key) + len(row.Value)
	}
	b.loads <- l
	<-l.begin
	return b.Backend.Load(rows, offset)
}

// bigLog makes a changelog of a ledger, with two partitions. The first one holds n records of about 1 KiB, each of a key of
// its own.
func bigLog(t *testing.T, cfg millrace.Config, in string, n int) {
	t.Helper()
	topic := cfg.ApplicationID + "-ledger-changelog"
	brokertest.CreateTopic(t, cfg.Brokers, topic, 2, map[string]string{"cleanup.policy": "compact"})
	value := bytes.Repeat([]byte("v"), 1000)
	for from := 0; from < n; from += 2000 {
		var records []brokertest.Record
		for i := from; i < min(n, from+2000); i++ {
			records = append(records, brokertest.Record{Key: fmt.Appendf(nil, "k%06d", i), Value: value, Partition: 0})
		}
		brokertest.Produce(t, cfg.Brokers, topic, records...)
	}
	for p := range int32(2) {
		setOffset(t, cfg.ApplicationID, in, p, 0)
	}
}

// A big store is restored, in loads of which each waits for the test. What is told is right and goes up, no more is
// staged than Config.RestoreBytes allows, and a task of the same worker goes on all the while.
func TestRestoringIsToldAndBounded(t *testing.T) {
	t.Parallel()
	const records, restoreBytes, fetchBytes = 16_000, 2 << 20, 1 << 20
	in, out := brokertest.Topic(t, "in", 2), brokertest.Topic(t, "out", 2)
	cfg := config(t)
	bigLog(t, cfg, in, records)
	opener := &watched{task: "0_0", loads: make(chan *load)}
	cfg.Store, cfg.Workers, cfg.RestoreBytes = opener, 1, restoreBytes
	var mu sync.Mutex
	var told []millrace.Restoring
	cfg.OnRestoring = func(r millrace.Restoring) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, r)
	}
	app := start(t, keeping(t, in, out), cfg)
	loads, last := 0, int64(0)
	began := time.Now()
	for l := opener.next(app); l != nil; l = opener.next(app) {
		if l.bytes > restoreBytes+fetchBytes {
			t.Errorf("%d bytes are loaded at once, %d may be staged", l.bytes, restoreBytes)
		}
		if under := app.app.Restoring(); len(under) != 1 || under[0].Task != (processor.TaskID{}) || under[0].Store != "ledger" ||
			under[0].Position < last || under[0].Records != under[0].Position || under[0].End != records {
			t.Errorf("under way %+v at %d", under, last)
		} else {
			last = under[0].Position
		}
		if loads++; loads == 1 {
			brokertest.Produce(t, cfg.Brokers, in, brokertest.Record{Key: []byte("a"), Value: []byte("put=1"), Partition: 1}, brokertest.Record{Key: []byte("a"), Value: []byte("get"), Partition: 1})
			app.eventually(func() (bool, string) {
				return slices.Equal(show(t, out), []string{"a=1"}), "the other task does not commit"
			})
		}
		app.eventually(func() (bool, string) {
			return time.Since(began) > 200*time.Millisecond, "twice the interval in which is told"
		})
		close(l.begin)
	}
	app.eventually(func() (bool, string) { return len(app.app.Restoring()) == 0, fmt.Sprint(app.app.Restoring()) })
	if last == 0 || loads < records*1000/(restoreBytes+fetchBytes) {
		t.Errorf("%d loads, the last one at %d", loads, last)
	}
	mu.Lock()
	defer mu.Unlock()
	checkTold(t, told, records)
}

// checkTold looks at what OnRestoring was told of the first restore of a store.
func checkTold(t *testing.T, told []millrace.Restoring, end int64) {
	t.Helper()
	told = slices.DeleteFunc(slices.Clone(told), func(r millrace.Restoring) bool { return r.Task.Partition != 0 })
	if len(told) < 3 {
		t.Fatalf("told %+v: want start, in between and end", told)
	}
	first, last := told[0], told[len(told)-1]
	if first.Position != 0 || first.Records != 0 || last.Position != end || last.Records != end || last.Remaining() != 0 {
		t.Errorf("told at first %+v, at last %+v", first, last)
	}
	for i, r := range told {
		if r.From != 0 || r.End != end || r.Records != r.Position || i > 0 && r.Position <= told[i-1].Position {
			t.Errorf("told %+v: want positions that go up, with as many records", told)
			break
		}
	}
}

// A process that is killed in the middle of a first load leaves a file that counts for nothing: the next one restores from
// the start, and holds what the changelog says and nothing else.
func TestKilledInAFirstLoad(t *testing.T) {
	t.Parallel()
	const records = 10_000 // more than a running store would keep in its layers: they are loaded, and at once
	in, out := brokertest.Topic(t, "in", 2), brokertest.Topic(t, "out", 2)
	cfg := config(t)
	bigLog(t, cfg, in, records)
	log := cfg.ApplicationID + "-ledger-changelog"
	killed := spawn(t, spec{Kind: "ledger", Brokers: cfg.Brokers, App: cfg.ApplicationID, In: in, Out: out, StateDir: cfg.StateDir,
		CommitInterval: cfg.CommitInterval, HangInLoad: 600})
	killed.hears("hangs in a load")
	killed.kill()
	path := filepath.Join(cfg.StateDir, cfg.ApplicationID, "0_0", "ledger.db")
	if data, err := os.ReadFile(path); err != nil || !bytes.Contains(data, []byte("k000001")) {
		t.Fatalf("nothing was loaded by then: %v", err)
	}
	// What was loaded of it by then is not to come back.
	brokertest.Produce(t, cfg.Brokers, log, brokertest.Record{Key: []byte("k000001"), Partition: 0}, brokertest.Record{Key: []byte("k000002"), Value: []byte("new"), Partition: 0})

	app := start(t, keeping(t, in, out), cfg)
	r := app.restores(2)[0]
	if r.From != 0 || r.Records != records+2 {
		t.Errorf("restored %+v, want all of it", r)
	}
	for _, key := range []string{"k000001", "k000002", "k009999"} {
		brokertest.Produce(t, cfg.Brokers, in, brokertest.Record{Key: []byte(key), Value: []byte("get"), Partition: 0})
	}
	app.drain()
	got := show(t, out)
	slices.Sort(got)
	if want := []string{"k000001=null", "k000002=new", "k009999=" + strings.Repeat("v", 1000)}; !slices.Equal(got, want) {
		t.Errorf("the store holds %.40q, want %.40q", got, want)
	}
}
