package sim

import (
	"errors"

	"github.com/millrace-streams/millrace/eos"
)

// Errors of a Cluster, named after the broker's.
var (
	// ErrUnknownTopic is a topic or a partition that does not exist.
	ErrUnknownTopic = errors.New("sim: unknown topic or partition")
	// ErrTopicExists is a topic that is created again with another number of partitions.
	ErrTopicExists = errors.New("sim: topic exists with another number of partitions")
	// ErrOffsetOutOfRange is a read below the start or beyond the end of a partition.
	ErrOffsetOutOfRange = errors.New("sim: offset out of range")
	// ErrFenced is a request with an epoch that is not the current one of the transactional id.
	ErrFenced = errors.New("sim: producer fenced")
	// ErrConcurrentTransactions is a request that must wait until the markers of the transaction before are written.
	ErrConcurrentTransactions = errors.New("sim: concurrent transactions")
	// ErrInvalidTransaction is a request that does not fit the state of the transaction.
	ErrInvalidTransaction = errors.New("sim: invalid transaction state")
	// ErrOutOfOrderSequence is a batch that does not follow on the producer's last one.
	ErrOutOfOrderSequence = errors.New("sim: out of order sequence number")
	// ErrUnknownMember is a request in the name of a member that the group has thrown out.
	ErrUnknownMember = errors.New("sim: unknown member")
	// ErrIllegalGeneration is a request with a generation that is not the group's current one.
	ErrIllegalGeneration = errors.New("sim: illegal generation")
	// ErrNoAnswer is an injected fault: the answer to a request was lost.
	ErrNoAnswer = errors.New("sim: no answer")
)

// verdict tells the commit protocol what an answer means.
func verdict(err error) eos.Verdict {
	switch {
	case err == nil:
		return eos.OK
	case errors.Is(err, ErrConcurrentTransactions):
		return eos.Retry
	case errors.Is(err, ErrNoAnswer):
		return eos.NoAnswer
	case errors.Is(err, ErrUnknownTopic):
		return eos.Broken
	}
	return eos.Lost
}
