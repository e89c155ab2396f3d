package topology

import "github.com/millrace-streams/millrace/processor"

// FilterTable keeps the rows for which keep is true. A row that no longer is deleted, and nothing is forwarded of one that
// neither was nor is.
func FilterTable[K, V any](t KTable[K, V], keep func(key K, value V) bool, opts ...DerivedOption) KTable[K, V] {
	return filterTable("filter", t, keep, true, opts)
}

// FilterNotTable keeps the rows for which drop is false. See FilterTable.
func FilterNotTable[K, V any](t KTable[K, V], drop func(key K, value V) bool, opts ...DerivedOption) KTable[K, V] {
	return filterTable("filternot", t, drop, false, opts)
}

func filterTable[K, V any](op string, t KTable[K, V], test func(K, V) bool, pass bool, opts []DerivedOption) KTable[K, V] {
	set := derivedOptions(opts)
	n := t.b.child(op, settings{name: set.name}, t.n)
	n.need(t.b, test != nil, "the function")
	n.noStores(t.b, set)
	// Old values spare the listeners deletions of rows that they have not.
	n.table.keepOld = t.n.table.needOld(nil)
	versioned := t.n.table.versioned
	keeps := func(k K, r row[V]) (row[V], error) {
		if r.exists && test(k, r.value) != pass {
			return row[V]{}, nil
		}
		return r, nil
	}
	var rows *view[K, V]
	if of, ok := t.n.table.view.(*view[K, V]); ok {
		rows = computed(of, func(*processor.Task) (func(K, row[V]) (row[V], error), error) { return keeps, nil })
	}
	s := derive(t.b, n, set, rows, t.n.table.needOld)
	n.table.versioned = versioned && s == nil
	n.Bind = func(b *processor.Binding) (any, error) {
		out, err := bindDerived(b, n, s, set)
		if err != nil {
			return nil, err
		}
		f := &filter[K, V]{test: test, pass: pass, keepOld: n.table.keepOld, spare: n.table.keepOld && !versioned, out: out}
		return processor.Emit[K, processor.Change[V]](f.process), nil
	}
	return KTable[K, V]{t.b, n}
}

type filter[K, V any] struct {
	test    func(K, V) bool
	pass    bool
	keepOld bool
	spare   bool // forward nothing of what neither was nor is
	out     *derived[K, V]
}

func (f *filter[K, V]) process(r processor.Record[K, processor.Change[V]]) error {
	c := &r.Value
	if c.HasNew && f.test(r.Key, c.New) != f.pass {
		var none V
		c.New, c.HasNew = none, false
	}
	if rows := f.out.rows; rows != nil {
		return f.write(rows, r)
	}
	if c.HasOld && (!f.keepOld || f.test(r.Key, c.Old) != f.pass) {
		var none V
		c.Old, c.HasOld = none, false
	}
	if f.spare && !c.HasOld && !c.HasNew {
		return nil
	}
	return f.out.forward(r)
}

func (f *filter[K, V]) write(rows *rows[K, V], r processor.Record[K, processor.Change[V]]) error {
	existed, err := rows.exists(r.Key)
	switch {
	case err != nil:
		return rows.failed(err)
	case r.Value.HasNew:
		return rows.put(r.Key, r.Value.New, r.Timestamp, r.Headers, existed)
	case f.spare && !existed:
		return nil
	}
	return rows.remove(r.Key, r.Timestamp, r.Headers, existed)
}
