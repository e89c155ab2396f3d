package topology_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/testdriver"
	"github.com/millrace-streams/millrace/topology"
)

// driven is a topology on the test driver, whose outputs are read from the topic out.
type driven struct {
	*testdriver.Driver
	t   *testing.T
	out *testdriver.OutputTopic[string, string]
}

func drive(t *testing.T, declare func(*topology.Builder), opts ...testdriver.Option) driven {
	t.Helper()
	b := topology.NewBuilder()
	declare(b)
	d := testdriver.New(t, must(b.Build()), opts...)
	return driven{d, t, testdriver.Output(d, out)}
}

// send sends "topic key value timestamp", all to partition 0, and returns what that has caused.
func (d driven) send(lines ...string) (got []string) {
	d.t.Helper()
	for _, line := range lines {
		d.sendTo(0, line, nil)
	}
	return readPeer(d.out)
}

func (d driven) sendTo(partition int32, line string, headers []processor.Header) {
	topic, in := question1(line)
	testdriver.Input(d.Driver, topology.NewTopic(topic, serde.Bytes, serde.Bytes)).
		SendRaw(partition, processor.Raw{Key: in.key, Value: in.value, Timestamp: in.ts, Headers: headers})
}

// Field report 30: a record is used while its window's end is above stream time - grace; the closed windows of a record are
// skipped, its open ones updated.
func TestFieldReport30TumblingBoundary(t *testing.T) {
	t.Parallel()
	d := drive(t, windowPeers["tumbling count"])
	equal(t, d.send("in x x 10", "in k v 9"), "x@10-20=1@10")
	d = drive(t, windowPeers["tumbling count grace 1"])
	equal(t, d.send("in x x 10", "in k v 9", "in x x 11", "in k v 9"), "x@10-20=1@10", "k@0-10=1@9", "x@10-20=2@11")
	d = drive(t, shownIn(countedIn(byFive), number))
	equal(t, d.send("in x x 10", "in k v 9"), "x@5-15=1@10", "x@10-20=1@10", "k@5-15=1@9")
}

// Field report 31: sliding windows without grace lose no record that is in order, none begins below 0, and what is very late
// is dropped and counted.
func TestFieldReport31SlidingWindows(t *testing.T) {
	t.Parallel()
	last := func(grace time.Duration) map[string]string {
		d := drive(t, shownIn(countedIn(topology.Sliding(10*ms, grace)), number))
		d.send()
		for _, ts := range []int{0, 5, 10, 15} {
			d.sendTo(0, fmt.Sprintf("in k v %d", ts), nil)
		}
		return testdriver.ReadMap(d.out)
	}
	if want, got := last(time.Hour), last(0); !maps.Equal(want, got) || len(want) == 0 {
		t.Errorf("without grace %v, with %v", got, want)
	}
	d := drive(t, shownIn(countedIn(topology.Sliding(50*ms, 0)), number))
	equal(t, d.send("in k v 3", "in k v 7"), "k@0-50=1@3", "k@4-54=1@7", "k@0-50=2@7")
	equal(t, d.send("in k v 300", "in k v 100"), "k@250-300=1@300")
}

// late runs a topology in a rig, and returns what came too late: as told to Options.Late, and how often it was counted.
func late(declare func(*topology.Builder), lines ...string) (told []processor.Late, counted int64, r *rig) {
	b := topology.NewBuilder()
	declare(b)
	opt := processor.Options{EveryUpdate: true, Late: func(l processor.Late) { told = append(told, l) }}
	r = start(b, opt, nil)
	for _, line := range lines {
		topic, in := question1(line)
		r.send(topic, in)
		must(0, r.run())
	}
	for _, task := range r.tasks {
		counted += task.Counters.Late
	}
	return told, counted, r
}

