package topology

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"

	"github.com/millrace-streams/millrace/processor"
)

// bufferedChange is what a suppression buffer holds for a key. Its encoding is version 3 of Kafka Streams' (BufferValue):
// what is known of the record, the values prior, old and new, and the time; big-endian, values and keys with their lengths
// as int32, -1 for null. An old value equal to the prior one is written as the length -2.
type bufferedChange struct {
	timestamp int64
	origin    processor.Origin
	headers   []processor.Header
	prior     []byte // the value that was last forwarded, nil if none
	old       []byte // the value before the latest change
	new       []byte
	time      int64 // when it entered the buffer, or the end of its window
}

// bufferVersion marks the records of the changelog.
var bufferVersion = []processor.Header{{Key: "v", Value: []byte{3}}}

const samePrior = -2

var errBuffered = errors.New("topology: not the value of a suppression buffer, version 3")

// size is Kafka Streams' estimate of the memory that the change takes, with a key of so many bytes.
func (c *bufferedChange) size(key int) int64 {
	n := 8 + key + 8 + 8 + len(c.origin.Topic) + 4 + len(c.prior) + len(c.new)
	if !sameBytes(c.prior, c.old) {
		n += len(c.old)
	}
	for _, h := range c.headers {
		n += len(h.Key) + len(h.Value)
	}
	return int64(n)
}

func sameBytes(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

func (c *bufferedChange) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.timestamp))
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.origin.Offset))
	dst = appendSized(dst, []byte(c.origin.Topic), true)
	dst = binary.BigEndian.AppendUint32(dst, uint32(c.origin.Partition))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(c.headers)))
	for _, h := range c.headers {
		dst = appendSized(dst, []byte(h.Key), true)
		dst = appendSized(dst, h.Value, h.Value != nil)
	}
	dst = appendSized(dst, c.prior, c.prior != nil)
	if c.old != nil && sameBytes(c.prior, c.old) {
		dst = binary.BigEndian.AppendUint32(dst, uint32(math.MaxUint32+1+samePrior))
	} else {
		dst = appendSized(dst, c.old, c.old != nil)
	}
	dst = appendSized(dst, c.new, c.new != nil)
	return binary.BigEndian.AppendUint64(dst, uint64(c.time))
}

func appendSized(dst, b []byte, exists bool) []byte {
	if !exists {
		return binary.BigEndian.AppendUint32(dst, math.MaxUint32)
	}
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(b))), b...)
}

// decodeBuffered reads a change. Its slices are parts of data, but for those of headers, which are copies.
func decodeBuffered(data []byte) (c bufferedChange, err error) {
	in := bufferedReader{data: data}
	c.timestamp = in.int64()
	c.origin.Offset = in.int64()
	topic, _ := in.sized()
	c.origin.Topic = string(topic)
	c.origin.Partition = in.int32()
	for n := in.int32(); n > 0 && !in.bad; n-- {
		key, _ := in.sized()
		value, _ := in.sized()
		c.headers = append(c.headers, processor.Header{Key: string(key), Value: bytes.Clone(value)})
	}
	c.prior, _ = in.sized()
	if old, same := in.sized(); same {
		c.old = c.prior
	} else {
		c.old = old
	}
	c.new, _ = in.sized()
	c.time = in.int64()
	if in.bad || len(in.data) > 0 {
		return bufferedChange{}, errBuffered
	}
	return c, nil
}

type bufferedReader struct {
	data []byte
	bad  bool
}

func (r *bufferedReader) take(n int) []byte {
	if n > len(r.data) || r.bad {
		r.bad = true
		return nil
	}
	b := r.data[:n:n]
	r.data = r.data[n:]
	return b
}

func (r *bufferedReader) int64() int64 {
	if b := r.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (r *bufferedReader) int32() int32 {
	if b := r.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

// sized reads bytes with their length before them, nil for null. samePrior is the length -2.
func (r *bufferedReader) sized() (b []byte, same bool) {
	n := r.int32()
	switch {
	case r.bad || n < samePrior:
		r.bad = true
		return nil, false
	case n < 0:
		return nil, n == samePrior
	}
	if b = r.take(int(n)); b == nil {
		b = []byte{}
	}
	return b, false
}
