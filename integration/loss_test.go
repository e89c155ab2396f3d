package integration

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/millrace-streams/millrace"
	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// counted runs an application over the input and stops it in order.
func counted(t *testing.T, topo *topology.Topology, cfg millrace.Config, in string, records ...brokertest.Record) {
	t.Helper()
	app := start(t, topo, cfg)
	brokertest.Produce(t, cfg.Brokers, in, records...)
	app.drain()
	app.stop()
}

// forget deletes a group's offset, as the broker does when it has expired.
func forget(t *testing.T, group, topic string, partition int32) {
	t.Helper()
	if err := admin(t).DeleteConsumerGroupOffset(group, topic, partition); err != nil {
		t.Fatal(err)
	}
}

// deleteTopic deletes a topic and returns when it is gone.
func deleteTopic(t *testing.T, topic string) {
	t.Helper()
	a := admin(t)
	if err := a.DeleteTopic(topic); err != nil {
		t.Fatal(err)
	}
	brokertest.Eventually(t, patience, func() (bool, string) {
		all, err := a.ListTopics()
		_, there := all[topic]
		return err == nil && !there, fmt.Sprintf("%s is still there (%v)", topic, err)
	})
}

// The group's offsets are gone while state is kept: in the changelog, whether the disk is kept or not. The application
// refuses to count everything again on top; reset, it counts from the start.
func TestFieldReport68OffsetsAreGone(t *testing.T) {
	t.Parallel()
	for name, kept := range map[string]bool{"disk kept": true, "disk wiped": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
			cfg := config(t)
			counted(t, counting(t, in, out), cfg, in, numbered(100, 1)...)
			forget(t, cfg.ApplicationID, in, 0)
			if !kept {
				cfg.StateDir = t.TempDir()
			}
			err := refused(t, counting(t, in, out), cfg)
			var lost *millrace.LostOffsetsError
			if !errors.As(err, &lost) || lost.Partitions[0].Topic != in {
				t.Fatalf("got %v, want a LostOffsetsError", err)
			}
			names(t, err, cfg.ApplicationID, in+"-0", cfg.ApplicationID+"-counts-changelog-0", "Reset")
			exactlyCounted(t, out, map[string]int64{"k0": 100})

			if err := millrace.Reset(context.Background(), counting(t, in, out), cfg); err != nil {
				t.Fatal(err)
			}
			counted(t, counting(t, in, out), cfg, in, numbered(1, 1)...)
			all := settled(t, cfg.Brokers, out)
			if n := count(t, all[len(all)-1]); n != 101 || len(all) != 201 {
				t.Errorf("after the reset %d results, the last is %d; want 201 and 101", len(all), n)
			}
		})
	}
}

// A new application starts without fuss, also when its first run was killed before its first commit.
func TestFieldReport68KilledBeforeTheFirstCommit(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	killed := spawn(t, spec{Kind: "counting", Brokers: cfg.Brokers, App: cfg.ApplicationID, In: in, Out: out, StateDir: cfg.StateDir})
	brokertest.Eventually(t, patience, func() (bool, string) {
		at := brokertest.GroupOffsets(t, cfg.Brokers, cfg.ApplicationID, in)
		return len(at) == 1, fmt.Sprintf("offsets %v", at)
	})
	killed.kill()
	tx := newTransactions(t)
	tx.write(cfg.ApplicationID+"-counts-changelog", false, rows(0, 10)...) // what it had not committed
	counted(t, counting(t, in, out), cfg, in, numbered(10, 1)...)
	exactlyCounted(t, out, map[string]int64{"k0": 10})
}

// A reset is refused while the application runs.
func TestResetOfARunningApplication(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	app := start(t, counting(t, in, out), cfg)
	app.restores(1)
	other := cfg
	other.StateDir = t.TempDir()
	if err := millrace.Reset(context.Background(), counting(t, in, out), other); !errors.Is(err, millrace.ErrRunning) {
		t.Errorf("got %v, want ErrRunning", err)
	}
	send(t, in, "k", "x")
	app.drain()
	exactlyCounted(t, out, map[string]int64{"k": 1})
}

