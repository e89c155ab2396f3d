package runtime_test

import (
	"errors"
	"iter"
	"strings"
	"syscall"
	"testing"

	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
)

// fullDisk opens files into which nothing can be loaded.
type fullDisk struct {
	store.Opener
	loads *int
}

func (o fullDisk) Open(dir, name string) (store.Backend, error) {
	b, err := o.Opener.Open(dir, name)
	return fullFile{b, o.loads}, err
}

type fullFile struct {
	store.Backend
	loads *int
}

func (b fullFile) Load(iter.Seq[store.Pair], int64) error {
	*b.loads++
	return syscall.ENOSPC
}

// A disk that is full in the middle of a restore ends the worker, with an error that says what it was about; it is not
// tried again, and everything is closed.
func TestFullDiskInARestore(t *testing.T) {
	t.Parallel()
	loads := 0
	w := newWorld(t, fullDisk{files, &loads}, 2, 1<<16)
	w.open(lease(runtime.Active, 0, 5000, "counts"), lease(runtime.Standby, 1, 5000, "counts"))
	w.turn(fetched("counts", 0, 0, 4000))
	w.job()
	w.worker.Turn(0)
	for len(w.port.jobs) > 0 { // the other task's
		w.job()
		w.worker.Turn(0)
	}
	err := w.worker.Failure()
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), `"counts"`) || !strings.Contains(err.Error(), logOf("counts", 0).String()) {
		t.Errorf("failed with %v", err)
	}
	if loads != 1 || !w.worker.Done() || len(w.port.closed) != 2 || w.restores.Staged() != 0 || len(w.restores.Under()) != 0 {
		t.Errorf("%d loads, done %t, closed %v, %d bytes staged, under way %v", loads, w.worker.Done(), w.port.closed, w.restores.Staged(), w.restores.Under())
	}
}

// A task that is lost, given back or stopped while a job has the layers of its store is closed when the job has ended, not
// before; what was staged is written. Then it is accounted for no more.
func TestEndedWhileAJobIsUnderWay(t *testing.T) {
	t.Parallel()
	id := []processor.TaskID{taskOf(0)}
	for name, end := range map[string]runtime.Events{"lost": {Lost: id}, "revoked": {Revoked: id}, "stopped": {Stop: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, files, 1, 1<<20)
			w.open(lease(runtime.Active, 0, 100, "counts"))
			w.turn(fetched("counts", 0, 0, 10))
			w.turn(end)
			w.turn(runtime.Events{})
			if len(w.port.closed) > 0 {
				t.Fatal("closed under the hands of a job")
			}
			w.work()
			if len(w.port.closed) != 1 || w.restores.Staged() != 0 || len(w.restores.Under()) != 0 {
				t.Fatalf("closed %v, %d bytes staged, under way %v", w.port.closed, w.restores.Staged(), w.restores.Under())
			}
			if name == "stopped" {
				return
			}
			w.open(lease(runtime.Active, 0, 100, "counts"))
			if at := w.port.fetching[logOf("counts", 0)]; at != 10 {
				t.Errorf("goes on from %d, want 10: what was staged", at)
			}
		})
	}
}
