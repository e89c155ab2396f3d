package processor

import (
	"errors"
	"fmt"
	"strings"
)

// Header names of dead-letter records, as Kafka Streams writes them, and one for the node.
const (
	HeaderException = "__streams.errors.exception" // the type of the error
	HeaderMessage   = "__streams.errors.message"
	HeaderTopic     = "__streams.errors.topic"
	HeaderPartition = "__streams.errors.partition"
	HeaderOffset    = "__streams.errors.offset"
	HeaderNode      = "__streams.errors.node"
)

// bad follows the policy for a step that failed and was undone. It returns the error that stops the task, or nil.
func (t *Task) bad(err error) error {
	e := t.describe(err)
	kind := KindProcess
	var failed *NodeError
	var panicked *PanicError
	switch {
	case errors.As(err, &failed):
		kind, e.Node, e.Err = failed.Kind, failed.Node, failed.Err
	case errors.As(err, &panicked) && t.node >= 0:
		e.Node = t.spec.name(t.node)
	}
	if cause := t.unreadable(); cause != nil { // no fault of the record's
		kind = KindFatal
		if !errors.Is(e.Err, errors.Unwrap(cause)) {
			e.Err = fmt.Errorf("%w: %w", e.Err, cause)
		}
	}
	return t.settle(e, kind)
}

// unreadable returns why a store of the task could not be read, nil if none has failed. A processor may have taken no notice.
func (t *Task) unreadable() error {
	for _, s := range t.stores {
		if err := s.Failure(); err != nil {
			return fmt.Errorf("store %q cannot be read: %w", s.Name(), err)
		}
	}
	return nil
}

// NullKey follows the policy for a null key at a node that needs one. The rest of the step goes on unless it returns an
// error, which the node must return in turn.
func (t *Task) NullKey(node string) error {
	if t.opt.Policy.action(KindNullKey) == Fail {
		return Failed(node, KindNullKey, ErrNullKey)
	}
	e := t.describe(ErrNullKey)
	e.Node = node
	return t.settle(e, KindNullKey)
}

func (t *Task) describe(err error) *RecordError {
	e := &RecordError{Task: t.ID, Offset: -1, Err: err}
	if t.record != nil {
		e.Node, e.Topic, e.Partition, e.Offset = t.inputOf.node, t.inputOf.tp.Topic, t.inputOf.tp.Partition, t.record.Offset
	}
	return e
}

func (t *Task) settle(e *RecordError, kind ErrorKind) error {
	action := t.opt.Policy.action(kind)
	switch {
	case action == Fail:
		return e
	case action == SendDeadLetter && t.record != nil:
		t.deadLetter(e)
		t.Counters.DeadLettered++
	default: // there is no record to send when a punctuation failed
		action = Skip
		t.Counters.Skipped++
	}
	if t.opt.Dropped != nil {
		t.opt.Dropped(e, action)
	}
	return nil
}

// deadLetter writes the record as it was fetched. It keeps key and so partitioning, timestamp and headers. Whether the
// topic takes a record of its size is for the broker to say.
func (t *Task) deadLetter(e *RecordError) {
	topic := t.opt.Policy.DeadLetterTopic
	headers := t.record.Headers
	for _, h := range []Header{
		{Key: HeaderException, Value: []byte(typeName(e.Err))},
		{Key: HeaderMessage, Value: []byte(e.Err.Error())},
		{Key: HeaderTopic, Value: []byte(e.Topic)},
		{Key: HeaderPartition, Value: fmt.Append(nil, e.Partition)},
		{Key: HeaderOffset, Value: fmt.Append(nil, e.Offset)},
		{Key: HeaderNode, Value: []byte(e.Node)},
	} {
		headers = WithHeader(headers, h.Key, h.Value)
	}
	t.Out.add(Output{
		Topic: topic, Partition: t.Out.Partition(t.record.Key, t.opt.Partitions(topic)),
		Key: t.record.Key, Value: t.record.Value, Timestamp: max(t.record.Timestamp, 0), Headers: headers,
	})
}

// typeName returns the type of an error, past those that only wrap another.
func typeName(err error) string {
	for {
		name := fmt.Sprintf("%T", err)
		inner := errors.Unwrap(err)
		if inner == nil || !strings.HasPrefix(name, "*fmt.") {
			return name
		}
		err = inner
	}
}
