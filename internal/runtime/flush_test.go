package runtime_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/eos"
	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
)

// lines is a batch of input with so many keys.
func lines(partition int32, n int64) runtime.Fetched {
	f := runtime.Fetched{TopicPartition: processor.TopicPartition{Topic: "lines", Partition: partition}, Next: n}
	for at := range n {
		f.Records = append(f.Records, processor.Raw{Offset: at, Key: fmt.Appendf(nil, "key-%06d", at), Value: []byte{}})
	}
	return f
}

// Stores that are large enough to be written are written one after the other, and all in the end.
func TestOneFlushAtATime(t *testing.T) {
	t.Parallel()
	const tasks = 3
	w := newWorld(t, files, tasks, 1<<20)
	var input runtime.Events
	for p := range int32(tasks) {
		w.open(lease(runtime.Active, p, 0, "counts"))
		input.Fetched = append(input.Fetched, lines(p, 10_000)) // more than FlushBytes
	}
	w.turn(input)
	committed := runtime.Events{Commit: &runtime.CommitDone{Result: eos.Result{Outcome: eos.Committed}, Ends: map[processor.TopicPartition]int64{}}}
	flushes := 0
	for range 4 * tasks {
		w.now = w.now.Add(2 * time.Second) // less than FlushInterval in all
		w.turn(runtime.Events{})           // begins a commit if there is something to commit
		if w.port.commits > 0 {
			w.port.commits--
			w.turn(committed)
		}
		if n := len(w.port.jobs); n > 1 {
			t.Fatalf("%d flushes at a time", n)
		}
		if len(w.port.jobs) == 1 {
			flushes++
			w.job()
		}
	}
	if flushes < tasks {
		t.Errorf("%d flushes of %d stores", flushes, tasks)
	}
}
