package topology_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/millrace-streams/millrace/internal/seed"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/topology"
)

func rm(key string, ts int64) rec { return rec{key: []byte(key), ts: ts} }

// changes is a table whose changes, with old values, are shown in out.
func changes(table func(*topology.Builder) topology.KTable[string, string]) *topology.Builder {
	b := topology.NewBuilder()
	shown := topology.MapValues(topology.ChangesWithOld(table(b)), func(c processor.Change[string]) string {
		return fmt.Sprintf("%q,%v>%q,%v", c.Old, c.HasOld, c.New, c.HasNew)
	})
	topology.To(shown, out)
	return b
}

func tableOf(opts ...topology.TableOption) func(*topology.Builder) topology.KTable[string, string] {
	return func(b *topology.Builder) topology.KTable[string, string] {
		return topology.Table(b, in, users, opts...)
	}
}

func TestChangesOncePerKeyAndCommit(t *testing.T) {
	t.Parallel()
	r := start(changes(tableOf()), processor.Options{}, nil)
	first := text("a", "1", 10)
	first.headers = []processor.Header{{Key: "h", Value: []byte("1")}}
	second := text("a", "2", 5) // later in the topic, though older
	second.headers = []processor.Header{{Key: "h", Value: []byte("2")}}
	r.send("in", first, text("b", "1", 11), second, text("c", "1", 12), rm("c", 13), text("d", "1", 14), rm("d", 15), text("d", "2", 16))
	must(0, r.run())
	equal(t, read(r, out), `a="",false>"2",true@5 h:2`, `b="",false>"1",true@11`, `d="",false>"2",true@16`)
	r.send("in", text("a", "3", 20), text("a", "4", 21), rm("b", 22), rm("b", 23), rm("d", 24), text("d", "3", 25))
	must(0, r.run())
	equal(t, read(r, out), `a="2",true>"4",true@21`, `b="1",true>"",false@22`, `d="2",true>"3",true@25`)
	if got := get(r, users, "b"); got != "none" {
		t.Errorf("deleted row: %s", got)
	}
	must(0, r.run())
	equal(t, read(r, out))
}

func TestChangesOfEveryUpdate(t *testing.T) {
	t.Parallel()
	want := []string{
		`a="",false>"1",true@10`, `a="1",true>"2",true@11`, `c="",false>"1",true@12`, `c="1",true>"",false@13`,
		`c="",false>"",false@14`, `a="2",true>"",false@15`,
	}
	for _, r := range []*rig{
		start(changes(tableOf(topology.CachingDisabled())), processor.Options{}, nil),
		start(changes(tableOf()), processor.Options{EveryUpdate: true}, nil),
	} {
		r.send("in", text("a", "1", 10), text("a", "2", 11), text("c", "1", 12), rm("c", 13), rm("c", 14), rm("a", 15))
		must(0, r.run())
		equal(t, read(r, out), want...)
	}
}

func TestAggregateKeepsTheHighestTimestamp(t *testing.T) {
	t.Parallel()
	b := topology.NewBuilder()
	table := topology.Count(topology.GroupByKey(topology.From(b, in)), counts, topology.CachingDisabled())
	topology.To(topology.Changes(table), totals)
	r := start(b, processor.Options{}, nil)
	r.send("in", text("a", "", 10), text("a", "", 5), text("a", "", 11))
	must(0, r.run())
	equal(t, read(r, totals), "a=1@10", "a=2@10", "a=3@11")
}

// An aggregation may change its row in place without changing what listeners see as the value before.
func TestAggregateInPlace(t *testing.T) {
	t.Parallel()
	for _, everyUpdate := range []bool{true, false} {
		b := topology.NewBuilder()
		table := topology.Aggregate(topology.GroupByKey(topology.From(b, in)), func() map[string]int { return map[string]int{} },
			func(_, v string, row map[string]int) map[string]int { row[v]++; return row }, jsonRows)
		topology.To(topology.MapValues(topology.ChangesWithOld(table), func(c processor.Change[map[string]int]) string {
			return fmt.Sprint(c.Old, c.New)
		}), out)
		r := start(b, processor.Options{EveryUpdate: everyUpdate}, nil)
		r.send("in", text("k", "a", 1))
		must(0, r.run())
		r.send("in", text("k", "a", 2))
		must(0, r.run())
		equal(t, read(r, out), "k=map[] map[a:1]@1", "k=map[a:1] map[a:2]@2")
	}
}

// failing refuses the values that are told.
type failing struct {
	forward
	refuse func(string) bool
}

var errRefused = errors.New("refused")

func (f *failing) Process(r processor.Record[string, string]) error {
	if f.refuse(r.Value) {
		return errRefused
	}
	return f.forward.Process(r)
}

func refuse(s stream, name string, when func(string) bool) stream {
	return topology.Process(s, name, func() processor.Processor[string, string, string, string] { return &failing{refuse: when} })
}