// A changelog was deleted while the application was down: it is not taken for that of a store that holds nothing.
func TestFieldReport62ChangelogIsDeleted(t *testing.T) {
	t.Parallel()
	for name, kept := range map[string]bool{"disk kept": true, "disk wiped": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
			cfg := config(t)
			log := cfg.ApplicationID + "-counts-changelog"
			counted(t, counting(t, in, out), cfg, in, numbered(100, 1)...)
			deleteTopic(t, log)
			if !kept {
				cfg.StateDir = t.TempDir()
			}
			for range 2 { // it exists the second time
				err := refused(t, counting(t, in, out), cfg)
				var lost *millrace.LostStateError
				if !errors.As(err, &lost) || lost.Store != "counts" || lost.Committed[0].Offset != 100 {
					t.Fatalf("got %v, want a LostStateError", err)
				}
				names(t, err, log+"-0", in+"-0 up to 100", "LostState")
			}
			var told atomic.Int64
			cfg.LostState = millrace.EmptyLostState
			cfg.OnLoss = func(loss error) {
				var lost *millrace.LostStateError
				if !errors.As(loss, &lost) {
					t.Errorf("told of %v", loss)
				}
				told.Add(1)
			}
			counted(t, counting(t, in, out), cfg, in, numbered(1, 1)...)
			cfg.LostState = millrace.RefuseLostState // from now on the new one counts
			counted(t, counting(t, in, out), cfg, in, numbered(1, 1)...)
			all := settled(t, cfg.Brokers, out)
			if n := count(t, all[len(all)-1]); n != 2 || len(all) != 102 || told.Load() != 1 {
				t.Errorf("%d results, the last is %d, %d losses told; want 102, 2 and 1", len(all), n, told.Load())
			}
		})
	}
}

// The changelog was created anew and has grown beyond what a local store holds of the old one: that store is of no use.
func TestFieldReport20ChangelogOfAnotherLife(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	log := cfg.ApplicationID + "-counts-changelog"
	counted(t, counting(t, in, out), cfg, in, numbered(30, 30)...)
	old := cfg.StateDir
	deleteTopic(t, log)
	cfg.StateDir, cfg.LostState = t.TempDir(), millrace.EmptyLostState
	others := numbered(10, 10)
	for i := range 40 {
		others = append(others, brokertest.KV(fmt.Sprintf("n%d", i), "x"))
	}
	counted(t, counting(t, in, out), cfg, in, others...) // k20 is not among them
	if _, end := logRange(t, log, 0); end < 40 {
		t.Fatalf("the new changelog ends at %d", end)
	}

	cfg.StateDir, cfg.LostState = old, millrace.RefuseLostState
	app := start(t, counting(t, in, out), cfg)
	if r := app.restores(1)[0]; r.From != 0 || r.Records == 0 {
		t.Errorf("restored %+v, want the changelog from its start", r)
	}
	brokertest.Produce(t, cfg.Brokers, in, brokertest.KV("k5", "x"), brokertest.KV("k20", "x"))
	app.drain()
	lastCounted(t, cfg.Brokers, out, 2, 1)
}

// The changelog has lost its end: the local store holds more than it does.
func TestFieldReport20LocalStoreAhead(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	counted(t, counting(t, in, out), cfg, in, numbered(30, 30)...)
	// Another cluster's changelog of the same identity cannot be made: the note of the identity is removed.
	path := cfg.StateDir + "/" + cfg.ApplicationID + "/0_0/counts.topic"
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	log := cfg.ApplicationID + "-counts-changelog"
	deleteTopic(t, log)
	setOffset(t, cfg.ApplicationID, in, 0, 30) // without marks
	err := refused(t, counting(t, in, out), cfg)
	var lost *millrace.LostStateError
	if !errors.As(err, &lost) || lost.Held < 30 || lost.End != 0 {
		t.Fatalf("got %v, want a LostStateError", err)
	}
	names(t, err, log+"-0", "lost its end", in+"-0 up to 30")
	cfg.LostState = millrace.EmptyLostState
	counted(t, counting(t, in, out), cfg, in, numbered(1, 1)...)
	all := settled(t, cfg.Brokers, out)
	if n := count(t, all[len(all)-1]); n != 1 {
		t.Errorf("counted %d, want 1", n)
	}
}

