package kafka

import (
	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/eos"
	"github.com/millrace-streams/millrace/processor"
)

// coordinator is a broker that is looked up by a name and may move.
type coordinator struct {
	find    func(name string) (*sarama.Broker, error)
	refresh func(name string) error
	name    string
}

func (k *committer) ofTransactions() coordinator {
	return coordinator{k.cluster.control.TransactionCoordinator, k.cluster.control.RefreshTransactionCoordinator, k.id}
}

func (k *committer) ofGroup() coordinator {
	return coordinator{k.cluster.control.Coordinator, k.cluster.control.RefreshCoordinator, k.cluster.cfg.App}
}

// ask makes a request to a coordinator. request returns a failure on the way or the broker's refusal, and so does ask. After
// a failure the connection is replaced; the coordinator is looked for anew when it may be another broker.
func (k *committer) ask(whom coordinator, request func(*sarama.Broker) error) error {
	known, err := whom.find(whom.name)
	if err == nil {
		err = k.request(known.Addr(), request)
	}
	if misplaced(err) {
		_ = whom.refresh(whom.name) // if it cannot be found, the next try says so
	}
	return err
}

// request makes a request on the connection to a broker, which is replaced after a failure.
func (k *committer) request(addr string, request func(*sarama.Broker) error) error {
	b, err := k.lines.to(addr)
	if err != nil {
		return err
	}
	err = request(b)
	if _, answered := refusal(err); err != nil && !answered {
		k.lines.drop(b)
	}
	return err
}

// code returns a broker's error code as an error, nil for none.
func code(e sarama.KError) error {
	if e == sarama.ErrNoError {
		return nil
	}
	return e
}

// initProducer gets a new epoch. The broker aborts what is open under the transactional id.
func (k *committer) initProducer() error {
	if k.id == "" {
		return nil
	}
	return k.ask(k.ofTransactions(), func(b *sarama.Broker) error {
		resp, err := b.InitProducerID(&sarama.InitProducerIDRequest{
			Version: 4, TransactionalID: &k.id, TransactionTimeout: k.cluster.cfg.TransactionTimeout, ProducerID: -1, ProducerEpoch: -1,
		})
		if err != nil {
			return err
		}
		if resp.Err != sarama.ErrNoError {
			return resp.Err
		}
		k.producer = &producer{id: resp.ProducerID, epoch: resp.ProducerEpoch, transactional: true, next: map[processor.TopicPartition]int32{}}
		return nil
	})
}

// addPartitions begins the transaction with all partitions that the commit writes to.
func (k *committer) addPartitions() (eos.Verdict, error) {
	var w worst
	err := k.ask(k.ofTransactions(), func(b *sarama.Broker) error {
		resp, err := b.AddPartitionsToTxn(&sarama.AddPartitionsToTxnRequest{
			Version: 3, TransactionalID: k.id, ProducerID: k.producer.id, ProducerEpoch: k.producer.epoch, TopicPartitions: k.plan.partitions(),
		})
		if err != nil {
			return err
		}
		return k.eachRefusal(eos.AddPartitions, resp.Errors, &w)
	})
	if err != nil {
		w.add(judge(eos.AddPartitions, err), err)
	}
	return w.verdict, w.err
}

// eachRefusal judges the answers about single partitions, and returns one that says that the coordinator is elsewhere.
func (k *committer) eachRefusal(kind eos.Kind, answers map[string][]*sarama.PartitionError, w *worst) error {
	var elsewhere error
	for topic, partitions := range answers {
		for _, p := range partitions {
			if p.Err == sarama.ErrNoError {
				continue
			}
			tp := processor.TopicPartition{Topic: topic, Partition: p.Partition}
			err := &PartitionError{TopicPartition: tp, Err: p.Err}
			w.add(k.bounded(tp, judge(kind, err), err))
			if misplaced(p.Err) {
				elsewhere = p.Err
			}
		}
	}
	return elsewhere
}

// addOffsets makes the group's offsets part of the transaction.
func (k *committer) addOffsets() error {
	return k.ask(k.ofTransactions(), func(b *sarama.Broker) error {
		resp, err := b.AddOffsetsToTxn(&sarama.AddOffsetsToTxnRequest{
			Version: 3, TransactionalID: k.id, ProducerID: k.producer.id, ProducerEpoch: k.producer.epoch, GroupID: k.cluster.cfg.App,
		})
		if err != nil {
			return err
		}
		return code(resp.Err)
	})
}

