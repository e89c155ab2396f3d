package topology

import (
	"bytes"
	"container/heap"
	"fmt"
	"reflect"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
)

// BufferOptions bound the buffer of Suppress in each task. 0 is no bound.
type BufferOptions struct {
	MaxRecords int64 // one for each key
	// MaxBytes counts keys, values and what is known of the records that caused the changes, as Kafka Streams counts them.
	MaxBytes int64
	// EmitEarly forwards the oldest changes early rather than exceed a bound. Without it, an application whose buffer exceeds
	// a bound is stopped with a *BufferFullError. UntilWindowCloses cannot emit early.
	EmitEarly bool
}

func (o BufferOptions) exceeded(records int, bytes int64) bool {
	return o.MaxRecords > 0 && int64(records) > o.MaxRecords || o.MaxBytes > 0 && bytes > o.MaxBytes
}

// BufferFullError stops an application whose Suppress would have to hold back more than its buffer may hold.
type BufferFullError struct {
	Buffer         string
	Records, Bytes int64
	Options        BufferOptions
}

// Error names the buffer, what it holds and its bounds.
func (e *BufferFullError) Error() string {
	return fmt.Sprintf("topology: the buffer %q is full: it holds %d of at most %d records and %d of at most %d bytes (0: no bound)",
		e.Buffer, e.Records, e.Options.MaxRecords, e.Bytes, e.Options.MaxBytes)
}

// Buffer declares the store in which Suppress keeps what it holds back. It is a key-value store of encoded values: those of
// Kafka Streams' suppression buffer, with which its changelog can be exchanged.
type Buffer[K, V any] struct {
	*store.KeyValue[K, []byte]
	values  serde.Serde[V]
	options BufferOptions
}

// NewBuffer declares a buffer for a table with such keys and values.
func NewBuffer[K, V any](name string, keys serde.Serde[K], values serde.Serde[V], options BufferOptions) *Buffer[K, V] {
	return &Buffer[K, V]{store.NewKeyValue(name, keys, serde.Bytes), values, options}
}

// ValueType names the type of the table's values.
func (d *Buffer[K, V]) ValueType() string { return reflect.TypeFor[V]().String() }

// declare connects the buffer to its node.
func (d *Buffer[K, V]) declare(b *Builder, n *node, final bool) {
	if d == nil {
		b.fail(n.at, n.Name, "the buffer is nil")
		return
	}
	n.need(b, d.KeySerde() != nil, fmt.Sprintf("the key serde of buffer %q", d.Name()))
	n.need(b, d.values != nil, fmt.Sprintf("the value serde of buffer %q", d.Name()))
	if d.options.MaxRecords < 0 || d.options.MaxBytes < 0 {
		b.fail(n.at, n.Name, "buffer %q: a bound is negative", d.Name())
	}
	if final && d.options.EmitEarly {
		b.fail(n.at, n.Name, "buffer %q: UntilWindowCloses cannot emit early, it gives one result per window", d.Name())
	}
	b.use(n, d, true)
}

// put buffers a change. A key that has a change keeps the place that it has.
func (s *suppressor[K, V]) put(r processor.Record[K, processor.Change[V]]) (err error) {
	if s.key, err = appendTo(s.decl.KeySerde(), s.key, r.Key); err != nil {
		return fmt.Errorf("encode key: %w", err)
	}
	origin := s.task.Origin()
	c := bufferedChange{timestamp: r.Timestamp, origin: origin, headers: r.Headers, time: r.Timestamp}
	if s.end != nil {
		c.time = s.end(r.Key)
	}
	if c.old, err = s.encode(r.Value.Old, r.Value.HasOld); err != nil {
		return err
	}
	if c.new, err = s.encode(r.Value.New, r.Value.HasNew); err != nil {
		return err
	}
	c.prior = c.old
	if c.old == nil {
		c.prior = s.queue.dropped[string(s.key)]
	}
	if known := s.queue.find(s.key); known != nil {
		was, err := s.buffered(s.key)
		if err != nil {
			return err
		}
		c.prior, c.time = was.prior, known.time
		s.queue.resize(known, c.size(len(s.key)))
	} else {
		s.queue.push(c.time, string(s.key), c.size(len(s.key)))
	}
	s.encoded = c.append(s.encoded[:0])
	_, err = s.rows.Put(s.key, s.encoded, r.Timestamp, bufferVersion)
	return err
}

func (s *suppressor[K, V]) encode(v V, exists bool) ([]byte, error) {
	if !exists {
		return nil, nil
	}
	b, err := appendTo(s.decl.values, nil, v)
	if err != nil {
		return nil, fmt.Errorf("encode value: %w", err)
	}
	return b, nil
}

// buffered returns the change of a key, which is valid until the next call.
func (s *suppressor[K, V]) buffered(key []byte) (c bufferedChange, err error) {
	var ok bool
	if s.value, _, ok, err = s.rows.Get(s.value[:0], key); err != nil {
		return c, err
	}
	if !ok {
		return c, fmt.Errorf("buffer %q has lost a key", s.decl.Name())
	}
	if c, err = decodeBuffered(s.value); err != nil {
		return c, fmt.Errorf("buffer %q: %w", s.decl.Name(), err)
	}
	return c, nil
}

