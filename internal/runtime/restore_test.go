package runtime_test

import (
	"errors"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store/bolt"
)

var files = bolt.Opener{Options: bolt.Options{NoSync: true}}

// A task that is demoted while a job has the layers of its store keeps it for its life as a standby, when the job has ended
// and not before.
func TestDemotedWhileAJobIsUnderWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, files, 1, 1<<20)
	w.open(lease(runtime.Active, 0, 100, "counts"))
	w.turn(fetched("counts", 0, 0, 10))
	w.turn(runtime.Events{Demoted: []processor.TaskID{taskOf(0)}})
	if at, reads := w.port.fetching[logOf("counts", 0)]; reads || len(w.port.released) != 1 {
		t.Fatalf("released %v, reads on from %d, %t: want it to wait for the job", w.port.released, at, reads)
	}
	w.work()
	if at := w.port.fetching[logOf("counts", 0)]; at != 10 || len(w.port.closed) > 0 {
		t.Fatalf("stands by from %d, closed %v: want it to go on at 10", at, w.port.closed)
	}
}

// A standby of which much is fetched all the time is promoted as soon as the jobs under way have ended.
func TestPromotionDoesNotWaitForWhatIsFetchedMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, files, 1, 1<<20, "counts", "sums")
	w.open(lease(runtime.Standby, 0, 100, "counts", "sums"))
	w.turn(fetched("counts", 0, 0, 10))
	w.turn(fetched("sums", 0, 0, 10))
	w.turn(granted(lease(runtime.Active, 0, 40, "counts", "sums")))
	w.job() // of the counts
	w.turn(fetched("counts", 0, 10, 10))
	w.job() // of the sums, which has gone on meanwhile
	w.turn(fetched("sums", 0, 10, 10))
	if len(w.told) != 2 || w.told[0].From != 10 || w.told[1].From != 10 || w.told[0].End != 40 {
		t.Fatalf("told of %+v: want restores from 10 up to 40", w.told)
	}
	for _, name := range []string{"counts", "sums"} {
		w.turn(fetched(name, 0, 10, 30))
		w.work()
		if last := w.told[len(w.told)-1]; last.Store != name || last.Position != 40 || last.Records != 30 {
			t.Fatalf("told of %+v", w.told)
		}
	}
	if under := w.restores.Under(); len(under) > 0 {
		t.Fatalf("under way at the end: %v", under)
	}
}

// A standby may have read on while the end of its changelog was asked for. What it has read beyond that end before is lost.
func TestPromotionOfAStandbyThatIsAheadOfItsLease(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"read since": false, "read before": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, files, 1, 1) // what is read is written
			w.open(lease(runtime.Standby, 0, 5, "counts"))
			active := lease(runtime.Active, 0, 9, "counts")
			if active.Asked = w.now; lost {
				active.Asked = w.now.Add(2 * time.Second)
			}
			w.now = w.now.Add(time.Second)
			w.turn(fetched("counts", 0, 0, 10))
			w.work()
			w.port.next = granted(active)
			w.worker.Turn(0)
			if lost { // it is opened anew
				w.job()
				w.worker.Turn(0)
			}
			var loss *runtime.LostStateError
			switch err := w.worker.Failure(); {
			case lost:
				if !errors.As(err, &loss) || loss.Held != 10 || loss.End != 9 {
					t.Errorf("got %v, want a LostStateError", err)
				}
			case err != nil:
				t.Error(err)
			case w.port.fetching[active.Inputs[0].TopicPartition] != 0 || len(w.port.fetching) != 1:
				t.Errorf("reads %v, want the input", w.port.fetching)
			}
		})
	}
}

// What a standby has staged counts, and does not any more once it is written, by whatever is the reason.
func TestWhatIsStagedIsAccountedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, files, 2, 1<<20)
	w.open(lease(runtime.Standby, 0, 100, "counts"), lease(runtime.Standby, 1, 100, "counts"))
	w.turn(fetched("counts", 0, 0, 1000))
	w.work()
	staged := w.restores.Staged()
	if staged < 1000*16 {
		t.Fatalf("%d bytes are staged", staged)
	}
	w.turn(granted(lease(runtime.Active, 0, 2000, "counts")))
	if now := w.restores.Staged(); now != staged {
		t.Errorf("%d bytes are staged after the promotion, %d before", now, staged)
	}
	w.turn(runtime.Events{Demoted: []processor.TaskID{taskOf(0)}})
	w.work()
	w.now = w.now.Add(2 * time.Minute) // beyond the interval of flushes
	w.turn(runtime.Events{})
	w.work()
	if now := w.restores.Staged(); now != 0 {
		t.Errorf("%d bytes are accounted for after the flush", now)
	}
}

// A store that has staged its share, and of which nothing more comes, makes room for others.
func TestIdleStoresMakeRoom(t *testing.T) {
	t.Parallel()
	const stores, limit, batch = 8, 1 << 18, 100
	w := newWorld(t, files, stores, limit)
	for i := range int32(stores) {
		w.open(lease(runtime.Standby, i, 1<<30, "counts"))
		for from := int64(0); from < 40*batch; from += batch { // about the limit, were it alone
			w.turn(fetched("counts", i, from, batch))
			w.work()
			if staged := w.restores.Staged(); staged > limit+limit/8 {
				t.Fatalf("%d bytes are staged when %d stores have come, the limit is %d", staged, i+1, limit)
			}
		}
	}
	for i := range int32(stores) {
		w.turn(runtime.Events{Revoked: []processor.TaskID{taskOf(i)}})
	}
	w.work()
	if staged := w.restores.Staged(); staged != 0 || len(w.port.closed) != stores {
		t.Errorf("%d bytes are accounted for and %d tasks closed at the end", staged, len(w.port.closed))
	}
}
