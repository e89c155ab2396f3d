package topology

import "github.com/millrace-streams/millrace/processor"

// JoinTables joins the rows of two tables that have one key: there is a row for each key that both have. Its time is the
// later of both. The tables' topics must have equal partition counts, and be partitioned alike.
func JoinTables[K, A, B, R any](left KTable[K, A], right KTable[K, B], join func(left A, right B) R, opts ...DerivedOption) KTable[K, R] {
	j := tableJoin[K, A, B, R]{
		fn:   func(a A, _ bool, b B, _ bool) R { return join(a, b) },
		left: side{needsOther: true, exists: both}, right: side{needsOther: true, exists: both},
	}
	return j.declare(left, right, join != nil, opts)
}

// LeftJoinTables is JoinTables with a row for each key that the left table has; exists is false, and right the zero value,
// if the right one has it not.
func LeftJoinTables[K, A, B, R any](
	left KTable[K, A], right KTable[K, B], join func(left A, right B, exists bool) R, opts ...DerivedOption,
) KTable[K, R] {
	j := tableJoin[K, A, B, R]{
		fn:   func(a A, _ bool, b B, exists bool) R { return join(a, b, exists) },
		left: side{exists: this}, right: side{needsOther: true, exists: other}, oldLeft: true,
	}
	return j.declare(left, right, join != nil, opts)
}

// OuterJoinTables is JoinTables with a row for each key that either table has. The value of the side that has it not is the
// zero value.
func OuterJoinTables[K, A, B, R any](
	left KTable[K, A], right KTable[K, B], join func(left A, hasLeft bool, right B, hasRight bool) R, opts ...DerivedOption,
) KTable[K, R] {
	j := tableJoin[K, A, B, R]{fn: join, left: side{exists: either}, right: side{exists: either}, oldLeft: true, oldRight: true}
	return j.declare(left, right, join != nil, opts)
}

// side says what a change of one side does. Whether there is a joined row follows from whether this side and the other have
// one; without needsOther, a change may have effect when the other has none.
type side struct {
	needsOther bool
	exists     func(this, other bool) bool
}

func both(this, other bool) bool   { return this && other }
func either(this, other bool) bool { return this || other }
func this(this, _ bool) bool       { return this }
func other(_, other bool) bool     { return other }

type tableJoin[K, A, B, R any] struct {
	fn                func(a A, hasA bool, b B, hasB bool) R
	left, right       side
	oldLeft, oldRight bool // the join itself has to know the values before
}

// declare adds a node for the changes of either side, and one in which they meet: the joined table's.
func (j tableJoin[K, A, B, R]) declare(left KTable[K, A], right KTable[K, B], ok bool, opts []DerivedOption) KTable[K, R] {
	b, set := left.b, derivedOptions(opts)
	name, given := wholeName(set, left.n, "join")
	fromLeft := b.part(name, given, "left", left.n)
	fromRight := b.part(name, given, "right", right.n)
	n := b.whole(name, given, fromLeft, fromRight)
	n.need(b, ok, "the function")
	n.noStores(b, set)
	if right.b != b {
		b.fail(n.at, n.Name, "the joined tables belong to different builders")
	}
	if j.oldLeft {
		left.n.table.needOld(n)
	}
	if j.oldRight {
		right.n.table.needOld(n)
	}
	lefts, rights := viewOf(left, fromRight, true), viewOf(right, fromLeft, true)
	s := derive(b, n, set, j.view(lefts, rights), nil)
	n.table.sendOld = func(asker *node) bool { return left.n.table.needOld(asker) && right.n.table.needOld(asker) }
	fromLeft.Bind = bindSide(n, rights, j.left, j.fn)
	fromRight.Bind = bindSide(n, lefts, j.right, func(b B, hasB bool, a A, hasA bool) R { return j.fn(a, hasA, b, hasB) })
	n.Bind = func(b *processor.Binding) (any, error) {
		out, err := bindDerived(b, n, s, set)
		return processor.Emit[K, processor.Change[R]](out.forwardAs), err
	}
	return KTable[K, R]{b, n}
}

// view is that of a join without a store.
func (j tableJoin[K, A, B, R]) view(lefts *view[K, A], rights *view[K, B]) *view[K, R] {
	return &view[K, R]{
		stores: append(lefts.stores[:len(lefts.stores):len(lefts.stores)], rights.stores...),
		tables: append(lefts.tables[:len(lefts.tables):len(lefts.tables)], rights.tables...),
		bind: func(task *processor.Task, known bool) (lookup[K, R], error) {
			left, err := lefts.bind(task, known)
			if err != nil {
				return nil, err
			}
			right, err := rights.bind(task, known)
			if err != nil {
				return nil, err
			}
			return j.lookUp(left, right), nil
		},
	}
}

func (j tableJoin[K, A, B, R]) lookUp(left lookup[K, A], right lookup[K, B]) lookup[K, R] {
	null := nullTest[R]()
	return func(k K) (out row[R], err error) {
		a, err := left(k)
		if err != nil {
			return out, err
		}
		b, err := right(k)
		if err != nil || !j.left.exists(a.exists, b.exists) {
			return out, err
		}
		out.value = j.fn(a.value, a.exists, b.value, b.exists)
		out.timestamp = max(a.timestamp, b.timestamp)
		out.exists = null == nil || !null(out.value)
		return out, nil
	}
}

// bindSide binds the node that takes the changes of one side and looks up the rows of the other.
func bindSide[K, A, B, R any](n *node, others *view[K, B], s side, fn func(A, bool, B, bool) R) func(*processor.Binding) (any, error) {
	return func(b *processor.Binding) (any, error) {
		find, err := others.bind(b.Task, true)
		if err != nil {
			return nil, err
		}
		p := &joiner[K, A, B, R]{
			side: s, node: b.Node.Name, find: find, fn: fn, keepOld: n.table.keepOld,
			next: processor.FanOut[K, processor.Change[R]](b),
		}
		return processor.Emit[K, processor.Change[A]](p.process), nil
	}
}

// joiner joins the changes of one side with the rows of the other.
type joiner[K, A, B, R any] struct {
	side
	node    string
	find    lookup[K, B]
	fn      func(A, bool, B, bool) R
	keepOld bool
	next    processor.Emit[K, processor.Change[R]]
}

func (p *joiner[K, A, B, R]) process(r processor.Record[K, processor.Change[A]]) error {
	if r.Value.Outdated {
		return nil
	}
	found, err := p.find(r.Key)
	if err != nil {
		return processor.Failed(p.node, processor.KindProcess, err)
	}
	c := &r.Value
	if !found.exists && (p.needsOther || !c.HasNew && !c.HasOld) {
		return nil
	}
	var joined processor.Change[R]
	if joined.HasNew = p.exists(c.HasNew, found.exists); joined.HasNew {
		joined.New = p.fn(c.New, c.HasNew, found.value, found.exists)
	}
	if joined.HasOld = p.keepOld && p.exists(c.HasOld, found.exists); joined.HasOld {
		joined.Old = p.fn(c.Old, c.HasOld, found.value, found.exists)
	}
	out := with(r, joined)
	if found.exists {
		out.Timestamp = max(out.Timestamp, found.timestamp)
	}
	return p.next(out)
}
