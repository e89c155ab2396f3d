package kafka

import (
	"errors"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
)

// TestHandOver: a newcomer gets its share after the former owner has finished, and everything when that one stops.
func TestHandOver(t *testing.T) {
	t.Parallel()
	brokers := brokertest.Brokers(t)
	in, log := brokertest.Topic(t, "in", 4), brokertest.Topic(t, "log", 4)
	app := brokertest.UniqueName(t, "app")
	fill(t, in, 4, 5)
	a := start(t, options(brokers, app, "a"), tasks(in, 4, log)...)
	first := leases(t, a.ports[0], 4)
	if len(first) != 4 {
		t.Fatalf("leases %v", first)
	}
	b := start(t, options(brokers, app, "b"), tasks(in, 4, log)...)

	// What a does for the tasks that it has to give up is what b gets.
	revoked := map[processor.TaskID]bool{}
	until(t, a.ports[0], "two revocations", func(e runtime.Events) bool {
		for _, id := range e.Revoked {
			revoked[id] = true
		}
		if len(e.Lost)+len(active(e.Granted)) > 0 {
			t.Fatalf("unexpected %+v", e)
		}
		return len(revoked) == 2
	})
	if e := b.ports[0].Poll(0); len(active(e.Granted)) > 0 {
		t.Fatalf("granted before it is released: %+v", e.Granted)
	}
	var last processor.Commit
	for id := range revoked {
		last.Join(processor.Commit{Writes: []processor.Writes{writes(log, id.Partition, "k", "v")}, Positions: []processor.Position{position(in, id.Partition, 5)}})
	}
	deleteAt := mustCommit(t, a.ports[0], last).Ends
	for id := range revoked {
		a.ports[0].Release(id)
	}
	for id, l := range leases(t, b.ports[0], 2) {
		if !revoked[id] || l.Inputs[0].Offset != 5 || l.Changelogs[0].End < deleteAt[l.Changelogs[0].TopicPartition] {
			t.Errorf("task %s is handed over with %+v", id, l)
		}
	}

	a.stop()
	until(t, a.ports[0], "the call to stop", func(e runtime.Events) bool { return e.Stop })
	began := time.Now()
	for id := range first {
		if !revoked[id] {
			a.ports[0].Release(id)
		}
	}
	rest := leases(t, b.ports[0], 2)
	for id := range rest {
		if revoked[id] {
			t.Errorf("task %s is granted twice", id)
		}
	}
	if took := time.Since(began); took > 4*time.Second { // the session lasts 6
		t.Errorf("it took %v until the others had the tasks of a process that has stopped", took)
	}
}

func TestWorkersShareTasks(t *testing.T) {
	t.Parallel()
	in := brokertest.Topic(t, "in", 4)
	cfg := options(brokertest.Brokers(t), brokertest.UniqueName(t, "app"), "p")
	cfg.Workers = 2
	proc := start(t, cfg, tasks(in, 4, "")...)
	if len(proc.ports) != 2 {
		t.Fatalf("%d ports", len(proc.ports))
	}
	for _, p := range proc.ports {
		if got := leases(t, p, 2); len(got) != 2 {
			t.Errorf("%d leases", len(got))
		}
	}
}

// TestReleasedIsGrantedAnew: a worker that gives a task back on its own account gets it again, with the positions of then.
func TestReleasedIsGrantedAnew(t *testing.T) {
	t.Parallel()
	in := brokertest.Topic(t, "in", 2)
	fill(t, in, 2, 33)
	p := start(t, options(brokertest.Brokers(t), brokertest.UniqueName(t, "app"), "p"), tasks(in, 2, "")...).ports[0]
	leases(t, p, 2)
	mustCommit(t, p, processor.Commit{Positions: []processor.Position{position(in, 1, 33)}})
	task := processor.TaskID{Partition: 1}
	p.Release(task)
	got := leases(t, p, 1)
	if l := got[task]; len(got) != 1 || l.Inputs[0].Offset != 33 {
		t.Errorf("granted anew: %+v", got)
	}
}

