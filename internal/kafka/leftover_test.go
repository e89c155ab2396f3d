package kafka

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
)

// TestLeftoversAreAborted: what a process that is gone has left open under its transactional id does not hold up its tasks;
// nor does what this process has left open when it had more workers.
func TestLeftoversAreAborted(t *testing.T) {
	t.Parallel()
	for name, owner := range map[string]string{"of another process": "q-0", "of a worker that is no more": "p-7"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brokers := brokertest.Brokers(t)
			in, app := brokertest.Topic(t, "in", 1), brokertest.UniqueName(t, "app")
			fill(t, in, 1, 42)
			client, err := sarama.NewClient(brokers, brokertest.Config())
			must(t, err)
			defer client.Close()
			id := app + "-" + owner
			b, err := client.TransactionCoordinator(id)
			must(t, err)
			openOffsets(t, client, b, id, app, in, 42) // for longer than the test waits
			p := start(t, options(brokers, app, "p"), tasks(in, 1, "")...).ports[0]
			if l := leases(t, p, 1)[processor.TaskID{}]; l.Inputs[0].Offset != 0 {
				t.Errorf("lease %+v", l)
			}
			mustCommit(t, p, processor.Commit{Positions: []processor.Position{position(in, 0, 1)}})
		})
	}
}

// TestOthersTransactionsGoOn: those of a living process, and of an application whose name begins with this one's.
func TestOthersTransactionsGoOn(t *testing.T) {
	t.Parallel()
	brokers := brokertest.Brokers(t)
	in, app := brokertest.Topic(t, "in", 2), brokertest.UniqueName(t, "app")
	fill(t, in, 2, 42)
	a := start(t, options(brokers, app, "a"), tasks(in, 2, "")...)
	leases(t, a.ports[0], 2)
	client, err := sarama.NewClient(brokers, brokertest.Config())
	must(t, err)
	defer client.Close()
	var ends []func()
	for _, id := range []string{app + "-a-0", app + "-longer-q-0"} {
		b, err := client.TransactionCoordinator(id)
		must(t, err)
		ends = append(ends, openOffsets(t, client, b, id, app+"-other", in, 42))
	}
	b := start(t, options(brokers, app, "b"), tasks(in, 2, "")...)
	revoked := processor.TaskID{Partition: -1}
	until(t, a.ports[0], "a revocation", func(e runtime.Events) bool {
		for _, id := range e.Revoked {
			revoked = id
		}
		return revoked.Partition >= 0
	})
	a.ports[0].Release(revoked)
	leases(t, b.ports[0], 1)
	b.cluster.group.abortLeftovers() // again, to have it done
	for _, end := range ends {
		end()
	}
}

// TestTroubleIsSaidOnce: what lasts is not said each time, and what is over is said when it is over for all.
func TestTroubleIsSaidOnce(t *testing.T) {
	t.Parallel()
	var log logged
	x := trouble{log: log.logger(slog.LevelInfo), what: "it is broken", over: "it is well"}
	err := errors.New("no luck")
	for range 100 {
		x.has("a", err)
		x.has("b", err, "who", "b")
	}
	x.left("a")
	if n, over := log.count("it is broken"), log.count("it is well"); n != 1 || over != 0 {
		t.Errorf("said %d times, over %d times", n, over)
	}
	x.said = x.said.Add(-sayAgain)
	x.has("b", err)
	x.left("b")
	x.left("b")
	if n, over := log.count("it is broken"), log.count("it is well"); n != 2 || over != 1 {
		t.Errorf("said %d times, over %d times", n, over)
	}
	x.has("c", err)
	x.forget("c") // without a word
	if n, over := log.count("it is broken"), log.count("it is well"); n != 3 || over != 1 {
		t.Errorf("said %d times, over %d times", n, over)
	}
	x.after = time.Hour
	x.has("d", err)
	x.left("d")
	if n, over := log.count("it is broken"), log.count("it is well"); n != 3 || over != 1 {
		t.Errorf("what is over soon was said: %d times, over %d times", n, over)
	}
}
