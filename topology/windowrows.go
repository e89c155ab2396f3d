package topology

import (
	"encoding/binary"
	"fmt"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
)

// windowChanges forwards the changes of rows in windows or sessions: at once, or the last one per row at the commit. It is a
// processor.Cache.
type windowChanges[K, A any] struct {
	task    *processor.Task
	node    string
	store   string
	keys    serde.Serde[K]
	values  serde.Serde[A]
	null    func(A) bool                                           // whether a value is no value; nil: none is
	next    processor.Emit[store.Windowed[K], processor.Change[A]] // nil: nobody listens
	atOnce  bool
	onClose bool // changes are not forwarded
	keepOld bool // a listener wants old values
	ends    bool // a change has the time of its window's end, not that of its row

	list   []heldWindow[K, A]
	head   int            // the next to forward
	mark   int            // length of the list when the step began
	undo   []heldOrigin   // what the step has changed below the mark
	places map[string]int // places in the list by encoded window; nil: nobody asks
}

// heldWindow is a change that waits for the commit. The new value is in the entry of the store's write set; Aux of the entry
// is its place in the list plus one.
type heldWindow[K, A any] struct {
	window  store.Windowed[K]
	old     A
	oldTime int64
	hasOld  bool
	entry   *store.Entry
	origin  processor.Origin // of the latest change
	encoded string           // set if there are places
}

type heldOrigin struct {
	place  int
	origin processor.Origin
}

func (c *windowChanges[K, A]) failed(err error) error {
	return processor.Failed(c.node, processor.KindProcess, err)
}

// change is what has become of a row.
type windowChange[K, A any] struct {
	window  store.Windowed[K]
	value   A
	exists  bool // there is a value now
	old     row[A]
	time    int64
	headers []processor.Header
}

// changed forwards a change or holds it back, unless the row's is held already. Without an entry the row was too old for its
// store, and nothing can be held.
func (c *windowChanges[K, A]) changed(w windowChange[K, A], e *store.Entry) error {
	switch {
	case c.next == nil || c.onClose:
		return nil
	case c.atOnce || e == nil:
		return c.send(w.window, processor.Change[A]{Old: w.old.value, HasOld: w.old.exists, New: w.value, HasNew: w.exists}, w.time, w.headers)
	case e.Aux != 0:
		c.again(int(e.Aux) - 1)
		return nil
	}
	h := heldWindow[K, A]{
		window: w.window, old: w.old.value, oldTime: w.old.timestamp, hasOld: w.old.exists, entry: e, origin: c.task.Origin(),
	}
	if c.places != nil {
		key, err := c.encode(w.window)
		if err != nil {
			return c.failed(err)
		}
		h.encoded = key
		c.places[key] = len(c.list)
	}
	c.list = append(c.list, h)
	e.Aux = int32(len(c.list))
	return nil
}

// again notes that a row whose change is held has changed once more.
func (c *windowChanges[K, A]) again(place int) {
	if place < c.mark {
		c.undo = append(c.undo, heldOrigin{place, c.list[place].origin})
	}
	c.list[place].origin = c.task.Origin()
}

func (c *windowChanges[K, A]) send(w store.Windowed[K], change processor.Change[A], ts int64, headers []processor.Header) error {
	if c.ends {
		ts = w.End
	}
	return c.next(processor.Record[store.Windowed[K], processor.Change[A]]{Key: w, Value: change, Timestamp: ts, Headers: headers})
}

// final forwards the result of a window that is closed.
func (c *windowChanges[K, A]) final(r store.Row[K, A]) error {
	return c.send(r.Windowed, processor.Change[A]{New: r.Value, HasNew: true}, r.Timestamp, nil)
}

// Held implements processor.Cache.
func (c *windowChanges[K, A]) Held() int { return len(c.list) - c.head }

// Mark implements processor.Cache.
func (c *windowChanges[K, A]) Mark() { c.mark, c.undo = len(c.list), c.undo[:0] }

// Rollback implements processor.Cache. The write set has undone Aux of the entries.
func (c *windowChanges[K, A]) Rollback() {
	for i := len(c.undo) - 1; i >= 0; i-- {
		c.list[c.undo[i].place].origin = c.undo[i].origin
	}
	for i := c.mark; c.places != nil && i < len(c.list); i++ {
		delete(c.places, c.list[i].encoded)
	}
	clear(c.list[c.mark:])
	c.list, c.undo = c.list[:c.mark], c.undo[:0]
}

// Forward implements processor.Cache. A row that was made and deleted since the last commit has not changed.
func (c *windowChanges[K, A]) Forward() (err error) {
	h := c.pop()
	change := processor.Change[A]{Old: h.old, HasOld: h.hasOld, HasNew: !h.entry.Deleted}
	if !change.HasOld && !change.HasNew {
		return nil
	}
	if change.HasNew {
		if change.New, err = c.values.Decode(h.entry.Value); err != nil {
			return c.failed(fmt.Errorf("decode the value in store %q: %w", c.store, err))
		}
	}
	return c.task.From(h.origin, h.entry.Timestamp, func() error {
		return c.send(h.window, change, h.entry.Timestamp, h.entry.Headers)
	})
}