// A store that is new in the topology begins empty though there are committed offsets.
func TestAStoreIsAdded(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	counted(t, counting(t, in, out), cfg, in, numbered(10, 1)...)
	counted(t, build(t, func(b *topology.Builder) {
		stream := topology.From(b, text(in))
		countEach(stream, out)
		topology.Count(topology.GroupByKey(stream), store.NewKeyValue("more", serde.String, serde.Int64), topology.Named("more"))
	}), cfg, in, numbered(10, 1)...)
	exactlyCounted(t, out, map[string]int64{"k0": 20})
}

// Input was deleted before it was processed: an error that counts it, or the policy that is asked for, once.
func TestFieldReport25InputIsGone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy millrace.LostInput
		want   int64 // of the 25 that are left and one more
	}{"earliest": {millrace.EarliestLostInput, 76}, "latest": {millrace.LatestLostInput, 51}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
			cfg := config(t)
			counted(t, counting(t, in, out), cfg, in, numbered(50, 1)...)
			brokertest.Produce(t, cfg.Brokers, in, numbered(50, 1)...)
			deleteUpTo(t, in, 0, 75)
			err := refused(t, counting(t, in, out), cfg)
			var lost *millrace.LostInputError
			if !errors.As(err, &lost) || lost.Lost() != 25 || lost.Committed != 50 || lost.Start != 75 {
				t.Fatalf("got %v, want a LostInputError of 25 records", err)
			}
			names(t, err, in+"-0", "25 records", cfg.ApplicationID)

			var mu sync.Mutex
			var told []int64
			cfg.LostInput = c.policy
			cfg.OnLoss = func(loss error) {
				mu.Lock()
				defer mu.Unlock()
				if errors.As(loss, &lost) {
					told = append(told, lost.Lost())
				}
			}
			app := start(t, counting(t, in, out), cfg)
			app.restores(1)
			brokertest.Produce(t, cfg.Brokers, in, numbered(1, 1)...)
			app.drain()
			app.stop()
			counted(t, counting(t, in, out), cfg, in)
			exactlyCounted(t, out, map[string]int64{"k0": c.want})
			if !slices.Equal(told, []int64{25}) {
				t.Errorf("told of the losses %v", told)
			}
		})
	}
}

// keyOffsetFetch is Kafka's number of the request for committed offsets.
const keyOffsetFetch = 9

// A coordinator in transition says that there is no offset. Nobody who has state believes it.
func TestFieldReport21OffsetIsDeniedAtFirst(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	table := func() *topology.Topology {
		return build(t, func(b *topology.Builder) {
			rows := topology.Table(b, text(in), store.NewKeyValue("rows", serde.String, serde.String))
			topology.To(topology.Changes(rows), text(out))
		})
	}
	counted(t, table(), cfg, in, numbered(517, 517)...)
	before := len(settled(t, cfg.Brokers, out))

	var lies atomic.Int64
	at := binary.BigEndian.AppendUint64(nil, 517)
	w := &wire{response: func(key int16, frame []byte) fate {
		if i := bytes.Index(frame, at); key == keyOffsetFetch && i > 0 && lies.Add(1) <= 3 {
			copy(frame[i:], bytes.Repeat([]byte{0xff}, 8))
		}
		return pass
	}}
	cfg.Configure, cfg.StateDir = w.configure, t.TempDir()
	app := start(t, table(), cfg)
	if r := app.restores(1)[0]; r.Records != 517 {
		t.Errorf("restored %+v, want 517 records", r)
	}
	brokertest.Produce(t, cfg.Brokers, in, brokertest.KV("last", "x"))
	app.drain()
	if n := len(settled(t, cfg.Brokers, out)); n != before+1 || lies.Load() < 3 {
		t.Errorf("%d results after %d lies, want %d", n, lies.Load(), before+1)
	}
}

