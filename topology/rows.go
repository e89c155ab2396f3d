package topology

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
)

// rows is the state of a table's node in one task: the store, and the changes that wait for the commit. The buffers are
// used again for each record; nothing that leaves the node points into them, as serdes copy.
type rows[K, V any] struct {
	task    *processor.Task
	node    string
	store   *store.Layered
	keys    serde.Serde[K]
	values  serde.Serde[V]
	next    processor.Emit[K, processor.Change[V]] // nil: nobody listens
	keepOld bool                                   // a listener wants old values
	atOnce  bool                                   // forward each update

	null               func(V) bool         // whether a value is no value; nil: none is
	told               *processor.Change[V] // whose old value each update is told to have had; nil: the row's
	key, before, after []byte
	beforeTime         int64
	held               heldChanges[K, V]
}

// row is what a table holds for a key.
type row[V any] struct {
	value     V
	timestamp int64
	exists    bool
}

// maintain makes n the table that writes the store.
func maintain[K, V any](b *Builder, n *node, s *store.KeyValue[K, V]) {
	if s != nil {
		n.need(b, s.KeySerde() != nil, fmt.Sprintf("the key serde of store %q", s.Name()))
		n.need(b, s.ValueSerde() != nil, fmt.Sprintf("the value serde of store %q", s.Name()))
	}
	b.keep(n, s)
	n.table.view = rowsView(n, s)
}

// rowsOf returns the rows of a table's node in a task. It may be called before the node is bound.
func rowsOf[K, V any](task *processor.Task, n *node, s *store.KeyValue[K, V]) (*rows[K, V], error) {
	if t, ok := task.Shared(n).(*rows[K, V]); ok {
		return t, nil
	}
	l, err := task.Layered(s.Name())
	if err != nil {
		return nil, err
	}
	t := &rows[K, V]{task: task, node: n.Name, store: l, keys: s.KeySerde(), values: s.ValueSerde(), null: nullTest[V]()}
	task.Share(n, t)
	return t, nil
}

func bindRows[K, V any](b *processor.Binding, s *store.KeyValue[K, V], n *node, everyUpdate bool) (*rows[K, V], error) {
	t, err := rowsOf(b.Task, n, s)
	if err != nil {
		return nil, err
	}
	t.atOnce = everyUpdate || b.Task.EveryUpdate()
	t.keepOld = n.table.keepOld || n.table.known && !t.atOnce
	if len(b.Children) == 0 {
		return t, nil
	}
	t.next = processor.FanOut[K, processor.Change[V]](b)
	if !t.atOnce {
		b.Task.AddCache(t)
		if n.table.known {
			t.held.places = map[string]int{}
		}
	}
	return t, nil
}

func (t *rows[K, V]) failed(err error) error {
	return processor.Failed(t.node, processor.KindProcess, err)
}

// exists reports whether the key has a row. It leaves the encoded key in t.key and the encoded value in t.before.
func (t *rows[K, V]) exists(k K) (bool, error) {
	r, err := t.lookUp(k)
	return r.exists, err
}

func (t *rows[K, V]) lookUp(k K) (r row[V], err error) {
	key, err := appendTo(t.keys, t.key, k)
	if keep(&t.key, key); err != nil {
		return r, fmt.Errorf("encode key: %w", err)
	}
	before, at, exists, err := t.store.Get(t.before[:0], t.key)
	keep(&t.before, before)
	r.timestamp, r.exists = at, exists
	t.beforeTime = r.timestamp
	return r, err
}

// find is exists with the row's value.
func (t *rows[K, V]) find(k K) (r row[V], err error) {
	if r, err = t.lookUp(k); err == nil && r.exists {
		r.value, err = t.old()
	}
	return r, err
}

// old decodes the value before the update. A table decodes it again for its listeners, for whom it must not be what an
// aggregation's function has changed in place.
func (t *rows[K, V]) old() (V, error) { return t.decode(t.before) }

func (t *rows[K, V]) decode(value []byte) (V, error) {
	v, err := t.values.Decode(value)
	if err != nil {
		err = fmt.Errorf("decode the value in store %q: %w", t.store.Name(), err)
	}
	return v, err
}

// set writes or, if there is no value, deletes the row of a key.
func (t *rows[K, V]) set(k K, v V, exists bool, ts int64, headers []processor.Header) error {
	existed, err := t.exists(k)
	if err != nil {
		return t.failed(err)
	}
	if !exists {
		return t.remove(k, ts, headers, existed)
	}
	return t.put(k, v, ts, headers, existed)
}

// put writes the row of the key that was looked up last.
func (t *rows[K, V]) put(k K, v V, ts int64, headers []processor.Header, existed bool) error {
	if t.null != nil && t.null(v) {
		return t.remove(k, ts, headers, existed)
	}
	after, err := appendTo(t.values, t.after, v)
	if keep(&t.after, after); err != nil {
		return t.failed(fmt.Errorf("encode value: %w", err))
	}
	e, err := t.store.Put(t.key, t.after, ts, headers)
	if err != nil {
		return t.failed(err)
	}
	return t.changed(k, processor.Change[V]{New: v, HasNew: true, HasOld: existed}, e)
}