// TestTheSameProcessTwice: the second one takes over the first one's place in the group at once, as after a crash; the
// first, should it still live, is told.
func TestTheSameProcessTwice(t *testing.T) {
	t.Parallel()
	brokers := brokertest.Brokers(t)
	in, app := brokertest.Topic(t, "in", 2), brokertest.UniqueName(t, "app")
	a := start(t, options(brokers, app, "same"), tasks(in, 2, "")...)
	leases(t, a.ports[0], 2)
	b := start(t, options(brokers, app, "same"), tasks(in, 2, "")...)
	// The later one takes the place of the first, which joins anew, since it might have been an earlier life of itself, and
	// takes it back. Who is put out twice is told.
	deadline := time.Now().Add(patience)
	granted, told := map[runtime.Port]int{}, map[runtime.Port]bool{}
	for one := a.ports[0]; len(told) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("neither is told")
		}
		e := one.Poll(100 * time.Millisecond)
		closeLost(one, e)
		granted[one] += len(e.Granted) - len(e.Lost)
		switch {
		case errors.Is(e.Fatal, ErrInstanceFenced):
			told[one] = true
		case e.Fatal != nil:
			t.Fatal(e.Fatal)
		}
		if one == a.ports[0] {
			one = b.ports[0]
		} else {
			one = a.ports[0]
		}
	}
	other := a.ports[0]
	if told[other] {
		other = b.ports[0]
	}
	until(t, other, "the other goes on", func(e runtime.Events) bool {
		if e.Fatal != nil {
			t.Fatalf("both are told: %v", e.Fatal)
		}
		closeLost(other, e)
		granted[other] += len(e.Granted) - len(e.Lost)
		return granted[other] == 2
	})
}

func closeLost(p runtime.Port, e runtime.Events) {
	for _, id := range e.Lost {
		p.Closed(id)
	}
}

// TestAFencedMemberJoinsAnew: a process whose member id the group has replaced, as when the answer to a join was lost, is not
// taken for two.
func TestAFencedMemberJoinsAnew(t *testing.T) {
	t.Parallel()
	brokers := brokertest.Brokers(t)
	in, app := brokertest.Topic(t, "in", 2), brokertest.UniqueName(t, "app")
	a := start(t, options(brokers, app, "same"), tasks(in, 2, "")...)
	leases(t, a.ports[0], 2)
	b := start(t, options(brokers, app, "same"), tasks(in, 2, "")...) // joins under the same id, and dies at once
	leases(t, b.ports[0], 2)
	b.cluster.cancel()
	lost, again := 0, 0
	until(t, a.ports[0], "losing and getting the tasks", func(e runtime.Events) bool {
		if e.Fatal != nil {
			t.Fatal(e.Fatal)
		}
		closeLost(a.ports[0], e)
		lost += len(e.Lost)
		again += len(e.Granted)
		return lost >= 2 && again >= 2
	})
}

// TestLostMembership: a process that was thrown out loses its leases and comes back.
func TestLostMembership(t *testing.T) {
	t.Parallel()
	in := brokertest.Topic(t, "in", 2)
	proc := start(t, options(brokertest.Brokers(t), brokertest.UniqueName(t, "app"), "p"), tasks(in, 2, "")...)
	p := proc.ports[0]
	leases(t, p, 2)
	m := joined(t, proc.cluster)
	must(t, proc.cluster.group.sendLeave(m, "a test"))
	lost, again := 0, 0
	until(t, p, "losing and getting the tasks", func(e runtime.Events) bool {
		if again > 0 && len(e.Lost) > 0 {
			t.Fatal("lost after it was granted")
		}
		for _, id := range e.Lost {
			p.Closed(id)
		}
		lost, again = lost+len(e.Lost), again+len(e.Granted)
		return lost == 2 && again == 2
	})
	mustCommit(t, p, processor.Commit{Positions: []processor.Position{position(in, 0, 3)}})
}