// pop takes out the oldest.
func (c *windowChanges[K, A]) pop() heldWindow[K, A] {
	next := c.list[c.head]
	c.list[c.head] = heldWindow[K, A]{}
	c.head++
	next.entry.Aux = 0
	delete(c.places, next.encoded)
	if c.head == len(c.list) {
		c.list, c.head, c.mark, c.undo = c.list[:0], 0, 0, c.undo[:0]
	}
	return next
}

// known returns the row of a window as the listeners know it; false if they know the newest.
func (c *windowChanges[K, A]) known(w store.Windowed[K]) (r row[A], held bool, err error) {
	if len(c.places) == 0 {
		return r, false, nil
	}
	key, err := c.encode(w)
	if err != nil {
		return r, false, err
	}
	place, held := c.places[key]
	if held {
		h := &c.list[place]
		r = row[A]{value: h.old, timestamp: h.oldTime, exists: h.hasOld}
	}
	return r, held, nil
}

func (c *windowChanges[K, A]) encode(w store.Windowed[K]) (string, error) {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 64), uint64(w.Start))
	b, err := c.keys.Append(binary.BigEndian.AppendUint64(b, uint64(w.End)), w.Key)
	if err != nil {
		return "", fmt.Errorf("encode key: %w", err)
	}
	return string(b), nil
}

// bind completes the changes of a node that is being bound.
func (c *windowChanges[K, A]) bind(n *node, next processor.Emit[store.Windowed[K], processor.Change[A]], set settings) {
	c.next, c.onClose = next, set.closing.onClose
	c.atOnce = set.everyUpdate || c.task.EveryUpdate()
	hold := next != nil && !c.atOnce && !c.onClose
	c.keepOld = next != nil && !c.onClose && (n.table.keepOld || n.table.known && hold)
	if !hold {
		return
	}
	if n.table.known {
		c.places = map[string]int{}
	}
	c.task.AddCache(c)
}

// windowRows are the rows of an aggregation in time or sliding windows in one task.
type windowRows[K, A any] struct {
	windowChanges[K, A]
	view *store.WindowView[K, A]
	size int64
}

// windowRowsOf returns the rows of a table's node in a task. It may be called before the node is bound.
func windowRowsOf[K, A any](task *processor.Task, n *node, s *store.Window[K, A]) (*windowRows[K, A], error) {
	if t, ok := task.Shared(n).(*windowRows[K, A]); ok {
		return t, nil
	}
	view, err := s.View(task)
	if err != nil {
		return nil, err
	}
	t := &windowRows[K, A]{view: view, size: s.Size().Milliseconds()}
	t.windowChanges = windowChanges[K, A]{
		task: task, node: n.Name, store: s.Name(), keys: s.KeySerde(), values: s.ValueSerde(), null: nullTest[A](),
	}
	task.Share(n, t)
	return t, nil
}

func (t *windowRows[K, A]) window(k K, start int64) store.Windowed[K] {
	return store.Windowed[K]{Key: k, Start: start, End: start + t.size}
}

// find returns the row of a window.
func (t *windowRows[K, A]) find(k K, start int64) (r row[A], err error) {
	r.value, r.timestamp, r.exists, err = t.view.FetchWithTime(k, start)
	return r, err
}

// old returns the row of a window for the listeners, for whom it must not be what a function has changed in place. existed
// says that there is one.
func (t *windowRows[K, A]) old(k K, start int64, existed bool) (r row[A], err error) {
	if !existed || !t.keepOld {
		return row[A]{exists: existed}, nil
	}
	return t.find(k, start)
}

// put writes the row of a window, or deletes it if there is no value.
func (t *windowRows[K, A]) put(k K, start int64, v A, ts int64, headers []processor.Header, old row[A]) (err error) {
	w := windowChange[K, A]{window: t.window(k, start), value: v, exists: t.null == nil || !t.null(v), old: old, time: ts, headers: headers}
	var e *store.Entry
	switch {
	case w.exists:
		if e, err = t.view.PutRecord(k, v, start, ts, headers); err == nil && e == nil {
			err = t.lost(w.window, ts, t.view.Time)
		}
	case old.exists:
		e, err = t.view.DeleteRecord(k, start, ts, headers)
	case !t.atOnce:
		return nil // that there still is none is told to those who want each update
	}
	if err != nil {
		return t.failed(err)
	}
	return t.changed(w, e)
}

// lost reports a row that its store does not take up any more: another stream that is aggregated in it is further on.
func (c *windowChanges[K, A]) lost(w store.Windowed[K], ts int64, time func() (int64, error)) error {
	now, err := time()
	if err == nil {
		c.task.Late(processor.Late{Node: c.node, Timestamp: ts, Start: w.Start, End: w.End, StreamTime: now})
	}
	return err
}

// windowsView is the view of a table of windows.
func windowsView[K, A any](n *node, s *store.Window[K, A]) *view[store.Windowed[K], A] {
	return &view[store.Windowed[K], A]{
		stores: []store.Declaration{s}, tables: []*node{n},
		bind: func(task *processor.Task, known bool) (lookup[store.Windowed[K], A], error) {
			t, err := windowRowsOf(task, n, s)
			if err != nil {
				return nil, err
			}
			return func(w store.Windowed[K]) (row[A], error) {
				if r, held, err := t.known(w); known && (held || err != nil) {
					return r, err
				}
				return t.find(w.Key, w.Start)
			}, nil
		},
	}
}