// A table has a changelog of its own: what its source holds beyond the committed offset goes through the processors.
func TestFieldReport22TableStopsAtTheCommittedOffset(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	table := func() *topology.Topology {
		return build(t, func(b *topology.Builder) {
			rows := topology.Table(b, text(in), store.NewKeyValue("rows", serde.String, serde.String))
			topology.To(topology.Changes(rows), text(out))
		})
	}
	counted(t, table(), cfg, in, numbered(60, 60)...)
	brokertest.Produce(t, cfg.Brokers, in, numbered(100, 100)[60:]...)
	cfg.StateDir = t.TempDir()
	app := start(t, table(), cfg)
	if r := app.restores(1)[0]; r.Records != 60 {
		t.Errorf("restored %+v, want 60 records", r)
	}
	app.drain()
	var got, want []string
	for _, r := range settled(t, cfg.Brokers, out) {
		got = append(got, string(r.Key))
	}
	for i := range 100 {
		want = append(want, fmt.Sprintf("k%d", i))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%d results, want one for each of 100 keys", len(got))
	}
}

// A partition of which nothing was read keeps the position where reading began.
func TestFieldReport66PartitionNeverRead(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 2), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	cfg.OffsetReset = millrace.Latest
	brokertest.Produce(t, cfg.Brokers, in, brokertest.Record{Partition: 1, Key: []byte("old"), Value: []byte("x")})
	first := start(t, counting(t, in, out), cfg)
	first.restores(2)
	first.stop()
	at := brokertest.GroupOffsets(t, cfg.Brokers, cfg.ApplicationID, in)
	if at[0] != 0 || at[1] != 1 {
		t.Errorf("committed %v", at)
	}
	for range 10 {
		brokertest.Produce(t, cfg.Brokers, in, brokertest.Record{Partition: 1, Key: []byte("k"), Value: []byte("x")})
	}
	counted(t, counting(t, in, out), cfg, in)
	exactlyCounted(t, out, map[string]int64{"k": 10})
}

// The start of the changelog's log has moved beyond what the store holds; or it moves after it was looked up, before the first
// fetch of the restore. The store is restored from what is left, and the input goes on from its committed position.
func TestFieldReport19ChangelogStartMoves(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"before the start": false, "before the first fetch": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changelogStartMoves(t, late)
		})
	}
}

func changelogStartMoves(t *testing.T, late bool) {
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	log := changelog(t, cfg.ApplicationID, "counts")
	counted(t, counting(t, in, out), cfg, in, numbered(20, 20)...)
	held := cfg.StateDir
	cfg.StateDir = t.TempDir()
	counted(t, counting(t, in, out), cfg, in, numbered(100, 100)...)
	var once sync.Once
	move := func() { once.Do(func() { deleteUpTo(t, log, 0, 60) }) }
	if !late {
		move()
	}
	w := &wire{request: func(key int16, frame []byte) fate {
		if key == keyFetch && bytes.Contains(frame, []byte(log)) {
			move()
		}
		return pass
	}}
	cfg.Configure, cfg.StateDir = w.configure, held
	app := start(t, counting(t, in, out), cfg)
	app.restores(1)
	once.Do(func() { t.Error("the changelog was not fetched by its name") })
	brokertest.Produce(t, cfg.Brokers, in, brokertest.KV("k0", "x"), brokertest.KV("k90", "x"))
	app.drain()
	lastCounted(t, cfg.Brokers, out, 1, 2) // k0 was counted before the changelog's start
}

// The changelog is deleted and created anew under a running application: at the latest the commit that finds itself before
// what the store holds ends it.
func TestFieldReport62ChangelogIsCreatedAnewMeanwhile(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	log := cfg.ApplicationID + "-counts-changelog"
	app := start(t, counting(t, in, out), cfg)
	brokertest.Produce(t, cfg.Brokers, in, numbered(100, 100)...)
	app.drain()
	deleteTopic(t, log)
	brokertest.CreateTopic(t, cfg.Brokers, log, 1, map[string]string{"cleanup.policy": "compact"})
	send(t, in, "k0", "x")
	err := app.join()
	var lost *millrace.LostStateError
	if !errors.As(err, &lost) || lost.Held < 100 {
		t.Fatalf("got %v, want a LostStateError", err)
	}
	if err := refused(t, counting(t, in, out), cfg); !errors.As(err, &lost) {
		t.Fatalf("got %v, want a LostStateError", err)
	}
}
