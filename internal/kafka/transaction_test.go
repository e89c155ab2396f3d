package kafka

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/eos"
	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
)

// fence takes over a transactional id as another process would.
func fence(t *testing.T, brokers []string, id string) {
	t.Helper()
	client, err := sarama.NewClient(brokers, brokertest.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	brokertest.Eventually(t, patience, func() (bool, string) {
		b, err := client.TransactionCoordinator(id)
		if err != nil {
			return false, err.Error()
		}
		resp, err := b.InitProducerID(&sarama.InitProducerIDRequest{Version: 4, TransactionalID: &id, TransactionTimeout: patience, ProducerID: -1, ProducerEpoch: -1})
		if err != nil {
			return false, err.Error()
		}
		return resp.Err == sarama.ErrNoError, resp.Err.Error()
	})
}

func TestTransactionsBackToBackThenFenced(t *testing.T) {
	t.Parallel()
	brokers := brokertest.Brokers(t)
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg := options(brokers, brokertest.UniqueName(t, "app"), "p")
	p := start(t, cfg, tasks(in, 1, "")...).ports[0]
	leases(t, p, 1)
	commit := func(i int) processor.Commit {
		return processor.Commit{Records: [][]processor.Output{{output(out, 0, "k", fmt.Sprint(i))}}, Positions: []processor.Position{position(in, 0, int64(i))}}
	}
	for i := range 200 {
		mustCommit(t, p, commit(i))
	}
	fence(t, brokers, cfg.App+"-p-0")
	done := outcome(t, p, commit(200))
	if done.Outcome != eos.Aborted || !errors.Is(done.Err, sarama.ErrProducerFenced) && !errors.Is(done.Err, sarama.ErrInvalidProducerEpoch) {
		t.Fatalf("fenced: %s, %v", done.Outcome, done.Err)
	}
	mustCommit(t, p, commit(201)) // the worker lives on, under a newer epoch
	brokertest.Eventually(t, patience, func() (bool, string) {
		got := values(brokertest.ReadCommitted(t, brokers, out))
		return len(got) == 201 && got[199] == "199" && got[200] == "201", fmt.Sprint(got)
	})
}

func values(records []brokertest.Record) []string {
	var vs []string
	for _, r := range records {
		vs = append(vs, string(r.Value))
	}
	return vs
}

// TestLostAnswers: whatever answer gets lost, the call is made again, and the commit happens once.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]int16{
		"InitProducerId": keyInitProducer, "AddPartitionsToTxn": keyAddPartitions, "Produce": keyProduce, "AddOffsetsToTxn": keyAddOffsets,
		"TxnOffsetCommit": keyOffsetCommit, "EndTxn": keyEndTxn,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brokers := brokertest.Brokers(t)
			in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 2)
			network := &lossy{lose: map[int16]int{key: 2}}
			cfg := options(brokers, brokertest.UniqueName(t, "app"), "p")
			cfg.Configure = network.configure
			p := start(t, cfg, tasks(in, 1, "")...).ports[0]
			leases(t, p, 1)
			for i := range 2 {
				v := fmt.Sprint(i)
				mustCommit(t, p, processor.Commit{
					Records:   [][]processor.Output{{output(out, 0, "a", v), output(out, 1, "b", v), output(out, 0, "c", v)}},
					Positions: []processor.Position{position(in, 0, int64(i))},
				})
			}
			if network.losses() != 2 {
				t.Errorf("%d answers were lost, not 2", network.losses())
			}
			brokertest.Eventually(t, patience, func() (bool, string) {
				got := values(brokertest.ReadCommitted(t, brokers, out))
				return slices.Equal(got, []string{"0", "0", "1", "1", "0", "1"}), fmt.Sprint(got)
			})
		})
	}
}

// TestStaleGenerationIsRefused: a member that the group has thrown out cannot commit, though nobody has told it yet.
func TestStaleGenerationIsRefused(t *testing.T) {
	t.Parallel()
	brokers := brokertest.Brokers(t)
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg := options(brokers, brokertest.UniqueName(t, "app"), "p")
	cfg.HeartbeatInterval = cfg.SessionTimeout - 1 // it does not ask
	proc := start(t, cfg, tasks(in, 1, "")...)
	p := proc.ports[0]
	leases(t, p, 1)
	m := joined(t, proc.cluster)
	if err := proc.cluster.group.sendLeave(m, "a test"); err != nil {
		t.Fatal(err)
	}
	done := outcome(t, p, processor.Commit{Records: [][]processor.Output{{output(out, 0, "k", "zombie")}}, Positions: []processor.Position{position(in, 0, 1)}})
	// Either the broker refuses it, or the process has been told meanwhile.
	if done.Outcome != eos.Aborted || !errors.Is(done.Err, sarama.ErrUnknownMemberId) && !errors.Is(done.Err, ErrNotMember) {
		t.Fatalf("a stale member's commit: %s, %v", done.Outcome, done.Err)
	}
	if got := brokertest.ReadCommitted(t, brokers, out); len(got) != 0 {
		t.Errorf("its records are visible: %v", got)
	}
	if got := brokertest.GroupOffsets(t, brokers, cfg.App, in); got[0] != 0 {
		t.Errorf("its offsets are committed: %v", got)
	}
}

// TestLostLeaseEndsTheCommit: a commit that is under way when the leases are lost is not finished, though it has no
// positions that the broker would refuse.
func TestLostLeaseEndsTheCommit(t *testing.T) {
	t.Parallel()
	brokers := brokertest.Brokers(t)
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	proc := start(t, options(brokers, brokertest.UniqueName(t, "app"), "p"), tasks(in, 1, "")...)
	p := proc.ports[0].(*Port)
	leases(t, p, 1)
	p.committer.work <- job{commit: processor.Commit{Records: [][]processor.Output{{output(out, 0, "k", "late")}}}, losses: p.losses.Load() - 1}
	var done *runtime.CommitDone
	until(t, p, "the outcome", func(e runtime.Events) bool { done = e.Commit; return done != nil })
	if done.Outcome != eos.Aborted || !errors.Is(done.Err, ErrNotMember) {
		t.Fatalf("%s, %v", done.Outcome, done.Err)
	}
}

func TestRecordTooLarge(t *testing.T) {
	t.Parallel()
	brokers := brokertest.Brokers(t)
	in, out := brokertest.Topic(t, "in", 1), brokertest.UniqueName(t, "small")
	brokertest.CreateTopic(t, brokers, out, 1, map[string]string{"max.message.bytes": "20000"})
	p := start(t, options(brokers, brokertest.UniqueName(t, "app"), "p"), tasks(in, 1, "")...).ports[0]
	leases(t, p, 1)
	var many processor.Commit
	for i := range 100 {
		many.Records = append(many.Records, []processor.Output{output(out, 0, fmt.Sprint(i), string(make([]byte, 1000)))})
	}
	mustCommit(t, p, many) // too large as one batch, not as several
	if got := fetched(t, p, processor.TopicPartition{Topic: out}, 0, 100); len(got) != 100 || string(got[99].Key) != "99" {
		t.Errorf("%d records were written", len(got))
	}
	done := outcome(t, p, processor.Commit{Records: [][]processor.Output{{output(out, 0, "k", string(make([]byte, 50_000)))}}})
	var where *PartitionError
	if done.Outcome != eos.Failed || !errors.Is(done.Err, sarama.ErrMessageSizeTooLarge) || !errors.As(done.Err, &where) || where.Topic != out {
		t.Errorf("%s, %v", done.Outcome, done.Err)
	}
}