// A late record is told of once for each of its closed windows, and comes out as late if it was of no use at all.
func TestLateRecords(t *testing.T) {
	t.Parallel()
	declare := func(b *topology.Builder) {
		w := windows(b, byFive)
		windowOut(topology.CountWindows(w, windowStore(byFive, serde.Int64)), number)
		topology.To(topology.LateRecords(w), out2)
	}
	told, counted, r := late(declare, "in x x 18", "in k some 12", "in k none 8", "in - x 30")
	equal(t, read(r, out2), "k=none@8")
	want := []processor.Late{
		{Node: "in.countwindows", Topic: "in", Offset: 1, Timestamp: 12, Start: 5, End: 15, StreamTime: 18},
		{Node: "in.countwindows", Topic: "in", Offset: 2, Timestamp: 8, Start: 0, End: 10, StreamTime: 18},
		{Node: "in.countwindows", Topic: "in", Offset: 2, Timestamp: 8, Start: 5, End: 15, StreamTime: 18},
	}
	if !slices.Equal(told, want) || counted != 3 {
		t.Errorf("counted %d, told %+v", counted, told)
	}
}

func TestLateRecordsOfSlidingWindowsAndSessions(t *testing.T) {
	t.Parallel()
	told, _, r := late(func(b *topology.Builder) {
		w := windows(b, topology.Sliding(10*ms, 0))
		windowOut(topology.CountWindows(w, windowStore(topology.Sliding(10*ms, 0), serde.Int64)), number)
		topology.To(topology.LateRecords(w, topology.Named("slow")), out2)
	}, "in x x 40", "in k v 30", "in k late 29")
	equal(t, read(r, out2), "k=late@29")
	if len(told) != 2 || told[1].Start != 29 || told[1].End != 39 || told[0].Start != 20 {
		t.Errorf("told %+v", told)
	}
	told, _, r = late(func(b *topology.Builder) {
		w := sessions(b, topology.Session(10*ms, 0))
		windowOut(topology.CountSessions(w, sessionStore(topology.Session(10*ms, 0), serde.Int64)), number)
		topology.To(topology.LateRecords(w), out2)
	}, "in x x 40", "in k v 30", "in k late 29")
	equal(t, read(r, out2)) // it joins the session of 30, which is open
	if len(told) != 0 {
		t.Errorf("told %+v", told)
	}
}

// Field report 24: windows that were open before an outage are closed after it, each once, and what is beyond the retention
// goes.
func TestFieldReport24WindowsSurviveAnOutage(t *testing.T) {
	t.Parallel()
	kept := store.NewWindow("windows", serde.String, serde.Int64, store.WindowOptions{Size: 10 * ms, Retention: 30 * ms})
	d := drive(t, shownIn(closing(func(b *topology.Builder) topology.KTable[windowed, int64] {
		return topology.CountWindows(windows(b, ten), kept)
	}, serde.Int64), number))
	for i := range 10 {
		d.sendTo(0, fmt.Sprintf("in k%d v %d", i, i), nil)
	}
	equal(t, d.send("in k0 v 9"))
	want := []string{"k0@0-10=2@9"}
	for i := 1; i < 10; i++ {
		want = append(want, fmt.Sprintf("k%d@0-10=1@%d", i, i))
	}
	equal(t, d.send("in z v 12"), want...)
	d.RestartEmpty()
	equal(t, d.send("in late v 1000"), "z@10-20=1@12")
	d.RestartEmpty()
	equal(t, d.send("in late v 1001"))
	d.Restart()
	equal(t, d.send("in more v 2000"), "late@1000-1010=2@1001")
}

// Field report 37: by default a poisonous timestamp makes everything after it late, as in Kafka Streams; with the guard it is
// dropped, and moves no time.
func TestFieldReport37PoisonTimestamp(t *testing.T) {
	t.Parallel()
	poison := []string{"in k v 1", "in k v 5", "in k v 4000000000000", "in k v 6", "in k v 9"}
	d := drive(t, windowPeers["tumbling count"])
	equal(t, d.send(poison...), "k@0-10=1@1", "k@0-10=2@5", "k@4000000000000-4000000000010=1@4000000000000")
	_, counted, _ := late(windowPeers["tumbling count"], poison...)
	if counted != 2 {
		t.Errorf("%d late records", counted)
	}
	d = drive(t, func(b *topology.Builder) {
		guarded := topology.GroupByKey(topology.From(b, in.WithMaxAhead(time.Hour)))
		windowOut(topology.CountWindows(topology.WindowedBy(guarded, ten), windowStore(ten, serde.Int64)), number)
	})
	equal(t, d.send(poison...), "k@0-10=1@1", "k@0-10=2@5", "k@0-10=3@6", "k@0-10=4@9")
	dropped := d.Dropped()
	if len(dropped) != 1 || !errors.Is(dropped[0].Err, processor.ErrFarAhead) || dropped[0].Action != processor.Skip {
		t.Errorf("dropped %+v", dropped)
	}
	if at, ok := d.Committed("in", 0); !ok || at != 5 {
		t.Errorf("committed %d", at)
	}
}

