package processor

import (
	"errors"
	"fmt"
)

// Errors that a node reports about a record.
var (
	// ErrNullKey is a null key where an operator needs one.
	ErrNullKey = errors.New("processor: null key")
	// ErrNegativeTimestamp is a record, fetched or forwarded, whose timestamp is below zero.
	ErrNegativeTimestamp = errors.New("processor: negative timestamp")
	// ErrFarAhead is a record whose timestamp lies further ahead of the wall clock than its source allows.
	ErrFarAhead = errors.New("processor: timestamp too far ahead")
	// ErrUnknownStore is a store that the node was not connected to when the topology was declared.
	ErrUnknownStore = errors.New("processor: store not connected to this node")
	// ErrReadOnly is a view of a global table's store, which processors can only query.
	ErrReadOnly = errors.New("processor: a global table's store has no view, open it with Query")
	// ErrUnknownChild is a forward to a child that the node does not have.
	ErrUnknownChild = errors.New("processor: no such child")
	// ErrForward is a forward by user code that has to return its result instead.
	ErrForward = errors.New("processor: this node cannot forward")
)

// RecordError is what stops a task: which record, where, and why. Nothing that the record caused is committed.
type RecordError struct {
	Task      TaskID
	Node      string
	Topic     string // empty when a punctuation failed
	Partition int32
	Offset    int64 // -1 when a punctuation failed
	Err       error
}

// Error names task, node, topic, partition and offset.
func (e *RecordError) Error() string {
	if e.Topic == "" {
		return fmt.Sprintf("processor: task %s, node %q, in a punctuation or a held-back table change: %v", e.Task, e.Node, e.Err)
	}
	return fmt.Sprintf("processor: task %s, node %q, record %s-%d@%d: %v", e.Task, e.Node, e.Topic, e.Partition, e.Offset, e.Err)
}

// Unwrap returns the cause.
func (e *RecordError) Unwrap() error { return e.Err }

// NodeError says which node an error came from. Nodes wrap their own failures in it, once.
type NodeError struct {
	Node string
	Kind ErrorKind
	Err  error
}

// Error names the node.
func (e *NodeError) Error() string { return fmt.Sprintf("processor: node %q: %v", e.Node, e.Err) }

// Unwrap returns the cause.
func (e *NodeError) Unwrap() error { return e.Err }

// Failed wraps a failure of a node's own logic. It returns nil for nil, and leaves an error that already names a node.
func Failed(node string, kind ErrorKind, err error) error {
	if err == nil {
		return nil
	}
	var inner *NodeError
	if errors.As(err, &inner) {
		return err
	}
	return &NodeError{Node: node, Kind: kind, Err: err}
}

// PanicError is a panic of a user's function, taken as that record's error.
type PanicError struct {
	Value any
	Stack []byte
}

// Error shows the panic's value. The stack is logged once, where the task stops.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// TooLargeError is a record to be written that is larger than Options.MaxRecordBytes.
type TooLargeError struct {
	Topic       string
	Size, Limit int // bytes of key, value and headers
}

// Error names the topic and both sizes, and what can be done.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("processor: a record of %d bytes for topic %q: the limit is %d; if the topic's max.message.bytes allows more, raise Config.MaxRecordBytes", e.Size, e.Topic, e.Limit)
}

// ErrorKind is the kind of a bad record.
type ErrorKind uint8

// The kinds of bad records.
const (
	KindProcess   ErrorKind = iota // a processor or a serde on the way out failed
	KindDecode                     // key or value cannot be decoded
	KindNullKey                    // a null key where a key is needed
	KindTimestamp                  // a negative timestamp
	KindFatal                      // not the record's fault: it always stops the task
	KindAhead                      // a timestamp too far ahead: dropped by default, sent to the dead-letter topic if negative ones are
)

// Action is what happens to a bad record.
type Action uint8

// The actions. Default is Skip for null keys, as in Kafka Streams, and Fail for the rest.
const (
	Default        Action = iota
	Fail                  // stop with a RecordError; nothing of the record is committed and nothing is lost
	Skip                  // drop and count it
	SendDeadLetter        // write it, as it was fetched, to the dead-letter topic, with headers that say why
)

// String names the action.
func (a Action) String() string {
	names := [...]string{Default: "default", Fail: "fail", Skip: "skip", SendDeadLetter: "dead letter"}
	if int(a) < len(names) {
		return names[a]
	}
	return fmt.Sprintf("Action(%d)", a)
}

// ErrorPolicy says, for the whole application, what happens to bad records. The zero value fails on all but null keys. What
// fails below a table that holds changes back until the commit, or in a punctuation, has no record to send to the
// dead-letter topic: it is skipped and counted under SendDeadLetter.
type ErrorPolicy struct {
	Decode, NullKey, Timestamp, Process Action
	// DeadLetterTopic must exist, and is needed when any action is SendDeadLetter.
	DeadLetterTopic string
}

// SkipBadRecords drops and counts every kind of bad record.
func SkipBadRecords() ErrorPolicy {
	return ErrorPolicy{Decode: Skip, NullKey: Skip, Timestamp: Skip, Process: Skip}
}

// DeadLetter sends every kind of bad record to topic.
func DeadLetter(topic string) ErrorPolicy {
	return ErrorPolicy{Decode: SendDeadLetter, NullKey: SendDeadLetter, Timestamp: SendDeadLetter, Process: SendDeadLetter, DeadLetterTopic: topic}
}

// Validate reports a policy that cannot be followed.
func (p ErrorPolicy) Validate() error {
	for _, a := range []Action{p.Decode, p.NullKey, p.Timestamp, p.Process} {
		if a > SendDeadLetter {
			return fmt.Errorf("processor: unknown error action %d", a)
		}
		if a == SendDeadLetter && p.DeadLetterTopic == "" {
			return errors.New("processor: the error policy sends to a dead-letter topic but names none")
		}
	}
	return nil
}

func (p ErrorPolicy) action(k ErrorKind) Action {
	switch k {
	case KindFatal:
		return Fail
	case KindAhead:
		if p.Timestamp == SendDeadLetter {
			return SendDeadLetter
		}
		return Skip
	}
	a := [...]Action{KindProcess: p.Process, KindDecode: p.Decode, KindNullKey: p.NullKey, KindTimestamp: p.Timestamp}[k]
	if a != Default {
		return a
	}
	if k == KindNullKey {
		return Skip
	}
	return Fail
}