// evict takes out the first change and forwards it, unless it is the deletion of a window's row that nobody knows of.
func (s *suppressor[K, V]) evict() error {
	first := s.queue.pop()
	key := []byte(first.key)
	c, err := s.buffered(key)
	if err != nil {
		return s.failed(err)
	}
	if _, err := s.rows.Delete(key, c.timestamp, nil); err != nil {
		return s.failed(err)
	}
	if s.final && c.new == nil {
		s.queue.drop(first.key, c.prior)
		return nil
	}
	k, err := s.decl.KeySerde().Decode(key)
	if err != nil {
		return s.failed(fmt.Errorf("buffer %q: decode key: %w", s.decl.Name(), err))
	}
	change := processor.Change[V]{HasOld: c.prior != nil, HasNew: c.new != nil}
	if change.Old, err = s.decode(c.prior); err != nil {
		return s.failed(err)
	}
	if change.New, err = s.decode(c.new); err != nil {
		return s.failed(err)
	}
	return s.task.From(c.origin, c.timestamp, func() error {
		return s.next(processor.Record[K, processor.Change[V]]{Key: k, Value: change, Timestamp: c.timestamp, Headers: c.headers})
	})
}

func (s *suppressor[K, V]) decode(value []byte) (v V, err error) {
	if value == nil {
		return v, nil
	}
	if v, err = s.decl.values.Decode(value); err != nil {
		err = fmt.Errorf("buffer %q: decode value: %w", s.decl.Name(), err)
	}
	return v, err
}

// prior returns the row of a key as it was last forwarded, if a change of it is buffered.
func (s *suppressor[K, V]) prior(k K) (r row[V], buffered bool, err error) {
	key, err := appendTo(s.decl.KeySerde(), nil, k)
	if err != nil {
		return r, false, fmt.Errorf("encode key: %w", err)
	}
	if s.queue.find(key) == nil {
		return r, false, nil
	}
	c, err := s.buffered(key)
	if err != nil {
		return r, true, err
	}
	r.timestamp, r.exists = processor.Unknown, c.prior != nil
	r.value, err = s.decode(c.prior)
	return r, true, err
}

// bufferQueue holds the keys of a buffer in the order of their times. It is a processor.Cache only to be rolled back.
type bufferQueue struct {
	heap  queued
	byKey map[string]*queuedKey
	bytes int64
	undo  []queueUndo
	// dropped are the values that listeners know of rows whose deletion was dropped in this step. A session that takes in a
	// record without becoming longer is deleted and written again.
	dropped map[string][]byte
}

type queuedKey struct {
	time  int64
	key   string
	bytes int64
	at    int // place in the heap
}

// queueUndo is one change of the queue, to be taken back: of a key's size, unless the key was pushed or popped.
type queueUndo struct {
	key    *queuedKey
	bytes  int64
	pushed bool
	popped bool
}

func (q *bufferQueue) len() int          { return len(q.heap) }
func (q *bufferQueue) first() *queuedKey { return q.heap[0] }

func (q *bufferQueue) find(key []byte) *queuedKey { return q.byKey[string(key)] }

func (q *bufferQueue) push(time int64, key string, bytes int64) {
	k := &queuedKey{time: time, key: key, bytes: bytes}
	q.add(k)
	q.undo = append(q.undo, queueUndo{key: k, pushed: true})
}

func (q *bufferQueue) pop() *queuedKey {
	k := q.first()
	q.take(k)
	q.undo = append(q.undo, queueUndo{key: k, popped: true})
	return k
}

// drop notes the value that listeners know of a row whose deletion they are not told.
func (q *bufferQueue) drop(key string, known []byte) {
	if known == nil {
		return
	}
	if q.dropped == nil {
		q.dropped = map[string][]byte{}
	}
	q.dropped[key] = bytes.Clone(known)
}

func (q *bufferQueue) resize(k *queuedKey, bytes int64) {
	q.undo = append(q.undo, queueUndo{key: k, bytes: k.bytes})
	q.bytes += bytes - k.bytes
	k.bytes = bytes
}

func (q *bufferQueue) add(k *queuedKey) {
	if q.byKey == nil {
		q.byKey = map[string]*queuedKey{}
	}
	q.byKey[k.key] = k
	q.bytes += k.bytes
	heap.Push(&q.heap, k)
}

func (q *bufferQueue) take(k *queuedKey) {
	heap.Remove(&q.heap, k.at)
	delete(q.byKey, k.key)
	q.bytes -= k.bytes
}

// Held implements processor.Cache: nothing waits for the commit.
func (q *bufferQueue) Held() int { return 0 }

// Forward implements processor.Cache.
func (q *bufferQueue) Forward() error { return nil }

// Mark implements processor.Cache.
func (q *bufferQueue) Mark() {
	clear(q.undo)
	clear(q.dropped)
	q.undo = q.undo[:0]
}

// Rollback implements processor.Cache.
func (q *bufferQueue) Rollback() {
	for i := len(q.undo) - 1; i >= 0; i-- {
		switch u := q.undo[i]; {
		case u.pushed:
			q.take(u.key)
		case u.popped:
			q.add(u.key)
		default:
			q.bytes += u.bytes - u.key.bytes
			u.key.bytes = u.bytes
		}
	}
	q.Mark()
}

// queued is a heap by time and then key.
type queued []*queuedKey

func (q queued) Len() int { return len(q) }

func (q queued) Less(i, j int) bool {
	if q[i].time != q[j].time {
		return q[i].time < q[j].time
	}
	return q[i].key < q[j].key
}

func (q queued) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].at, q[j].at = i, j
}

func (q *queued) Push(x any) {
	k := x.(*queuedKey)
	k.at = len(*q)
	*q = append(*q, k)
}

func (q *queued) Pop() any {
	last := (*q)[len(*q)-1]
	(*q)[len(*q)-1] = nil
	*q = (*q)[:len(*q)-1]
	return last
}