// Field report 38: a negative timestamp fails, is dropped, or takes its partition's time; no window begins below 0.
func TestFieldReport38NegativeTimestamps(t *testing.T) {
	t.Parallel()
	d := drive(t, windowPeers["tumbling count"], testdriver.ExpectErrors())
	d.send("in k v -1")
	if failed := new(processor.RecordError); !errors.As(d.Err(), &failed) || failed.Topic != "in" || failed.Offset != 0 ||
		!errors.Is(failed, processor.ErrNegativeTimestamp) {
		t.Errorf("failed with %v", d.Err())
	}
	d = drive(t, windowPeers["tumbling count"], testdriver.Errors(processor.SkipBadRecords()))
	equal(t, d.send("in k v -1", "in k v 3"), "k@0-10=1@3")
	d = drive(t, func(b *topology.Builder) {
		timed := topology.GroupByKey(topology.From(b, in.WithEventTime(topology.PartitionTimeIfNegative)))
		windowOut(topology.CountWindows(topology.WindowedBy(timed, ten), windowStore(ten, serde.Int64)), number)
	})
	equal(t, d.send("in k v 13", "in k v -1"), "k@10-20=1@13", "k@10-20=2@13")
}

// Field report 41: nothing is emitted in silence, nor by records of another partition.
func TestFieldReport41NothingInSilence(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"tumbling count close", "suppress tumbling"} {
		d := drive(t, windowPeers[name], testdriver.DefaultPartitions(2))
		equal(t, d.send("in k v 1", "in k v 2", "in q v 3"))
		d.Advance(time.Minute)
		equal(t, d.send())
		d.sendTo(1, "in other v 1000", nil)
		equal(t, d.send())
		d.sendTo(0, "in other v 12", nil)
		equal(t, d.send(), "k@0-10=2@2", "q@0-10=1@3")
	}
}

// With WallClockClose, silence closes windows, and what comes later for them is late.
func TestWallClockClose(t *testing.T) {
	t.Parallel()
	idle := topology.WallClockClose(time.Minute)
	for name, declare := range map[string]func(*topology.Builder){
		"close": shownIn(countedIn(ten, topology.EmitOnClose(), idle), number),
		"suppress": shownIn(func(b *topology.Builder) topology.KTable[windowed, int64] {
			buffer := topology.NewBuffer("buffer", store.TimeWindowed(serde.String, 10*ms), serde.Int64, topology.BufferOptions{})
			return topology.Suppress(countedIn(ten)(b), topology.UntilWindowCloses(buffer), idle)
		}, number),
	} {
		t.Run(name, func(t *testing.T) {
			d := drive(t, declare)
			equal(t, d.send("in k v 1", "in q v 13"), "k@0-10=1@1")
			d.Advance(40 * time.Second)
			equal(t, d.send("in q v 14"))
			d.Advance(59 * time.Second)
			equal(t, d.send())
			d.RestartEmpty() // a new life waits anew
			d.Advance(59 * time.Second)
			equal(t, d.send())
			d.Advance(time.Second)
			equal(t, d.send(), "q@10-20=2@14")
			d.Advance(time.Hour)
			equal(t, d.send("in q late 15", "in z late 16"))
			d.RestartEmpty()
			equal(t, d.send("in q late 17", "in n v 20"))
			d.Advance(time.Hour)
			equal(t, d.send(), "n@20-30=1@20")
		})
	}
}

