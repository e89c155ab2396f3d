package runtime_test

import (
	"strings"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/bolt"
)

// A task that is lost, given back, demoted or stopped while its stores are being opened is closed when they are open, not
// before, and can be had again.
func TestEndedWhileItIsOpened(t *testing.T) {
	t.Parallel()
	id := []processor.TaskID{taskOf(0)}
	for name, c := range map[string]struct {
		end      runtime.Events
		released int
	}{
		"lost": {runtime.Events{Lost: id}, 0}, "revoked": {runtime.Events{Revoked: id}, 1},
		"stopped": {runtime.Events{Stop: true}, 1}, "demoted": {runtime.Events{Demoted: id}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, files, 1, 1<<20, "counts", "sums")
			w.turn(granted(lease(runtime.Active, 0, 0, "counts", "sums")))
			w.turn(c.end)
			w.turn(runtime.Events{})
			if len(w.port.closed) > 0 || len(w.port.released) != c.released || w.worker.Done() {
				t.Fatalf("released %v, closed %v, done %t while the stores are opened", w.port.released, w.port.closed, w.worker.Done())
			}
			w.work()
			switch {
			case name == "demoted":
				if len(w.port.fetching) != 2 || len(w.port.closed) > 0 {
					t.Fatalf("reads %v, closed %v: want it to stand by", w.port.fetching, w.port.closed)
				}
				return
			case len(w.port.closed) != 1 || len(w.port.fetching) > 0:
				t.Fatalf("closed %v, reads %v", w.port.closed, w.port.fetching)
			case name == "stopped":
				if !w.worker.Done() {
					t.Error("is not done")
				}
				return
			}
			w.open(lease(runtime.Active, 0, 0, "counts", "sums"))
			if len(w.port.fetching) != 1 {
				t.Errorf("reads %v, want the input", w.port.fetching)
			}
		})
	}
}

// A standby that is to be worked on while its stores are being opened is, and they are opened once.
func TestPromotedWhileItIsOpened(t *testing.T) {
	t.Parallel()
	w := newWorld(t, files, 1, 1<<20)
	w.turn(granted(lease(runtime.Standby, 0, 10, "counts")))
	w.turn(granted(lease(runtime.Active, 0, 10, "counts")))
	if len(w.port.jobs) != 1 {
		t.Fatalf("%d jobs, want the one that opens the store", len(w.port.jobs))
	}
	w.work()
	w.turn(fetched("counts", 0, 0, 10))
	w.work()
	if len(w.port.fetching) != 1 || len(w.told) == 0 || w.told[len(w.told)-1].Position != 10 {
		t.Errorf("reads %v, told of %v, want the input after a restore", w.port.fetching, w.told)
	}
}

// While the stores of one task are opened, another one goes on.
func TestOthersGoOnWhileATaskIsOpened(t *testing.T) {
	t.Parallel()
	w := newWorld(t, files, 2, 1<<20)
	w.open(lease(runtime.Active, 0, 0, "counts"))
	w.turn(granted(lease(runtime.Active, 1, 0, "counts")))
	w.turn(runtime.Events{Fetched: []runtime.Fetched{lines(0, 10)}})
	w.now = w.now.Add(2 * time.Second)
	w.turn(runtime.Events{})
	if w.port.commits != 1 || len(w.port.jobs) != 1 {
		t.Errorf("%d commits, %d jobs: want a commit while a store is opened", w.port.commits, len(w.port.jobs))
	}
}

// A task whose stores take long to be opened is told of, now and then.
func TestSlowOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, files, 1, 1<<20)
	w.turn(granted(lease(runtime.Active, 0, 0, "counts")))
	told := func() int { return strings.Count(w.log.String(), "still being opened") }
	for seconds, want := range []int{0, 0, 0, 1, 1, 1, 2} {
		if got := told(); got != want {
			t.Fatalf("told %d times after %d s, want %d", got, 5*seconds-5, want)
		}
		w.now = w.now.Add(5 * time.Second)
		w.turn(runtime.Events{})
	}
	before := told()
	w.work()
	w.now = w.now.Add(time.Hour)
	if w.turn(runtime.Events{}); told() != before {
		t.Error("told of it when it was open")
	}
}

// What is opened after a crash is closed.
func TestCrashWhileATaskIsOpened(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"opened before": true, "opened after": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opener := &remembering{Opener: bolt.Opener{Options: bolt.Options{NoSync: true, LockTimeout: time.Millisecond}}}
			w := newWorld(t, opener, 1, 1<<20)
			w.turn(granted(lease(runtime.Active, 0, 0, "counts")))
			if before {
				w.job()
			}
			w.worker.Crash()
			if !before {
				w.job()
			}
			b, err := opener.Open(opener.dir, opener.name)
			if err != nil {
				t.Fatal(err)
			}
			must(t, b.Close())
		})
	}
}

// remembering knows which store it has opened.
type remembering struct {
	bolt.Opener
	dir, name string
}

func (o *remembering) Open(dir, name string) (store.Backend, error) {
	o.dir, o.name = dir, name
	return o.Opener.Open(dir, name)
}
