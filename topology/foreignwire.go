package topology

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/millrace-streams/millrace/serde"
)

// The bytes that a foreign-key join exchanges and keeps are those of Kafka Streams (KIP-213 and KIP-775).

// instruction says what the task of the foreign row does with a subscription.
type instruction byte

const (
	unsubscribe         instruction = 0 // delete the subscription, answer nothing
	unsubscribeAnswered instruction = 1 // delete the subscription, answer without a value
	subscribeAnswered   instruction = 2 // subscribe, answer with or without a value
	subscribe           instruction = 3 // subscribe, answer if there is a value
)

// rowHash tells which row a subscription is of: the hash of its encoded value, or that there is none.
type rowHash struct {
	sum    [16]byte
	exists bool
}

// subscription is what the task of a row tells the task of the foreign row.
type subscription[K any] struct {
	do        instruction
	hash      rowHash
	key       K     // of the row
	partition int32 // of the row; -1 in those of Kafka Streams before 3.3
}

// response is what the task of the foreign row tells the task of a row.
type response[V any] struct {
	hash      rowHash
	value     V
	exists    bool
	partition int32 // where it goes; not encoded
}

const (
	hashNull     = 0x80
	valueEmpty   = 0x40 // Millrace's own: there is a value, which is encoded as no bytes; Kafka Streams takes it for none
	newestFormat = 1    // of subscriptions
)

var errForeign = errors.New("topology: not a message of a foreign-key join")

// subscriptions encodes subscriptions: format and hashNull, instruction, the hash, the key, the partition.
type subscriptions[K any] struct{ keys serde.Serde[K] }

// Append implements serde.Serde.
func (s subscriptions[K]) Append(dst []byte, m subscription[K]) ([]byte, error) {
	format := byte(newestFormat)
	if m.partition < 0 {
		format = 0
	}
	dst = m.hash.appendTo(dst, format, byte(m.do))
	dst, err := appendInner(s.keys, dst, m.key)
	if err != nil || format == 0 {
		return dst, err
	}
	return binary.BigEndian.AppendUint32(dst, uint32(m.partition)), nil
}

// Decode implements serde.Serde.
func (s subscriptions[K]) Decode(data []byte) (m subscription[K], err error) {
	if len(data) < 2 {
		return m, fmt.Errorf("%w: it has %d bytes", errForeign, len(data))
	}
	format := data[0] &^ hashNull
	m.do, m.partition = instruction(data[1]), -1
	if format > newestFormat || m.do > subscribe {
		return m, fmt.Errorf("%w: format %d, instruction %d", errForeign, format, m.do)
	}
	if data, err = m.hash.read(data[0], data[2:]); err != nil {
		return m, err
	}
	if format > 0 {
		if len(data) < 4 {
			return m, fmt.Errorf("%w: the partition is missing", errForeign)
		}
		m.partition = int32(binary.BigEndian.Uint32(data[len(data)-4:]))
		data = data[:len(data)-4]
	}
	m.key, err = s.keys.Decode(data)
	return m, err
}

// responses encodes responses: format 0, hashNull and valueEmpty, the hash, the value.
type responses[V any] struct{ values serde.Serde[V] }

// Append implements serde.Serde.
func (s responses[V]) Append(dst []byte, m response[V]) ([]byte, error) {
	start := len(dst)
	dst = m.hash.appendTo(dst, 0)
	if !m.exists {
		return dst, nil
	}
	end := len(dst)
	dst, err := appendInner(s.values, dst, m.value)
	if err == nil && len(dst) == end {
		dst[start] |= valueEmpty
	}
	return dst, err
}

// Decode implements serde.Serde.
func (s responses[V]) Decode(data []byte) (m response[V], err error) {
	if len(data) == 0 {
		return m, fmt.Errorf("%w: it is empty", errForeign)
	}
	flags := data[0]
	if flags&^(hashNull|valueEmpty) != 0 {
		return m, fmt.Errorf("%w: format %d", errForeign, flags&^(hashNull|valueEmpty))
	}
	if data, err = m.hash.read(flags, data[1:]); err != nil {
		return m, err
	}
	if m.exists = len(data) > 0 || flags&valueEmpty != 0; m.exists {
		m.value, err = s.values.Decode(data)
	}
	return m, err
}

func (h rowHash) appendTo(dst []byte, format byte, more ...byte) []byte {
	if !h.exists {
		return append(append(dst, format|hashNull), more...)
	}
	return append(append(append(dst, format), more...), h.sum[:]...)
}

func (h *rowHash) read(flags byte, data []byte) ([]byte, error) {
	if h.exists = flags&hashNull == 0; !h.exists {
		return data, nil
	}
	if len(data) < len(h.sum) {
		return nil, fmt.Errorf("%w: the hash is cut off", errForeign)
	}
	return data[copy(h.sum[:], data):], nil
}

// combined is the key of a subscription in its store.
type combined[FK, K any] struct {
	foreign FK
	key     K
}

// combinedKeys encodes them: the length of the foreign key as an int32, the foreign key, the row's key.
type combinedKeys[FK, K any] struct {
	foreign serde.Serde[FK]
	keys    serde.Serde[K]
}

// Append implements serde.Serde.
func (s combinedKeys[FK, K]) Append(dst []byte, k combined[FK, K]) ([]byte, error) {
	dst, err := s.prefix(dst, k.foreign)
	if err != nil {
		return nil, err
	}
	return appendInner(s.keys, dst, k.key)
}

// prefix appends what the keys of all subscriptions to a foreign key begin with.
func (s combinedKeys[FK, K]) prefix(dst []byte, foreign FK) ([]byte, error) {
	start := len(dst)
	dst, err := appendInner(s.foreign, append(dst, 0, 0, 0, 0), foreign)
	if err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst, nil
}

// Decode implements serde.Serde.
func (s combinedKeys[FK, K]) Decode(data []byte) (k combined[FK, K], err error) {
	if len(data) < 4 || int64(binary.BigEndian.Uint32(data)) > int64(len(data)-4) {
		return k, fmt.Errorf("%w: a key of %d bytes", errForeign, len(data))
	}
	n := 4 + binary.BigEndian.Uint32(data)
	if k.foreign, err = s.foreign.Decode(data[4:n]); err == nil {
		k.key, err = s.keys.Decode(data[n:])
	}
	return k, err
}

// appendInner appends an encoding inside of another.
func appendInner[T any](s serde.Serde[T], dst []byte, v T) ([]byte, error) {
	b, err := s.Append(dst, v)
	if b == nil && err == nil {
		return dst, nil
	}
	return b, err
}
