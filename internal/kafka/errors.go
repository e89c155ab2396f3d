package kafka

import (
	"errors"
	"fmt"

	"github.com/millrace-streams/millrace/processor"
)

// Errors that a cluster, a lease or a commit ends with.
var (
	// ErrClosed is returned once the cluster is closed.
	ErrClosed = errors.New("kafka: the cluster is closed")
	// ErrNotMember is why a commit was given up: its tasks are no longer this process's.
	ErrNotMember = errors.New("kafka: the task is no longer leased to this process")
	// ErrInstanceFenced is fatal: another process joined the group with the same process id.
	ErrInstanceFenced = errors.New("kafka: another process runs with the same process id")
	// ErrOldFormat is a log in the message format of brokers before 0.11.
	ErrOldFormat = errors.New("kafka: records in a message format before version 2")
)

// OffsetOutOfRangeError is a position that the log does not hold (any more, or yet).
type OffsetOutOfRangeError struct {
	processor.TopicPartition
	Offset     int64 // the position
	Start, End int64 // what the log holds; End is exclusive
}

// Error names partition, position and what the log holds.
func (e *OffsetOutOfRangeError) Error() string {
	return fmt.Sprintf("kafka: %s: offset %d is out of range: the log holds %d up to %d", e.TopicPartition, e.Offset, e.Start, e.End)
}

// expired reports whether err is an offset below the log's start: what it named was deleted.
func expired(err error) bool {
	var out *OffsetOutOfRangeError
	return errors.As(err, &out) && out.Offset < out.Start
}

// OffsetForgottenError is a committed position that this process has written and the group does not have any more.
type OffsetForgottenError struct {
	processor.TopicPartition
	Committed int64 // what was committed
	Answer    int64 // what the group says, -1 for none
}

// Error names the partition and both positions.
func (e *OffsetForgottenError) Error() string {
	return fmt.Sprintf("kafka: %s: the group's committed offset is %d, but this process had committed %d", e.TopicPartition, e.Answer, e.Committed)
}

// UnknownTopicError is a partition that the cluster does not know, and has not known for a while.
type UnknownTopicError struct{ processor.TopicPartition }

// Error names the partition.
func (e *UnknownTopicError) Error() string {
	return fmt.Sprintf("kafka: %s: unknown topic or partition", e.TopicPartition)
}

// PartitionCountError is an existing topic whose number of partitions is not the one that is needed.
type PartitionCountError struct {
	Topic      string
	Want, Have int32
}

// Error names the topic and both counts.
func (e *PartitionCountError) Error() string {
	return fmt.Sprintf("kafka: topic %q has %d partitions, %d are needed", e.Topic, e.Have, e.Want)
}

// PartitionError is a refusal that concerns one partition.
type PartitionError struct {
	processor.TopicPartition
	Err     error
	Message string // the broker's own words, may be empty
}

// Error names the partition.
func (e *PartitionError) Error() string {
	if e.Message != "" {
		return fmt.Sprintf("kafka: %s: %v: %s", e.TopicPartition, e.Err, e.Message)
	}
	return fmt.Sprintf("kafka: %s: %v", e.TopicPartition, e.Err)
}

// Unwrap returns the broker's error.
func (e *PartitionError) Unwrap() error { return e.Err }
