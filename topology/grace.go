package topology

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
)

// JoinBuffer declares the store in which JoinTable keeps records for the time of their grace. It is a key-value store of the
// bytes that Kafka Streams keeps for it.
type JoinBuffer[K, V any] struct {
	*store.KeyValue[[]byte, []byte]
	keys   serde.Serde[K]
	values serde.Serde[V]
}

// NewJoinBuffer declares a buffer for a stream with such keys and values.
func NewJoinBuffer[K, V any](name string, keys serde.Serde[K], values serde.Serde[V]) *JoinBuffer[K, V] {
	return &JoinBuffer[K, V]{store.NewKeyValue(name, serde.Bytes, serde.Bytes), keys, values}
}

// KeyType names the type of the stream's keys.
func (d *JoinBuffer[K, V]) KeyType() string { return reflect.TypeFor[K]().String() }

// ValueType names the type of the stream's values.
func (d *JoinBuffer[K, V]) ValueType() string { return reflect.TypeFor[V]().String() }

type withGrace struct {
	grace  time.Duration
	buffer any
}

func (w withGrace) joinOption(s *settings) { s.grace, s.buffer = w.grace, w.buffer }

// WithGrace makes JoinTable wait for updates of a versioned table that come late: a record is joined when stream time has
// passed its own by the grace, in the order of timestamps. One that comes later than that is joined at once, and so is one
// without a key. Stream time is here the highest timestamp of the stream's records. The history of the table must be at
// least as long.
func WithGrace[K, V any](grace time.Duration, buffer *JoinBuffer[K, V]) JoinOption {
	return withGrace{grace, buffer}
}

// graceOf returns the buffer of a join with grace, nil if it has none.
func graceOf[K, V any](b *Builder, n *node, set settings, history time.Duration, versioned bool) *JoinBuffer[K, V] {
	if set.buffer == nil {
		return nil
	}
	buffer, ok := set.buffer.(*JoinBuffer[K, V])
	switch {
	case !ok:
		b.fail(n.at, n.Name, "WithGrace: the buffer is a %T, not a %T", set.buffer, buffer)
		return nil
	case buffer == nil:
		b.fail(n.at, n.Name, "WithGrace: the buffer is nil")
		return nil
	case !versioned:
		b.fail(n.at, n.Name, "WithGrace: the table is not a versioned one")
	case set.grace < 0:
		b.fail(n.at, n.Name, "WithGrace: the grace of %v is negative", set.grace)
	case set.grace > history:
		b.fail(n.at, n.Name, "WithGrace: the grace of %v is longer than the table's history of %v", set.grace, history)
	}
	n.need(b, buffer.keys != nil, fmt.Sprintf("the key serde of buffer %q", buffer.Name()))
	n.need(b, buffer.values != nil, fmt.Sprintf("the value serde of buffer %q", buffer.Name()))
	b.use(n, buffer, true)
	return buffer
}

// delay keeps the records of a stream in one task until their grace is over. They are kept under a zero byte, their time,
// their key and a number that makes them different, which orders them by time.
type delay[K, V any] struct {
	task   *processor.Task
	node   string
	decl   *JoinBuffer[K, V]
	store  *store.Layered
	grace  int64
	time   *processor.Kept // highest timestamp that was kept
	number uint32          // of the latest record
	next   processor.Emit[K, V]

	key, inner, value []byte
}

func newDelay[K, V any](task *processor.Task, node string, decl *JoinBuffer[K, V], grace time.Duration, next processor.Emit[K, V]) (*delay[K, V], error) {
	l, err := task.Layered(decl.Name())
	if err != nil {
		return nil, err
	}
	d := &delay[K, V]{
		task: task, node: node, decl: decl, store: l, grace: grace.Milliseconds(), time: task.Keep(decl.Name()), next: next,
	}
	// Numbers go on above those that are kept.
	err = l.Scan(store.Range{}, func(p store.Pair) (bool, error) {
		if len(p.Key) < delayHead+delayTail {
			return false, fmt.Errorf("a key of %d bytes in store %q", len(p.Key), decl.Name())
		}
		d.number = max(d.number, binary.BigEndian.Uint32(p.Key[len(p.Key)-delayTail:]))
		return true, nil
	})
	return d, err
}

const delayHead, delayTail = 9, 4 // bytes around the key

func (d *delay[K, V]) process(r processor.Record[K, V]) error {
	if d.time.Value()-d.grace > r.Timestamp {
		return d.next(r)
	}
	if err := d.put(&r); err != nil {
		return processor.Failed(d.node, processor.KindProcess, err)
	}
	d.time.Advance(r.Timestamp)
	return processor.Failed(d.node, processor.KindProcess, d.release(d.time.Value()-d.grace))
}

func (d *delay[K, V]) put(r *processor.Record[K, V]) (err error) {
	if d.inner, err = appendTo(d.decl.keys, d.inner, r.Key); err != nil {
		return fmt.Errorf("encode key: %w", err)
	}
	d.number = (d.number + 1) & math.MaxInt32
	d.key = binary.BigEndian.AppendUint64(append(d.key[:0], 0), uint64(r.Timestamp))
	d.key = binary.BigEndian.AppendUint32(append(d.key, d.inner...), d.number)
	c := bufferedChange{timestamp: r.Timestamp, origin: d.task.Origin(), headers: r.Headers}
	if c.new, err = appendTo(d.decl.values, d.inner, r.Value); err != nil {
		return fmt.Errorf("encode value: %w", err)
	}
	d.inner = c.new
	d.value = c.append(d.value[:0])
	_, err = d.store.Put(d.key, d.value, r.Timestamp, nil)
	return err
}

// release sends on what is kept of times up to the given one.
func (d *delay[K, V]) release(until int64) error {
	if until < 0 {
		return nil
	}
	above := binary.BigEndian.AppendUint64([]byte{0}, uint64(until)+1)
	return d.store.Scan(store.Range{To: above}, func(p store.Pair) (bool, error) {
		c, err := decodeBuffered(p.Value)
		if err != nil {
			return false, err
		}
		r := processor.Record[K, V]{Timestamp: c.timestamp, Headers: c.headers}
		if r.Key, err = d.decl.keys.Decode(p.Key[delayHead : len(p.Key)-delayTail]); err != nil {
			return false, fmt.Errorf("decode key: %w", err)
		}
		if r.Value, err = d.decl.values.Decode(c.new); err != nil {
			return false, fmt.Errorf("decode value: %w", err)
		}
		if _, err := d.store.Delete(p.Key, d.task.RecordTime(), nil); err != nil {
			return false, err
		}
		return true, d.task.From(c.origin, c.timestamp, func() error { return d.next(r) })
	})
}
