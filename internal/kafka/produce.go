package kafka

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/eos"
	"github.com/millrace-streams/millrace/processor"
)

// produce sends what is not acknowledged yet, piece by piece, in rounds: one request per leader, in it at most one batch per
// partition. The next round begins when all have answered, so batches of a partition can neither overtake one another nor be
// sent after one that was refused.
func (k *committer) produce() (eos.Verdict, error) {
	for {
		byLeader, w := k.round()
		if len(byLeader) == 0 && w.verdict == eos.OK {
			if !k.plan.next(k.producer, k.cluster.codec) {
				return eos.OK, nil
			}
			continue
		}
		for _, other := range k.send(byLeader) {
			w.add(other.verdict, other.err)
		}
		if w.verdict != eos.OK {
			return w.verdict, w.err
		}
	}
}

// round chooses, for each leader, the partitions whose next batch to send. w is OK unless a leader is not known.
func (k *committer) round() (byLeader map[string][]*part, w worst) {
	byLeader = map[string][]*part{}
	size := map[string]int{}
	for _, x := range k.plan.parts {
		if len(x.batches) == 0 {
			continue
		}
		addr, err := k.cluster.leader(x.TopicPartition)
		if err != nil {
			w.add(k.bounded(x.TopicPartition, eos.Retry, err))
			continue
		}
		if size[addr] > 0 && size[addr]+k.plan.batchBytes > requestBytes {
			continue // next round
		}
		size[addr] += k.plan.batchBytes
		byLeader[addr] = append(byLeader[addr], x)
	}
	return byLeader, w
}

// send makes the requests of a round at the same time and waits for all answers.
func (k *committer) send(byLeader map[string][]*part) []worst {
	answers := make([]worst, 0, len(byLeader))
	var mu sync.Mutex
	var requests sync.WaitGroup
	for addr, parts := range byLeader {
		one := func() {
			w := k.sendTo(addr, parts)
			mu.Lock()
			answers = append(answers, w)
			mu.Unlock()
		}
		if len(byLeader) == 1 {
			one()
		} else {
			requests.Go(one)
		}
	}
	requests.Wait()
	k.relocate(byLeader, answers)
	return answers
}

// sendTo sends the first batch of each of the parts to their leader.
func (k *committer) sendTo(addr string, parts []*part) (w worst) {
	timeout := min(produceTimeout, k.cluster.conf.Net.ReadTimeout*2/3)
	req := &sarama.ProduceRequest{Version: 8, RequiredAcks: sarama.WaitForAll, Timeout: int32(timeout / time.Millisecond)}
	if k.id != "" {
		req.TransactionalID = &k.id
	}
	for _, x := range parts {
		req.AddBatch(x.Topic, x.Partition, x.batches[0])
	}
	err := k.request(addr, func(b *sarama.Broker) error {
		resp, err := b.Produce(req)
		if err != nil {
			return err
		}
		for _, x := range parts {
			w.add(x.acknowledge(resp.GetBlock(x.Topic, x.Partition)))
		}
		return nil
	})
	if err != nil {
		w.add(judge(eos.Produce, err), err)
	}
	return w
}

// acknowledge takes the answer about the first batch.
func (x *part) acknowledge(block *sarama.ProduceResponseBlock) (eos.Verdict, error) {
	if block == nil {
		return eos.NoAnswer, errNoAnswer
	}
	if block.Err != sarama.ErrNoError {
		err := &PartitionError{TopicPartition: x.TopicPartition, Err: block.Err, Message: message(block)}
		v := judge(eos.Produce, err)
		if v == eos.Broken && tooLarge[block.Err] && x.split() {
			return eos.Retry, err
		}
		if v != eos.OK {
			return v, err
		}
	}
	x.end = block.Offset + int64(x.batches[0].LastOffsetDelta) + 1
	if block.Offset < 0 { // a repeated batch whose place the broker has forgotten
		x.end = -1
	}
	x.batches = x.batches[1:]
	return eos.OK, nil
}

