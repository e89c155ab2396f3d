package example

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/internal/topicread"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/topology"
)

// Send writes records to a topic, each to the partition that Kafka's Java client would choose for its key, those without a
// key to any. Their order is kept within a partition. A record with timestamp 0 gets the time of sending.
func Send[K, V any](ctx context.Context, h *Home, t topology.Topic[K, V], records ...processor.Record[K, V]) error {
	var messages []*sarama.ProducerMessage
	for _, r := range records {
		m, err := message(t, r)
		if err != nil {
			return fmt.Errorf("send to %s: %w", t.Name(), err)
		}
		messages = append(messages, m)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := h.send(messages); err != nil {
		return fmt.Errorf("send to %s: %w", t.Name(), cause(err))
	}
	return nil
}

func message[K, V any](t topology.Topic[K, V], r processor.Record[K, V]) (*sarama.ProducerMessage, error) {
	m := &sarama.ProducerMessage{Topic: t.Name()}
	if r.Timestamp != 0 {
		m.Timestamp = time.UnixMilli(r.Timestamp)
	}
	if !r.NullKey {
		key, err := t.KeySerde().Append([]byte{}, r.Key)
		if err != nil {
			return nil, fmt.Errorf("key: %w", err)
		}
		m.Key = sarama.ByteEncoder(key)
	}
	if !r.NullValue {
		value, err := t.ValueSerde().Append([]byte{}, r.Value)
		if err != nil {
			return nil, fmt.Errorf("value: %w", err)
		}
		m.Value = sarama.ByteEncoder(value)
	}
	return m, nil
}

func (h *Home) send(messages []*sarama.ProducerMessage) (err error) {
	if h.producer == nil {
		if h.producer, err = sarama.NewSyncProducerFromClient(h.client); err != nil {
			return err
		}
		h.undo = append(h.undo, h.producer.Close)
	}
	return h.producer.SendMessages(messages)
}

// cause returns why the first of a batch of records was not sent, which sarama's error does not say.
func cause(err error) error {
	var failed sarama.ProducerErrors
	if errors.As(err, &failed) && len(failed) > 0 {
		return failed[0].Err
	}
	return err
}

// Reader reads the committed records of a topic, each once.
type Reader[K, V any] struct {
	home  *Home
	topic topology.Topic[K, V]
	next  map[int32]int64 // by partition
}

// NewReader returns a reader that stands at the topic's beginning.
func NewReader[K, V any](h *Home, t topology.Topic[K, V]) *Reader[K, V] {
	return &Reader[K, V]{home: h, topic: t, next: map[int32]int64{}}
}

// SkipAll passes over what is committed by now.
func (r *Reader[K, V]) SkipAll(ctx context.Context) error {
	partitions, err := r.home.client.Partitions(r.topic.Name())
	if err != nil {
		return fmt.Errorf("read %s: %w", r.topic.Name(), err)
	}
	for _, p := range partitions {
		if r.next[p], err = topicread.LastStableOffset(ctx, r.home.client, r.topic.Name(), p); err != nil {
			return fmt.Errorf("read %s: %w", r.topic.Name(), err)
		}
	}
	return nil
}

// Each calls fn for each record that is committed by now and was not read yet, by partition and then offset.
func (r *Reader[K, V]) Each(ctx context.Context, fn func(processor.Record[K, V]) error) error {
	return topicread.CommittedFrom(ctx, r.home.client, r.topic.Name(), r.next, func(raw topicread.Record) error {
		r.next[raw.Partition] = raw.Offset + 1
		record, err := decode(r.topic, raw)
		if err != nil {
			return fmt.Errorf("offset %d: %w", raw.Offset, err)
		}
		return fn(record)
	})
}

func decode[K, V any](t topology.Topic[K, V], raw topicread.Record) (r processor.Record[K, V], err error) {
	r.NullKey, r.NullValue, r.Timestamp = raw.Key == nil, raw.Value == nil, raw.Timestamp.UnixMilli()
	if !r.NullKey {
		if r.Key, err = t.KeySerde().Decode(raw.Key); err != nil {
			return r, fmt.Errorf("key: %w", err)
		}
	}
	if !r.NullValue {
		if r.Value, err = t.ValueSerde().Decode(raw.Value); err != nil {
			return r, fmt.Errorf("value: %w", err)
		}
	}
	return r, nil
}
