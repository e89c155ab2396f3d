package kafka

import (
	"errors"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/eos"
)

// meaning says what a broker's error code means for the call that it answers. A code that is not named here is eos.Lost:
// nothing wrong comes of starting over.
var meaning = map[sarama.KError]eos.Verdict{
	sarama.ErrNoError:                 eos.OK,
	sarama.ErrDuplicateSequenceNumber: eos.OK, // of Produce: an earlier try was successful

	// Later, or elsewhere.
	sarama.ErrConcurrentTransactions:          eos.Retry, // the markers of the last transaction are still being written
	sarama.ErrNotEnoughReplicas:               eos.Retry, // of a transactional Produce also: the partition cannot be verified yet
	sarama.ErrNotEnoughReplicasAfterAppend:    eos.NoAnswer,
	sarama.ErrNotLeaderForPartition:           eos.Retry,
	sarama.ErrLeaderNotAvailable:              eos.Retry,
	sarama.ErrReplicaNotAvailable:             eos.Retry,
	sarama.ErrBrokerNotAvailable:              eos.Retry,
	sarama.ErrFencedLeaderEpoch:               eos.Retry,
	sarama.ErrUnknownLeaderEpoch:              eos.Retry,
	sarama.ErrUnknownTopicOrPartition:         eos.Retry, // bounded by the committer
	sarama.ErrKafkaStorageError:               eos.Retry,
	sarama.ErrOffsetsLoadInProgress:           eos.Retry,
	sarama.ErrConsumerCoordinatorNotAvailable: eos.Retry,
	sarama.ErrNotCoordinatorForConsumer:       eos.Retry,
	sarama.ErrUnstableOffsetCommit:            eos.Retry,
	sarama.ErrThrottlingQuotaExceeded:         eos.Retry,
	sarama.ErrReassignmentInProgress:          eos.Retry,
	sarama.ErrOperationNotAttempted:           eos.Retry, // another partition's error decides
	sarama.ErrInvalidMessage:                  eos.Retry, // damaged on the way
	sarama.ErrRequestTimedOut:                 eos.NoAnswer,
	sarama.ErrNetworkException:                eos.NoAnswer,
	sarama.ErrUnknown:                         eos.NoAnswer,

	// Somebody else's, or too late.
	sarama.ErrProducerFenced:               eos.Lost,
	sarama.ErrInvalidProducerEpoch:         eos.Lost,
	sarama.ErrInvalidProducerIDMapping:     eos.Lost,
	sarama.ErrUnknownProducerID:            eos.Lost,
	sarama.ErrOutOfOrderSequenceNumber:     eos.Lost,
	sarama.ErrInvalidTxnState:              eos.Lost,
	sarama.ErrTransactionCoordinatorFenced: eos.Lost,
	sarama.ErrIllegalGeneration:            eos.Lost, // unless the lease is still held: see the committer
	sarama.ErrRebalanceInProgress:          eos.Lost, // likewise
	sarama.ErrUnknownMemberId:              eos.Lost,
	sarama.ErrFencedInstancedId:            eos.Lost,
	sarama.ErrGroupIDNotFound:              eos.Lost,

	// Never.
	sarama.ErrMessageSizeTooLarge:                eos.Broken,
	sarama.ErrMessageSetSizeTooLarge:             eos.Broken,
	sarama.ErrInvalidRecord:                      eos.Broken,
	sarama.ErrInvalidTimestamp:                   eos.Broken,
	sarama.ErrInvalidTopic:                       eos.Broken,
	sarama.ErrInvalidRequiredAcks:                eos.Broken,
	sarama.ErrInvalidGroupId:                     eos.Broken,
	sarama.ErrInvalidRequest:                     eos.Broken,
	sarama.ErrInvalidTransactionTimeout:          eos.Broken,
	sarama.ErrInvalidCommitOffsetSize:            eos.Broken,
	sarama.ErrOffsetMetadataTooLarge:             eos.Broken,
	sarama.ErrUnsupportedVersion:                 eos.Broken,
	sarama.ErrUnsupportedForMessageFormat:        eos.Broken,
	sarama.ErrUnsupportedCompressionType:         eos.Broken,
	sarama.ErrPolicyViolation:                    eos.Broken,
	sarama.ErrTopicAuthorizationFailed:           eos.Broken,
	sarama.ErrGroupAuthorizationFailed:           eos.Broken,
	sarama.ErrClusterAuthorizationFailed:         eos.Broken,
	sarama.ErrTransactionalIDAuthorizationFailed: eos.Broken,
	sarama.ErrSASLAuthenticationFailed:           eos.Broken,
	sarama.ErrSecurityDisabled:                   eos.Broken,
}

// uncertainEnd are the refusals of EndTxn after which the commit may still happen: the coordinator may have written its
// decision before it failed to replicate it, or the decision is there and being carried out.
var uncertainEnd = map[sarama.KError]bool{
	sarama.ErrConsumerCoordinatorNotAvailable: true,
	sarama.ErrNotCoordinatorForConsumer:       true,
	sarama.ErrConcurrentTransactions:          true,
}

// judge says what err means as the outcome of a call. What is no broker's refusal is eos.NoAnswer.
func judge(call eos.Kind, err error) eos.Verdict {
	if err == nil {
		return eos.OK
	}
	var unwritable sarama.PacketEncodingError
	if errors.As(err, &unwritable) {
		return eos.Broken
	}
	code, ok := refusal(err)
	if !ok {
		return eos.NoAnswer
	}
	v, known := meaning[code]
	switch {
	case !known:
		return eos.Lost
	case code == sarama.ErrDuplicateSequenceNumber && call != eos.Produce:
		return eos.Lost
	case call == eos.EndCommit && uncertainEnd[code]:
		return eos.NoAnswer
	}
	return v
}

// misplaced reports whether a coordinator should be looked for anew.
func misplaced(err error) bool {
	if err == nil {
		return false
	}
	code, ok := refusal(err)
	return !ok || code == sarama.ErrNotCoordinatorForConsumer || code == sarama.ErrConsumerCoordinatorNotAvailable
}

// severity orders verdicts: of several answers to one call, the most severe decides.
var severity = map[eos.Verdict]int{eos.OK: 0, eos.Retry: 1, eos.NoAnswer: 2, eos.Lost: 3, eos.Broken: 4}

// worst is the most severe verdict so far, with its reason.
type worst struct {
	verdict eos.Verdict
	err     error
}

func (w *worst) add(v eos.Verdict, err error) {
	if severity[v] > severity[w.verdict] {
		w.verdict, w.err = v, err
	}
}