// A record that fails below a table takes its change along: from the store, and from what is held back.
func TestFailedStepHoldsNothingBack(t *testing.T) {
	t.Parallel()
	b := topology.NewBuilder()
	table := topology.Table(b, in, users)
	topology.To(topology.Changes(table), out)
	// The source's second child comes after the table.
	refuse(topology.From(b, in), "picky", func(v string) bool { return v == "bad" })
	r := start(b, processor.Options{Policy: processor.SkipBadRecords()}, nil)
	r.send("in", text("a", "1", 1), text("b", "bad", 2), text("a", "bad", 3), text("c", "1", 4), text("c", "bad", 5), text("b", "1", 6))
	r.step()
	if task := r.tasks[processor.TaskID{}]; task.Counters.Skipped != 3 {
		t.Fatalf("skipped %d", task.Counters.Skipped)
	}
	must(0, r.run())
	equal(t, read(r, out), "a=1@1", "c=1@4", "b=1@6")
	r.send("in", text("a", "bad", 7), text("a", "2", 8), text("b", "bad", 9))
	must(0, r.run())
	equal(t, read(r, out), "a=2@8")
}

// A held-back change that fails below is dropped or stops the task, as the policy says; the others go on.
func TestFailureOfHeldChange(t *testing.T) {
	t.Parallel()
	declare := func() *topology.Builder {
		b := topology.NewBuilder()
		topology.To(refuse(topology.Changes(topology.Table(b, in, users)), "picky", func(v string) bool { return v == "bad" }), out)
		return b
	}
	records := []rec{text("a", "1", 1), text("b", "bad", 2), text("c", "1", 3)}
	r := start(declare(), processor.Options{Policy: processor.SkipBadRecords()}, nil)
	r.send("in", records...)
	must(0, r.run())
	equal(t, read(r, out), "a=1@1", "c=1@3")
	r.send("in", text("b", "2", 4))
	must(0, r.run())
	equal(t, read(r, out), "b=2@4")

	r = start(declare(), processor.Options{}, nil)
	r.send("in", records...)
	err := r.run()
	var e *processor.RecordError
	if !errors.As(err, &e) || e.Node != "picky" || !errors.Is(err, errRefused) {
		t.Errorf("got %v", err)
	}
}

// A table below a table: what the upper one forwards at the commit changes the lower one in the same commit.
func TestHeldChangesRunThroughTables(t *testing.T) {
	t.Parallel()
	b := topology.NewBuilder()
	upper := topology.Table(b, in, users)
	lower := topology.Reduce(topology.GroupByKey(topology.Changes(upper)), func(row, v string) string { return row + v }, texts)
	topology.To(topology.Changes(lower), out)
	r := start(b, processor.Options{}, nil)
	r.send("in", text("a", "1", 1), text("a", "2", 2), text("b", "1", 3))
	must(0, r.run())
	equal(t, read(r, out), "a=2@2", "b=1@3")
	r.send("in", text("a", "3", 4), rm("b", 5))
	must(0, r.run())
	equal(t, read(r, out), "a=23@4")
}

// Random updates, failures and commits: the last change of each key agrees with a plain map, and every change begins where
// the one before has ended. MILLRACE_SEED runs it again.
func TestTableAgainstMap(t *testing.T) {
	t.Parallel()
	random := seed.Rand(t)
	rows, told := map[string]string{}, map[string]string{}
	b := topology.NewBuilder()
	table := topology.Table(b, in, users)
	topology.Peek(topology.ChangesWithOld(table), func(k string, c processor.Change[string]) {
		if old, ok := told[k]; old != c.Old || ok != c.HasOld {
			t.Errorf("%s: the change begins at %q, %v, but the last has ended at %q, %v", k, c.Old, c.HasOld, old, ok)
		}
		if told[k] = c.New; !c.HasNew {
			delete(told, k)
		}
	})
	refuse(topology.From(b, in), "picky", func(v string) bool { return len(v) > 0 && v[0] == '9' })
	r := start(b, processor.Options{Policy: processor.SkipBadRecords()}, nil)
	for n := range 5000 {
		key := strconv.Itoa(random.IntN(20))
		switch value := strconv.Itoa(random.IntN(1000)); random.IntN(10) {
		case 0:
			delete(rows, key)
			r.send("in", rm(key, int64(n)))
		default:
			if value[0] != '9' {
				rows[key] = value
			}
			r.send("in", text(key, value, int64(n)))
		}
		if r.step(); random.IntN(30) == 0 {
			must(0, r.run())
		}
	}
	must(0, r.run())
	if got, want := fmt.Sprint(told), fmt.Sprint(rows); got != want {
		t.Errorf("listeners know %s, the rows are %s", got, want)
	}
}

// Counting costs the key's string, once for the record and once for the row, and nothing else.
func TestCountAllocations(t *testing.T) {
	b := topology.NewBuilder()
	table := topology.Count(topology.GroupByKey(topology.From(b, in)), counts)
	topology.To(topology.Changes(table), totals)
	r := start(b, processor.Options{}, nil)
	task, tp := r.tasks[processor.TaskID{}], processor.TopicPartition{Topic: "in"}
	const records = 1000
	batch := make([]processor.Raw, records)
	for i := range batch {
		batch[i] = processor.Raw{Key: fmt.Appendf(nil, "key-%d", i%200), Value: []byte("v"), Timestamp: 1, Offset: int64(i)}
	}
	perRun := testing.AllocsPerRun(20, func() {
		task.Enqueue(tp, batch, records, 1, false)
		must(task.Run(0, records))
		must(0, r.commit(processor.TaskID{}, task))
		r.out = map[string][]processor.Output{}
	})
	if perRecord := perRun / records; perRecord > 2.3 { // a fifth of the records makes a new row and an output
		t.Errorf("%.2f allocations per record", perRecord)
	}
}