// TestLeaseWaitsForOpenTransaction: positions that a transaction is about to change are not taken.
func TestLeaseWaitsForOpenTransaction(t *testing.T) {
	t.Parallel()
	brokers := brokertest.Brokers(t)
	in, app := brokertest.Topic(t, "in", 1), brokertest.UniqueName(t, "app")
	fill(t, in, 1, 42)
	cfg := brokertest.Config()
	cfg.Producer.Transaction.ID = brokertest.UniqueName(t, "tx")
	client, err := sarama.NewClient(brokers, cfg)
	must(t, err)
	defer client.Close()
	b, err := client.TransactionCoordinator(cfg.Producer.Transaction.ID)
	must(t, err)
	end := openOffsets(t, client, b, cfg.Producer.Transaction.ID, app, in, 42)

	p := start(t, options(brokers, app, "p"), tasks(in, 1, "")...).ports[0].(*Port)
	joined(t, p.cluster)
	positions, err := p.cluster.committedOffsets([]processor.TopicPartition{{Topic: in}})
	if got := positions[processor.TopicPartition{Topic: in}]; err != nil || !errors.Is(got.err, sarama.ErrUnstableOffsetCommit) {
		t.Errorf("an unstable position: %+v, %v", got, err)
	}
	end()
	if l := leases(t, p, 1)[processor.TaskID{}]; l.Inputs[0].Offset != 42 {
		t.Errorf("lease %+v", l)
	}
}

// openOffsets leaves a transaction open that commits an offset of the group, and returns what commits it.
func openOffsets(t *testing.T, client sarama.Client, b *sarama.Broker, id, group, topic string, offset int64) (end func()) {
	t.Helper()
	var pid *sarama.InitProducerIDResponse
	brokertest.Eventually(t, patience, func() (bool, string) { // a broker that has just started may not be ready for either
		var err error
		pid, err = b.InitProducerID(&sarama.InitProducerIDRequest{Version: 4, TransactionalID: &id, TransactionTimeout: patience, ProducerID: -1, ProducerEpoch: -1})
		must(t, err)
		return pid.Err == sarama.ErrNoError, pid.Err.Error()
	})
	brokertest.Eventually(t, patience, func() (bool, string) {
		added, err := b.AddOffsetsToTxn(&sarama.AddOffsetsToTxnRequest{Version: 3, TransactionalID: id, ProducerID: pid.ProducerID, ProducerEpoch: pid.ProducerEpoch, GroupID: group})
		must(t, err)
		return added.Err == sarama.ErrNoError, added.Err.Error()
	})
	g, err := client.Coordinator(group)
	must(t, err)
	brokertest.Eventually(t, patience, func() (bool, string) {
		resp, err := g.TxnOffsetCommit(&sarama.TxnOffsetCommitRequest{
			Version: 3, TransactionalID: id, GroupID: group, ProducerID: pid.ProducerID, ProducerEpoch: pid.ProducerEpoch, GenerationID: -1,
			Topics: map[string][]*sarama.PartitionOffsetMetadata{topic: {{Offset: offset, LeaderEpoch: -1}}},
		})
		must(t, err)
		e := resp.Topics[topic][0].Err
		return e == sarama.ErrNoError, e.Error()
	})
	return func() {
		resp, err := b.EndTxn(&sarama.EndTxnRequest{Version: 3, TransactionalID: id, ProducerID: pid.ProducerID, ProducerEpoch: pid.ProducerEpoch, TransactionResult: true})
		must(t, err)
		must(t, code(resp.Err))
	}
}

// TestCommittedPositionWasDeleted: records that were deleted before they were processed are not passed over in silence.
func TestCommittedPositionWasDeleted(t *testing.T) {
	t.Parallel()
	brokers := brokertest.Brokers(t)
	in, app := brokertest.Topic(t, "in", 1), brokertest.UniqueName(t, "app")
	produce(t, in, 10, 10)
	a := start(t, options(brokers, app, "a"), tasks(in, 1, "")...)
	leases(t, a.ports[0], 1)
	mustCommit(t, a.ports[0], processor.Commit{Positions: []processor.Position{position(in, 0, 5)}})
	must(t, a.cluster.Close())
	deleteRecords(t, brokers, in, 8)
	b := start(t, options(brokers, app, "b"), tasks(in, 1, "")...)
	deadline := time.Now().Add(patience)
	for {
		e := b.ports[0].Poll(100 * time.Millisecond)
		var gone *LostInputError
		if errors.As(e.Fatal, &gone) {
			if gone.Topic != in || gone.Committed != 5 || gone.Start != 8 {
				t.Errorf("fatal: %v", e.Fatal)
			}
			return
		}
		if len(e.Granted) > 0 || e.Fatal != nil || time.Now().After(deadline) {
			t.Fatalf("granted %+v, fatal %v", e.Granted, e.Fatal)
		}
	}
}