func TestWallClockCloseOfSlidingWindowsAndSessions(t *testing.T) {
	t.Parallel()
	opts := []topology.TableOption{topology.EmitOnClose(), topology.WallClockClose(time.Second)}
	d := drive(t, shownIn(countedIn(topology.Sliding(10*ms, 5*ms), opts...), number))
	equal(t, d.send("in k v 20", "in k v 25"))
	d.Advance(time.Second)
	equal(t, d.send("in k late 25"), "k@10-20=1@20", "k@15-25=2@25", "k@21-31=1@25")
	d = drive(t, shownIn(func(b *topology.Builder) topology.KTable[windowed, int64] {
		w := topology.Session(10*ms, 5*ms)
		return topology.CountSessions(sessions(b, w), sessionStore(w, serde.Int64), opts...)
	}, number))
	equal(t, d.send("in k v 20", "in k v 25", "in q v 22"))
	d.Advance(time.Second)
	equal(t, d.send("in k late 22", "in z v 60"), "q@22-22=1@22", "k@20-25=2@25")
}

// With the cache, a window is told of once per commit, with its last value; the last values are the same.
func TestCachedWindows(t *testing.T) {
	t.Parallel()
	peerSections("testdata/peer-windows.txt", func(name string, lines []string) {
		if strings.Contains(name, "join") || strings.Contains(name, "suppress") {
			return
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			last := func(opts ...testdriver.Option) map[string]string {
				d := drive(t, windowPeers[name], append(opts, testdriver.Manual())...)
				for _, line := range lines {
					line, _, _ = strings.Cut(line, " -> ")
					d.sendTo(0, line, nil)
				}
				d.Settle()
				rows := map[string]string{}
				for _, r := range d.out.ReadAll() {
					if rows[r.Key] = fmt.Sprintf("%s@%d", r.Value, r.Timestamp); r.NullValue {
						delete(rows, r.Key)
					}
				}
				return rows
			}
			if want, got := last(), last(testdriver.Cached()); !maps.Equal(want, got) || len(want) == 0 {
				t.Errorf("cached %v\nelse %v", got, want)
			}
		})
	})
}

func TestCachedChangesOfAWindowAreOne(t *testing.T) {
	t.Parallel()
	d := drive(t, windowPeers["session aggregate"], testdriver.Cached(), testdriver.Manual())
	for _, line := range []string{"in k a 1", "in k b 5", "in q c 3"} {
		d.sendTo(0, line, []processor.Header{{Key: "h", Value: []byte(line)}})
	}
	d.Settle()
	got := d.out.ReadAll()
	if len(got) != 2 || got[0].Key != "k@1-5" || got[0].Value != "0|0,a,b" || got[0].Timestamp != 5 || string(got[0].Headers[0].Value) != "in k b 5" {
		t.Errorf("got %+v", got)
	}
}

// A failed step leaves nothing: rows, what is held back, the times that nodes have seen, buffers and what was emitted are as
// before. Each input is preceded by one that fails behind everything else, and is skipped.
func TestFailedStepsLeaveNothing(t *testing.T) {
	t.Parallel()
	peerSections("testdata/peer-windows.txt", func(name string, lines []string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := drive(t, failsAtBad(name), testdriver.Errors(processor.SkipBadRecords()))
			for i, line := range lines {
				question, answer, _ := strings.Cut(line, " -> ")
				words := strings.Fields(question)
				equal(t, d.send(fmt.Sprintf("%s %s bad %d", words[0], "k", i*13), fmt.Sprintf("%s a bad 1000", words[0])))
				if got := strings.Join(d.send(question), " "); got != answer {
					t.Errorf("%s: got %s, want %s", question, got, answer)
				}
			}
		})
	})
}

// failsAtBad makes the steps of a topology fail, behind everything else, at the value bad.
func failsAtBad(name string) func(*topology.Builder) {
	return func(b *topology.Builder) {
		windowPeers[name](b)
		for _, topic := range []topology.Topic[string, string]{in, lefties, righties} {
			if topic.Name() == "in" == !strings.Contains(name, "join") {
				topology.Peek(topology.From(b, topic), func(_, v string) {
					if v == "bad" {
						panic(v)
					}
				}, topology.Named(topic.Name()+".fails"))
			}
		}
	}
}