// commitOffsets commits the positions in the name of the group's member, so that they are refused when its leases have
// gone to somebody else.
func (k *committer) commitOffsets() (eos.Verdict, error) {
	member, ok := k.port.group.membership()
	switch {
	case k.disowned():
		return eos.Lost, ErrNotMember
	case !ok: // it is about to begin, or to be lost
		return eos.Retry, ErrNotMember
	}
	var w worst
	err := k.ask(k.ofGroup(), func(b *sarama.Broker) error {
		answers, err := k.sendOffsets(b, member)
		if err != nil {
			return err
		}
		return k.eachRefusal(eos.CommitOffsets, answers, &w)
	})
	if err != nil {
		w.add(judge(eos.CommitOffsets, err), err)
	}
	if code, _ := refusal(w.err); code == sarama.ErrUnknownMemberId {
		k.port.group.expelled(member)
	}
	if w.verdict == eos.Lost && between(w.err) && !k.disowned() {
		// A rebalance is under way that leaves the leases alone: the group is about to tell the new generation. If it
		// does not, it says that the leases are lost.
		return eos.Retry, w.err
	}
	return w.verdict, w.err
}

// disowned reports whether leases were lost since the worker last knew of it when it made this commit.
func (k *committer) disowned() bool { return k.port.losses.Load() != k.job.losses }

// between reports a refusal that members get while the group is between two generations.
func between(err error) bool {
	code, _ := refusal(err)
	return code == sarama.ErrIllegalGeneration || code == sarama.ErrRebalanceInProgress
}

// sendOffsets makes the request that the guarantee calls for.
func (k *committer) sendOffsets(b *sarama.Broker, m member) (map[string][]*sarama.PartitionError, error) {
	if k.id == "" {
		return k.cluster.commitPlainly(b, m, k.job.commit.Positions)
	}
	topics := map[string][]*sarama.PartitionOffsetMetadata{}
	for i := range k.job.commit.Positions {
		p := &k.job.commit.Positions[i]
		topics[p.Topic] = append(topics[p.Topic], &sarama.PartitionOffsetMetadata{Partition: p.Partition, Offset: p.Offset, LeaderEpoch: -1, Metadata: &p.Metadata})
	}
	resp, err := b.TxnOffsetCommit(&sarama.TxnOffsetCommitRequest{
		Version: 3, TransactionalID: k.id, GroupID: k.cluster.cfg.App, ProducerID: k.producer.id, ProducerEpoch: k.producer.epoch,
		GenerationID: m.generation, MemberID: m.id, GroupInstanceID: m.instance, Topics: topics,
	})
	if err != nil {
		return nil, err
	}
	return resp.Topics, nil
}

// commitPlainly commits offsets outside of any transaction.
func (c *Cluster) commitPlainly(b *sarama.Broker, m member, positions []processor.Position) (map[string][]*sarama.PartitionError, error) {
	req := &sarama.OffsetCommitRequest{
		Version: 7, ConsumerGroup: c.cfg.App, ConsumerGroupGeneration: m.generation, ConsumerID: m.id, GroupInstanceId: m.instance,
	}
	for _, p := range positions {
		req.AddBlockWithLeaderEpoch(p.Topic, p.Partition, p.Offset, -1, 0, p.Metadata)
	}
	resp, err := b.CommitOffset(req)
	if err != nil {
		return nil, err
	}
	answers := map[string][]*sarama.PartitionError{}
	for topic, partitions := range resp.Errors {
		for p, e := range partitions {
			answers[topic] = append(answers[topic], &sarama.PartitionError{Partition: p, Err: e})
		}
	}
	return answers, nil
}

// endCommit commits the transaction. Asking again is harmless: a commit that has happened is confirmed.
func (k *committer) endCommit() (eos.Verdict, error) {
	if !k.asked && k.disowned() {
		return eos.Lost, ErrNotMember
	}
	err := k.ask(k.ofTransactions(), func(b *sarama.Broker) error {
		k.asked = true
		resp, err := b.EndTxn(&sarama.EndTxnRequest{
			Version: 3, TransactionalID: k.id, ProducerID: k.producer.id, ProducerEpoch: k.producer.epoch, TransactionResult: true,
		})
		if err != nil {
			return err
		}
		return code(resp.Err)
	})
	return judge(eos.EndCommit, err), err
}