func TestOffsetResetLatest(t *testing.T) {
	t.Parallel()
	in := brokertest.Topic(t, "in", 1)
	produce(t, in, 10, 10)
	cfg := options(brokertest.Brokers(t), brokertest.UniqueName(t, "app"), "p")
	cfg.OffsetReset = Latest
	if l := leases(t, start(t, cfg, tasks(in, 1, "")...).ports[0], 1)[processor.TaskID{}]; l.Inputs[0].Offset != 10 {
		t.Errorf("lease %+v", l)
	}
}

// TestGrantIsSeenAfterTheLoss: events about one task come in their order, though a worker reads grants first.
func TestGrantIsSeenAfterTheLoss(t *testing.T) {
	t.Parallel()
	p := &Port{signal: make(chan struct{}, 1)}
	task, other := processor.TaskID{Partition: 1}, processor.TaskID{Partition: 2}
	p.post(func(e *runtime.Events) { e.Lost = append(e.Lost, task) })
	p.post(func(e *runtime.Events) {
		e.Granted = append(e.Granted, runtime.Lease{Task: task}, runtime.Lease{Task: other})
	})
	if e := p.Poll(time.Second); len(e.Lost) != 1 || len(e.Granted) != 1 || e.Granted[0].Task != other {
		t.Fatalf("first %+v", e)
	}
	if e := p.Poll(time.Second); len(e.Lost) != 0 || len(e.Granted) != 1 || e.Granted[0].Task != task {
		t.Fatalf("then %+v", e)
	}
	p.post(func(e *runtime.Events) { e.Granted = append(e.Granted, runtime.Lease{Task: task}) })
	if !p.withdraw(task) || p.withdraw(task) {
		t.Error("an unseen grant cannot be withdrawn, or twice")
	}
	if e := p.Poll(0); len(e.Granted) != 0 {
		t.Errorf("withdrawn: %+v", e)
	}
}

// TestForgottenOffset: a coordinator that does not know a position that was committed is asked again, not believed.
func TestForgottenOffset(t *testing.T) {
	t.Parallel()
	in := brokertest.Topic(t, "in", 1)
	cfg := options(brokertest.Brokers(t), brokertest.UniqueName(t, "app"), "p")
	cfg.LossAfter = 200 * time.Millisecond
	fill(t, in, 1, 50)
	p := start(t, cfg, tasks(in, 1, "")...).ports[0].(*Port)
	leases(t, p, 1)
	mustCommit(t, p, processor.Commit{Positions: []processor.Position{position(in, 0, 33)}})
	p.group.committed([]processor.Position{position(in, 0, 50)})
	p.Release(processor.TaskID{})
	deadline := time.Now().Add(patience)
	for {
		e := p.Poll(100 * time.Millisecond)
		var forgotten *OffsetForgottenError
		if errors.As(e.Fatal, &forgotten) {
			if forgotten.Topic != in || forgotten.Committed != 50 || forgotten.Answer != 33 {
				t.Errorf("fatal: %v", e.Fatal)
			}
			return
		}
		if len(e.Granted) > 0 || e.Fatal != nil || time.Now().After(deadline) {
			t.Fatalf("granted %+v, fatal %v", e.Granted, e.Fatal)
		}
	}
}

// TestPredecessorsTransactionIsAborted: what a killed process left open does not hold up its successor.
func TestPredecessorsTransactionIsAborted(t *testing.T) {
	t.Parallel()
	brokers := brokertest.Brokers(t)
	in, app := brokertest.Topic(t, "in", 1), brokertest.UniqueName(t, "app")
	client, err := sarama.NewClient(brokers, brokertest.Config())
	must(t, err)
	defer client.Close()
	id := app + "-p-0"
	b, err := client.TransactionCoordinator(id)
	must(t, err)
	openOffsets(t, client, b, id, app, in, 42) // for longer than the test waits
	p := start(t, options(brokers, app, "p"), tasks(in, 1, "")...).ports[0]
	if l := leases(t, p, 1)[processor.TaskID{}]; l.Inputs[0].Offset != 0 {
		t.Errorf("lease %+v", l)
	}
	mustCommit(t, p, processor.Commit{Positions: []processor.Position{position(in, 0, 1)}})
}