// remove deletes the row of the key that was looked up last. That there was none is told to those who want each update.
func (t *rows[K, V]) remove(k K, ts int64, headers []processor.Header, existed bool) error {
	if existed {
		e, err := t.store.Delete(t.key, ts, headers)
		if err != nil {
			return t.failed(err)
		}
		return t.changed(k, processor.Change[V]{HasOld: true}, e)
	}
	if t.next == nil || !t.atOnce {
		return nil
	}
	var c processor.Change[V]
	if t.told != nil {
		c.Old, c.HasOld = t.told.Old, t.told.HasOld
	}
	return t.next(processor.Record[K, processor.Change[V]]{Key: k, Value: c, Timestamp: ts, Headers: headers})
}

// changed forwards a change, or holds it back unless the key's is held already.
func (t *rows[K, V]) changed(k K, c processor.Change[V], e *store.Entry) (err error) {
	if t.next == nil || !t.atOnce && e.Aux != 0 {
		return nil
	}
	switch {
	case t.atOnce && t.told != nil:
		c.Old, c.HasOld = t.told.Old, t.told.HasOld
	case t.keepOld && c.HasOld:
		if c.Old, err = t.old(); err != nil {
			return t.failed(err)
		}
	}
	if t.atOnce {
		return t.next(processor.Record[K, processor.Change[V]]{Key: k, Value: c, Timestamp: e.Timestamp, Headers: e.Headers})
	}
	t.held.add(held[K, V]{key: k, old: c.Old, oldTime: t.beforeTime, hasOld: c.HasOld, entry: e})
	return nil
}

// Held implements processor.Cache.
func (t *rows[K, V]) Held() int { return t.held.len() }

// Mark implements processor.Cache.
func (t *rows[K, V]) Mark() { t.held.mark = len(t.held.list) }

// Rollback implements processor.Cache.
func (t *rows[K, V]) Rollback() { t.held.truncate() }

// Forward implements processor.Cache. A row that was made and deleted since the last commit has not changed.
func (t *rows[K, V]) Forward() (err error) {
	h := t.held.pop()
	c := processor.Change[V]{Old: h.old, HasOld: h.hasOld, HasNew: !h.entry.Deleted}
	if !c.HasOld && !c.HasNew {
		return nil
	}
	if c.HasNew {
		if c.New, err = t.decode(h.entry.Value); err != nil {
			return t.failed(err)
		}
	}
	return t.next(processor.Record[K, processor.Change[V]]{
		Key: h.key, Value: c, Timestamp: h.entry.Timestamp, Headers: h.entry.Headers,
	})
}

// appendTo encodes v into a buffer. The result is never nil, as nil stands for null.
func appendTo[T any](s serde.Serde[T], buffer []byte, v T) ([]byte, error) {
	if buffer == nil {
		buffer = make([]byte, 0, 64)
	}
	b, err := s.Append(buffer[:0], v)
	if b == nil {
		b = buffer[:0]
	}
	return b, err
}

// keep makes a buffer what was appended to it. As a rule that lies in it, and only its length changes: writing a pointer
// costs something while the collector is at work.
func keep(buffer *[]byte, b []byte) {
	if cap(b) > 0 && unsafe.SliceData(b) == unsafe.SliceData(*buffer) {
		*buffer = (*buffer)[:len(b)]
	} else {
		*buffer = b
	}
}

// heldChanges is a queue of keys whose rows have changed since the last commit. The rows' new values are in the entries of
// the store's write set; Aux of an entry is its place in the list plus one, 0 when the key is not held.
type heldChanges[K, V any] struct {
	list   []held[K, V]
	head   int            // the next to forward
	mark   int            // length of the list when the step began
	places map[string]int // places in the list by encoded key; nil: nobody asks
}

type held[K, V any] struct {
	key     K
	old     V // set if a listener wants it
	oldTime int64
	hasOld  bool
	encoded string // set if there are places
	entry   *store.Entry
}

func (h *heldChanges[K, V]) len() int { return len(h.list) - h.head }

func (h *heldChanges[K, V]) add(change held[K, V]) {
	if h.places != nil {
		change.encoded = strings.Clone(change.entry.Key) // which may be gone before the change is
		h.places[change.encoded] = len(h.list)
	}
	h.list = append(h.list, change)
	change.entry.Aux = int32(len(h.list))
}

// find returns the change of a key, nil if there is none.
func (h *heldChanges[K, V]) find(key []byte) *held[K, V] {
	if place, ok := h.places[string(key)]; ok {
		return &h.list[place]
	}
	return nil
}

// pop takes out the oldest.
func (h *heldChanges[K, V]) pop() held[K, V] {
	next := h.list[h.head]
	h.list[h.head] = held[K, V]{}
	h.head++
	next.entry.Aux = 0
	delete(h.places, next.encoded)
	if h.head == len(h.list) {
		h.list, h.head, h.mark = h.list[:0], 0, 0
	}
	return next
}

// truncate takes out what was added since the mark. The write set has undone Aux of those entries.
func (h *heldChanges[K, V]) truncate() {
	for i := h.mark; h.places != nil && i < len(h.list); i++ {
		delete(h.places, h.list[i].encoded)
	}
	clear(h.list[h.mark:])
	h.list = h.list[:h.mark]
}
