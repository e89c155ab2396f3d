package sim_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store/bolt"
	"github.com/millrace-streams/millrace/store/memory"
)

// standing is a plan with standbys and without any faults.
func standing(processes int) plan {
	return plan{opener: memory.Opener{}, processes: processes, standbys: 1, batch: 5, staged: 1000, callsAtOnce: true}
}

// calmWorld counts words of one partition in processes of which no one fails by chance.
func calmWorld(t *testing.T, p plan) *world {
	w := newWorld(t, 1, wordCount(t), map[string]int32{"lines": 1, "word-counts": 1}, p)
	w.calm = true
	for _, p := range w.processes {
		p.start(true)
	}
	return w
}

func (w *world) say(text string) {
	_, err := w.cluster.Append(processor.TopicPartition{Topic: "lines"}, processor.Raw{Value: []byte(text)})
	must(w.t, err)
}

// counting returns the process whose store of the counts is the owner's, and the one that stands by.
func (w *world) counting() (owner, standby *process) {
	for _, p := range w.processes {
		if len(p.opener.Opened("counts")) == 0 {
			continue
		}
		if p.port.Owns(processor.TaskID{Subtopology: 1}) {
			owner = p
		} else {
			standby = p
		}
	}
	return owner, standby
}

// TestAStandbyTakesOver: the store of a task whose owner dies is the standby's, as it is; only what it lacks is read.
func TestAStandbyTakesOver(t *testing.T) {
	t.Parallel()
	for _, durable := range []bool{false, true} {
		p := standing(2)
		if durable {
			p.opener, p.dir = bolt.Opener{}, t.TempDir()
		}
		w := calmWorld(t, p)
		for n := range 50 {
			w.say(fmt.Sprint("a b", n))
		}
		w.settle()
		owner, standby := w.counting()
		read := w.end1("app-counts-changelog")
		_, err := w.cluster.Append(processor.TopicPartition{Topic: "app-by-word-repartition"}, raw("a", "tail")...)
		must(t, err) // of which the standby does not hear: it sleeps
		standby.paused = 1000
		w.turns(owner, 30)
		owner.die()
		owner.port.Leave()
		standby.paused = 0
		w.turns(standby, 30)
		if len(standby.restored) != 1 || standby.restored[0].From != read || standby.restored[0].Records != 2 {
			t.Fatalf("durable %v: restored %+v, want 2 records from %d", durable, standby.restored, read)
		}
		w.say("a")
		w.turns(standby, 60)
		if got := w.output(true); got["a"] != 52 || got["tail"] != 1 {
			t.Fatalf("durable %v: counts %v", durable, got)
		}
	}
}

func (w *world) end1(topic string) int64 {
	return w.cluster.End(processor.TopicPartition{Topic: topic})
}

// turns lets one process turn, and time pass.
func (w *world) turns(p *process, n int) {
	for range n {
		w.cluster.WriteMarkers()
		w.now = w.now.Add(7 * time.Millisecond)
		p.turn()
	}
}

// TestADemotedTaskKeepsItsStore: a task that moves to its standby and back is never restored from the start, in memory.
func TestADemotedTaskKeepsItsStore(t *testing.T) {
	t.Parallel()
	w := calmWorld(t, standing(2))
	for n := range 50 {
		w.say(fmt.Sprint("a b", n))
	}
	w.settle()
	for range 4 {
		for i := range w.layout.Tasks {
			w.group.Move(i)
		}
		w.say("a")
		w.settle()
	}
	if got := w.output(true); got["a"] != 54 {
		t.Fatalf("counts %v", got)
	}
	moves := 0
	for _, p := range w.processes {
		for i, r := range p.restored {
			if moves++; i > 0 && r.Records > 20 || r.From > 0 && r.Records > 20 {
				t.Errorf("%s restored %+v", p.name, p.restored)
			}
		}
	}
	if moves < 5 {
		t.Errorf("the task was taken over %d times", moves)
	}
	w.check(w.output(true))
	w.end()
}

// TestATaskMovesWhenItsNewOwnerHasWarmedUp: a process that joins gets a task with state when it lacks next to nothing of it, and
// until then the task goes on where it is.
func TestATaskMovesWhenItsNewOwnerHasWarmedUp(t *testing.T) {
	t.Parallel()
	p := standing(2)
	p.standbys, p.warmups, p.acceptable = 0, 1, 5
	w := newWorld(t, 1, tableOfRows(t), map[string]int32{"lines": 2, "word-counts": 2}, p)
	w.calm = true
	first, second := w.processes[0], w.processes[1]
	first.start(true)
	for _, write := range w.changes(w.rng, 2) {
		write()
	}
	w.turns(first, 100)
	second.start(true)
	w.turns(first, 10) // the new process has not read anything
	for i := range int32(2) {
		if !first.port.Owns(processor.TaskID{Partition: i}) {
			t.Fatalf("partition %d was taken away before anybody could have it", i)
		}
	}
	w.settle()
	if len(second.restored) != 1 || !second.port.Owns(second.restored[0].Task) {
		t.Fatalf("the new process has restored %+v: %s", second.restored, w.group)
	}
	if r := second.restored[0]; r.Records > p.acceptable {
		t.Errorf("the task moved and rested for a restore of %+v", r)
	}
	w.end()
}

// TestAStandbyBehindItsChangelogStartsOver: what it lacks is deleted from the log, because it was written anew since.
func TestAStandbyBehindItsChangelogStartsOver(t *testing.T) {
	t.Parallel()
	w := calmWorld(t, standing(2))
	w.say("a b c")
	w.settle()
	owner, standby := w.counting()
	standby.paused = 1000
	for range 10 {
		w.say("a b c")
		w.turns(owner, 10)
	}
	log := processor.TopicPartition{Topic: "app-counts-changelog"}
	w.cluster.Compact(log)
	w.cluster.DeleteRecords(log, w.cluster.Entries(log, 0)[0].Offset)
	standby.paused = 0
	w.settle()
	w.check(map[string]int64{"a": 11, "b": 11, "c": 11})
	owner.die()
	owner.port.Leave()
	w.say("a")
	w.turns(standby, 30)
	if got := w.output(true); got["a"] != 12 {
		t.Fatalf("counts %v", got)
	}
}

// found is what ends a run of the simulator that found something.
type found struct {
	testing.TB
	what string
}

func (f *found) Fatalf(format string, args ...any) {
	f.what = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// TestMistakesAreFound: a simulator that finds nothing is worth nothing. A take-over that leaves out the tail of the
// changelog, and a group in which two owners of a task can commit, do not survive it.
func TestMistakesAreFound(t *testing.T) {
	t.Parallel()
	topo := wordCount(t)
	for name, mistake := range map[string]func(*plan){
		"no tail":    func(p *plan) { p.skipTail, p.standbys = true, 1 },
		"two owners": func(p *plan) { p.careless, p.zombies = true, true },
	} {
		what := ""
		for seed := uint64(1); seed <= 400 && what == ""; seed++ {
			f := &found{TB: t}
			done := make(chan struct{})
			go func() {
				defer close(done)
				countWords(f, seed, topo, mistake)
			}()
			<-done
			what = f.what
		}
		if what == "" {
			t.Errorf("%s: found by none of 400 seeds", name)
			continue
		}
		t.Logf("%s: %s", name, strings.SplitN(what, "\n", 2)[0])
	}
}
