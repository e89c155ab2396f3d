package topology

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
)

// changed encodes changes for the repartition topic of a grouped table, as Kafka Streams' ChangedSerializer since 3.5: the
// value before and a byte 0, the value after and a byte 1, or both: the length of the value after as a zig-zag varint, the
// value after, the value before, and a byte 2. It also reads the bytes 3 to 5, before which comes one byte more.
type changed[V any] struct{ values serde.Serde[V] }

const (
	changedOld  = 0
	changedNew  = 1
	changedBoth = 2
	changedMore = 3 // added when there is one byte more
)

var errChanged = errors.New("topology: not the change of a table")

// Append implements serde.Serde.
func (s changed[V]) Append(dst []byte, c processor.Change[V]) ([]byte, error) {
	switch {
	case c.HasOld && c.HasNew:
		return s.appendBoth(dst, c)
	case c.HasNew:
		return s.appendOne(dst, c.New, changedNew)
	case c.HasOld:
		return s.appendOne(dst, c.Old, changedOld)
	}
	return nil, fmt.Errorf("%w: it has neither value", errChanged)
}

func (s changed[V]) appendOne(dst []byte, v V, flag byte) ([]byte, error) {
	b, err := s.values.Append(dst, v)
	if err != nil {
		return nil, err
	}
	if b == nil {
		b = dst
	}
	return append(b, flag), nil
}

func (s changed[V]) appendBoth(dst []byte, c processor.Change[V]) ([]byte, error) {
	after, err := s.values.Append(nil, c.New)
	if err != nil {
		return nil, err
	}
	dst = binary.AppendVarint(dst, int64(len(after)))
	return s.appendOne(append(dst, after...), c.Old, changedBoth)
}

// Decode implements serde.Serde.
func (s changed[V]) Decode(data []byte) (c processor.Change[V], err error) {
	if len(data) == 0 {
		return c, fmt.Errorf("%w: it is empty", errChanged)
	}
	flag, data := data[len(data)-1], data[:len(data)-1]
	if flag >= changedMore && len(data) > 0 {
		flag, data = flag-changedMore, data[:len(data)-1]
	}
	var before, after []byte
	switch flag {
	case changedOld:
		before, c.HasOld = data, true
	case changedNew:
		after, c.HasNew = data, true
	case changedBoth:
		length, n := binary.Varint(data)
		if n <= 0 || length < 0 || length > int64(len(data)-n) {
			return c, fmt.Errorf("%w: the first value has a length of %d", errChanged, length)
		}
		after, before = data[n:n+int(length)], data[n+int(length):]
		c.HasOld, c.HasNew = true, true
	default:
		return c, fmt.Errorf("%w: it ends in a byte %d", errChanged, flag)
	}
	if c.HasOld {
		if c.Old, err = s.values.Decode(before); err != nil {
			return c, err
		}
	}
	if c.HasNew {
		c.New, err = s.values.Decode(after)
	}
	return c, err
}