// What is held back until the commit is not touched by failed steps either.
func TestFailedStepsLeaveNothingHeld(t *testing.T) {
	t.Parallel()
	peerSections("testdata/peer-windows.txt", func(name string, lines []string) {
		if strings.Contains(name, "join") {
			return // of two inputs, whose order would be another
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := func(bad bool) []string {
				d := drive(t, failsAtBad(name), testdriver.Errors(processor.SkipBadRecords()), testdriver.Cached(), testdriver.Manual())
				for i, line := range lines {
					question, _, _ := strings.Cut(line, " -> ")
					topic, _, _ := strings.Cut(question, " ")
					if bad {
						d.sendTo(0, fmt.Sprintf("%s k bad %d", topic, i*13), nil)
						d.sendTo(0, fmt.Sprintf("%s a bad %d", topic, i), nil)
					}
					d.sendTo(0, question, nil)
					if i%7 == 6 {
						d.Settle()
					}
				}
				d.Settle()
				return readPeer(d.out)
			}
			equal(t, all(true), all(false)...)
		})
	})
}

// Windowed keys are partitioned by what is in the windows, and written as Kafka Streams writes them.
func TestWindowedKeysOnTopics(t *testing.T) {
	t.Parallel()
	byWindow := topology.NewTopic("by-window", store.TimeWindowed(serde.String, 10*ms), serde.Int64)
	d := drive(t, func(b *topology.Builder) {
		topology.To(topology.Changes(countedIn(ten)(b)), byWindow)
		topology.To(topology.From(b, in2), out)
	}, testdriver.DefaultPartitions(4))
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		for _, ts := range []int{1, 11, 21} {
			d.sendTo(0, fmt.Sprintf("in %s v %d", key, ts), nil)
		}
	}
	for _, r := range d.Raw("by-window") {
		if want := processor.PartitionForKey(r.Key[:1], 4); r.Partition != want || len(r.Key) != 9 {
			t.Errorf("key %x in partition %d, want %d", r.Key, r.Partition, want)
		}
	}
}

// allWindows uses each operator of windows once.
func allWindows(b *topology.Builder) {
	w := windows(b, ten)
	counts := topology.CountWindows(w, windowStore(ten, serde.Int64))
	buffer := topology.NewBuffer("final-counts", store.TimeWindowed(serde.String, 10*ms), serde.Int64, topology.BufferOptions{})
	topology.To(topology.Changes(topology.Suppress(counts, topology.UntilWindowCloses(buffer))), topology.NewTopic("finals", store.TimeWindowed(serde.String, 10*ms), serde.Int64))
	topology.To(topology.LateRecords(w), out)
	gap := topology.Session(10*ms, 0)
	parts := topology.Cogroup(topology.GroupByKey(topology.From(b, in)), appendTo).And(topology.Cogroup(topology.GroupByKey(topology.From(b, in2)), appendTo))
	topology.AggregateCogroupedSessions(parts, gap, zero, bar, store.NewSession("visits", serde.String, serde.String, gap.Store()))
	kept := func(name string) *store.Window[string, string] {
		return store.NewWindow(name, serde.String, serde.String, within.Store())
	}
	outer := topology.NewOuterStore("unmatched", serde.String, serde.String, serde.String)
	joined := topology.LeftJoinStreams(topology.From(b, lefties), topology.From(b, righties), within, leftKeyed, kept("lefts"), kept("rights"), outer)
	topology.To(joined, out2)
}

func TestDescriptionOfWindows(t *testing.T) {
	t.Parallel()
	b := topology.NewBuilder()
	allWindows(b)
	top := must(b.Build())
	golden(t, "windows-describe", top.Describe())
	golden(t, "windows-mermaid", top.Mermaid())
	layout := must(top.Layout(app, map[string]int32{"in": 1, "in2": 1, "left": 1, "right": 1, "out": 1, "out2": 1, "finals": 1}, ""))
	var topics []string
	for _, topic := range layout.Create {
		topics = append(topics, fmt.Sprint(topic.Name, " ", topic.Config))
	}
	golden(t, "windows-changelogs", strings.Join(topics, "\n")+"\n")
}