var tooLarge = map[sarama.KError]bool{sarama.ErrMessageSizeTooLarge: true, sarama.ErrMessageSetSizeTooLarge: true}

// split makes two batches of the first one, with the sequence numbers that the records had. It reports whether there was
// more than one record.
func (x *part) split() bool {
	whole := x.batches[0]
	half := len(whole.Records) / 2
	if half == 0 {
		return false
	}
	first, second := newBatch(whole), newBatch(whole)
	first.Records, first.LastOffsetDelta = whole.Records[:half], int32(half-1)
	second.Records, second.LastOffsetDelta = whole.Records[half:], int32(len(whole.Records)-half-1)
	for _, r := range second.Records {
		r.OffsetDelta -= int64(half)
	}
	if whole.FirstSequence >= 0 {
		second.FirstSequence = after(whole.FirstSequence, half)
	}
	x.batches = append([]*sarama.RecordBatch{first, second}, x.batches[1:]...)
	return true
}

// newBatch returns a batch without records that is like another one.
func newBatch(like *sarama.RecordBatch) *sarama.RecordBatch {
	return &sarama.RecordBatch{
		Version: like.Version, Codec: like.Codec, CompressionLevel: like.CompressionLevel, IsTransactional: like.IsTransactional,
		FirstTimestamp: like.FirstTimestamp, MaxTimestamp: like.MaxTimestamp,
		ProducerID: like.ProducerID, ProducerEpoch: like.ProducerEpoch, FirstSequence: like.FirstSequence,
	}
}

// message returns the broker's words about a refused batch.
func message(block *sarama.ProduceResponseBlock) string {
	for _, r := range block.RecordErrors {
		if r.BatchIndexErrorMessage != nil {
			return *r.BatchIndexErrorMessage
		}
	}
	if block.ErrorMessage != nil {
		return *block.ErrorMessage
	}
	return ""
}

// relocate looks for the leaders anew when a round has met a broker that is none, or no broker. An unknown topic is looked
// for for a while.
func (k *committer) relocate(byLeader map[string][]*part, answers []worst) {
	for i := range answers {
		w := &answers[i]
		if w.verdict != eos.Retry && w.verdict != eos.NoAnswer {
			continue
		}
		var refused *PartitionError
		if errors.As(w.err, &refused) {
			w.verdict, w.err = k.bounded(refused.TopicPartition, w.verdict, w.err)
		}
		if c, ok := refusal(w.err); ok && (c == sarama.ErrNotEnoughReplicas || c == sarama.ErrConcurrentTransactions) {
			continue // the right broker, too early
		}
		_ = k.cluster.control.RefreshMetadata(topicsOf(byLeader)...) // the next round finds out
		return
	}
}

func topicsOf(byLeader map[string][]*part) []string {
	var topics []string
	for _, parts := range byLeader {
		for _, x := range parts {
			if !slices.Contains(topics, x.Topic) {
				topics = append(topics, x.Topic)
			}
		}
	}
	return topics
}

// partitions returns the partitions of the commit as AddPartitionsToTxn wants them.
func (p *plan) partitions() map[string][]int32 {
	m := map[string][]int32{}
	for _, x := range p.parts {
		m[x.Topic] = append(m[x.Topic], x.Partition)
	}
	return m
}

// ends returns, by partition, the offset behind the last record written.
func (k *committer) ends(ctx context.Context) map[processor.TopicPartition]int64 {
	ends := make(map[processor.TopicPartition]int64, len(k.plan.parts))
	var forgotten []processor.TopicPartition
	for _, x := range k.plan.parts {
		ends[x.TopicPartition] = x.end
		if x.end < 0 {
			forgotten = append(forgotten, x.TopicPartition)
		}
	}
	if len(forgotten) == 0 {
		return ends
	}
	held, err := k.cluster.Ranges(ctx, forgotten)
	if err != nil {
		k.log.Error("the place of committed records is unknown", "error", err)
	}
	for tp, r := range held {
		ends[tp] = r.End
	}
	return ends
}
