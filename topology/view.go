package topology

import (
	"time"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
)

// tableNode is what other operators know of the node of a table.
type tableNode struct {
	view    any                    // *view[K, V]; nil: the rows are neither kept nor to be computed
	sendOld func(asker *node) bool // makes its changes tell the values before; nil: a table with a store, which can
	keepOld bool                   // someone wants the values before
	known   bool                   // someone looks up rows as the listeners know them
	// versioned says that changes may be out of date, and that not even deletions of absent rows are left out.
	versioned bool
}

// needOld makes the table send the values before. It returns false if it cannot, which is a mistake of the asker, unless
// that is nil: then it just would have liked to know.
func (t *tableNode) needOld(asker *node) bool {
	if t.keepOld {
		return true
	}
	t.keepOld = t.sendOld == nil || t.sendOld(asker)
	return t.keepOld
}

// view reads the rows of a table from other nodes of the same task.
type view[K, V any] struct {
	stores []store.Declaration // that hold the rows, or what they are computed of
	tables []*node             // that maintain these stores
	bind   func(task *processor.Task, known bool) (lookup[K, V], error)
	// asOf, for versioned tables, gives rows as they were at a time, as far back as history.
	asOf    func(task *processor.Task) (lookupAt[K, V], error)
	history time.Duration
}

// lookup returns the row of a key.
type lookup[K, V any] func(K) (row[V], error)

// lookupAt returns the row of a key at a time.
type lookupAt[K, V any] func(K, int64) (row[V], error)

// at returns the lookup of a versioned table by time. That of any other table knows the newest rows only.
func (v *view[K, V]) at(task *processor.Task) (lookupAt[K, V], error) {
	if v.asOf != nil {
		return v.asOf(task)
	}
	find, err := v.bind(task, false)
	return func(k K, _ int64) (row[V], error) { return find(k) }, err
}

// viewOf returns the view of a table for a node, which it connects with the table's stores. If it is to read the rows as the
// table's listeners know them, changes that are held back are not seen. A table without a view is a mistake.
func viewOf[K, V any](t KTable[K, V], user *node, known bool) *view[K, V] {
	v, ok := t.n.table.view.(*view[K, V])
	if !ok {
		t.b.fail(user.at, user.Name, "the rows of %q are read here but kept nowhere: give it a store with topology.Materialized", t.n.Name)
		return &view[K, V]{}
	}
	for _, d := range v.stores {
		t.b.use(user, d, false)
	}
	for _, n := range v.tables {
		n.table.known = n.table.known || known
	}
	return v
}

// rowsView is the view of a table with a store.
func rowsView[K, V any](n *node, s *store.KeyValue[K, V]) *view[K, V] {
	return &view[K, V]{
		stores: []store.Declaration{s}, tables: []*node{n},
		bind: func(task *processor.Task, known bool) (lookup[K, V], error) {
			t, err := rowsOf(task, n, s)
			if err != nil {
				return nil, err
			}
			r := &reader[K, V]{rows: t}
			if known {
				return r.known, nil
			}
			return r.newest, nil
		},
	}
}

// computed is the view of a table whose rows follow from those of another.
func computed[K, V, V2 any](of *view[K, V], make func(*processor.Task) (func(K, row[V]) (row[V2], error), error)) *view[K, V2] {
	v := &view[K, V2]{stores: of.stores, tables: of.tables, history: of.history}
	v.bind = func(task *processor.Task, known bool) (lookup[K, V2], error) {
		find, err := of.bind(task, known)
		if err != nil {
			return nil, err
		}
		fn, err := make(task)
		return func(k K) (out row[V2], err error) {
			r, err := find(k)
			if err != nil {
				return out, err
			}
			return fn(k, r)
		}, err
	}
	if of.asOf == nil {
		return v
	}
	v.asOf = func(task *processor.Task) (lookupAt[K, V2], error) {
		find, err := of.asOf(task)
		if err != nil {
			return nil, err
		}
		fn, err := make(task)
		return func(k K, at int64) (out row[V2], err error) {
			r, err := find(k, at)
			if err != nil {
				return out, err
			}
			return fn(k, r)
		}, err
	}
	return v
}

// reader looks up rows in buffers of its own, as the table may be at work meanwhile.
type reader[K, V any] struct {
	rows       *rows[K, V]
	key, value []byte
}

// newest returns the row as it was last written.
func (r *reader[K, V]) newest(k K) (found row[V], err error) {
	if r.key, err = appendTo(r.rows.keys, r.key, k); err != nil {
		return found, err
	}
	return r.stored()
}

// known returns the row as the table has last forwarded it.
func (r *reader[K, V]) known(k K) (found row[V], err error) {
	if r.key, err = appendTo(r.rows.keys, r.key, k); err != nil {
		return found, err
	}
	if h := r.rows.held.find(r.key); h != nil {
		return row[V]{value: h.old, timestamp: h.oldTime, exists: h.hasOld}, nil
	}
	return r.stored()
}

func (r *reader[K, V]) stored() (found row[V], err error) {
	r.value, found.timestamp, found.exists, err = r.rows.store.Get(r.value[:0], r.key)
	if err != nil || !found.exists {
		return found, err
	}
	found.value, err = r.rows.decode(r.value)
	return found, err
}
