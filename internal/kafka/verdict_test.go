package kafka

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/eos"
)

func TestVerdicts(t *testing.T) {
	t.Parallel()
	all := []eos.Kind{eos.InitProducer, eos.AddPartitions, eos.Produce, eos.AddOffsets, eos.CommitOffsets, eos.EndCommit}
	type answers map[eos.Kind]eos.Verdict // calls that are not named give the verdict of -1
	const other = eos.Kind(255)
	for _, c := range []struct {
		err  error
		want answers
	}{
		{nil, answers{other: eos.OK}},
		{sarama.ErrNoError, answers{other: eos.NoAnswer}}, // nobody hands this on as an error
		{io.EOF, answers{other: eos.NoAnswer}},
		{sarama.ErrNotConnected, answers{other: eos.NoAnswer}},
		{sarama.PacketEncodingError{Info: "too long"}, answers{other: eos.Broken}},
		{sarama.PacketDecodingError{Info: "nonsense"}, answers{other: eos.NoAnswer}},
		{sarama.ErrDuplicateSequenceNumber, answers{eos.Produce: eos.OK, other: eos.Lost}},

		{sarama.ErrConcurrentTransactions, answers{eos.EndCommit: eos.NoAnswer, other: eos.Retry}},
		{sarama.ErrNotCoordinatorForConsumer, answers{eos.EndCommit: eos.NoAnswer, other: eos.Retry}},
		{sarama.ErrConsumerCoordinatorNotAvailable, answers{eos.EndCommit: eos.NoAnswer, other: eos.Retry}},
		{sarama.ErrOffsetsLoadInProgress, answers{other: eos.Retry}},
		{sarama.ErrUnstableOffsetCommit, answers{other: eos.Retry}},
		{sarama.ErrNotEnoughReplicas, answers{other: eos.Retry}},
		{sarama.ErrNotLeaderForPartition, answers{other: eos.Retry}},
		{sarama.ErrLeaderNotAvailable, answers{other: eos.Retry}},
		{sarama.ErrUnknownTopicOrPartition, answers{other: eos.Retry}},
		{sarama.ErrRequestTimedOut, answers{other: eos.NoAnswer}},
		{sarama.ErrUnknown, answers{other: eos.NoAnswer}},

		{sarama.ErrProducerFenced, answers{other: eos.Lost}},
		{sarama.ErrInvalidProducerEpoch, answers{other: eos.Lost}},
		{sarama.ErrInvalidTxnState, answers{other: eos.Lost}},
		{sarama.ErrInvalidProducerIDMapping, answers{other: eos.Lost}},
		{sarama.ErrUnknownProducerID, answers{other: eos.Lost}},
		{sarama.ErrOutOfOrderSequenceNumber, answers{other: eos.Lost}},
		{sarama.ErrIllegalGeneration, answers{other: eos.Lost}},
		{sarama.ErrUnknownMemberId, answers{other: eos.Lost}},
		{sarama.ErrFencedInstancedId, answers{other: eos.Lost}},
		{sarama.ErrRebalanceInProgress, answers{other: eos.Lost}},
		{sarama.KError(120), answers{other: eos.Lost}}, // TRANSACTION_ABORTABLE, and whatever else is to come

		{sarama.ErrMessageSizeTooLarge, answers{other: eos.Broken}},
		{sarama.ErrMessageSetSizeTooLarge, answers{other: eos.Broken}},
		{sarama.ErrInvalidRecord, answers{other: eos.Broken}},
		{sarama.ErrTopicAuthorizationFailed, answers{other: eos.Broken}},
		{sarama.ErrTransactionalIDAuthorizationFailed, answers{other: eos.Broken}},
		{sarama.ErrUnsupportedVersion, answers{other: eos.Broken}},
	} {
		for _, kind := range all {
			want, named := c.want[kind]
			if !named {
				want = c.want[other]
			}
			if got := judge(kind, c.err); got != want {
				t.Errorf("%s: %v: verdict %d, want %d", callNames[kind], c.err, got, want)
			}
			if c.err == nil {
				continue
			}
			if got := judge(kind, fmt.Errorf("wrapped: %w", c.err)); got != want {
				t.Errorf("%s: %v, wrapped: verdict %d, want %d", callNames[kind], c.err, got, want)
			}
		}
	}
}

func TestTheWorstVerdictCounts(t *testing.T) {
	t.Parallel()
	first := errors.New("first")
	var w worst
	w.add(eos.Retry, io.EOF)
	w.add(eos.Lost, first)
	w.add(eos.Lost, io.EOF)
	w.add(eos.NoAnswer, io.EOF)
	w.add(eos.OK, nil)
	if w.verdict != eos.Lost || w.err != first {
		t.Errorf("%+v", w)
	}
}

func TestMisplaced(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		io.EOF: true, sarama.ErrNotCoordinatorForConsumer: true, sarama.ErrConsumerCoordinatorNotAvailable: true,
		sarama.ErrConcurrentTransactions: false, sarama.ErrProducerFenced: false, sarama.ErrOffsetsLoadInProgress: false,
	} {
		if misplaced(err) != want {
			t.Errorf("%v: %v", err, !want)
		}
	}
	if misplaced(nil) {
		t.Error("success is misplaced")
	}
}
