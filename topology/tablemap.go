package topology

import (
	"errors"
	"fmt"
	"io"

	"github.com/millrace-streams/millrace/processor"
)

// MapTableValues makes another value of each row's. The row's time stays.
func MapTableValues[K, V, V2 any](t KTable[K, V], fn func(key K, value V) V2, opts ...DerivedOption) KTable[K, V2] {
	n := t.b.child("mapvalues", settings{name: derivedOptions(opts).name}, t.n)
	n.need(t.b, fn != nil, "the function")
	n.noStores(t.b, derivedOptions(opts))
	return mapTable(t, n, derivedOptions(opts), func(*processor.Task) (mapping[K, V, V2], error) {
		return func(k K, v V, exists bool) (v2 V2, ok bool, err error) {
			if !exists {
				return v2, false, nil
			}
			return fn(k, v), true, nil
		}, nil
	})
}

// Transformer makes the values of a table's rows, with stores at hand. One is made for each task, and only that task's
// goroutine calls it. If it also is an io.Closer it is closed with its task.
type Transformer[K, V, V2 any] interface {
	// Init is called once, before the first row. The context stays valid for the life of the task. It cannot forward.
	Init(ctx *processor.Context[K, V2]) error
	// Transform returns the new value of a row, or false to delete it. It is called for deleted rows too: exists is false
	// then. It is called again for the value before when a listener wants that, and for rows that a join looks up, unless
	// the table has a store of its own.
	Transform(key K, value V, exists bool) (V2, bool, error)
}

// TransformTable makes another value of each row's, as MapTableValues, with a transformer that reaches the stores which the
// option WithStores names.
func TransformTable[K, V, V2 any](
	t KTable[K, V], newTransformer func() Transformer[K, V, V2], opts ...DerivedOption,
) KTable[K, V2] {
	set := derivedOptions(opts)
	n := t.b.child("transform", settings{name: set.name}, t.n)
	n.need(t.b, newTransformer != nil, "the transformer's function")
	for _, d := range set.stores {
		t.b.reach(n, d)
	}
	type key struct{ *node }
	return mapTable(t, n, set, func(task *processor.Task) (mapping[K, V, V2], error) {
		if m, ok := task.Shared(key{n}).(mapping[K, V, V2]); ok {
			return m, nil
		}
		m, err := bindTransformer(&processor.Binding{Task: task, Node: &n.Node}, newTransformer())
		task.Share(key{n}, m)
		return m, err
	})
}

func bindTransformer[K, V, V2 any](b *processor.Binding, t Transformer[K, V, V2]) (mapping[K, V, V2], error) {
	if t == nil {
		return nil, errors.New("topology: the function returned no transformer")
	}
	if c, ok := t.(io.Closer); ok {
		b.Task.AddCloser(c)
	}
	if err := t.Init(processor.NewQuietContext[K, V2](b)); err != nil {
		return nil, fmt.Errorf("init: %w", err)
	}
	return t.Transform, nil
}

// mapping makes a value of a row's, or none.
type mapping[K, V, V2 any] func(k K, v V, exists bool) (V2, bool, error)

// mapTable completes the node of a table whose values are made of another's. newMapping is called while nodes are bound.
func mapTable[K, V, V2 any](
	t KTable[K, V], n *node, set settings, newMapping func(*processor.Task) (mapping[K, V, V2], error),
) KTable[K, V2] {
	var rows *view[K, V2]
	if of, ok := t.n.table.view.(*view[K, V]); ok {
		rows = computed(of, func(task *processor.Task) (func(K, row[V]) (row[V2], error), error) {
			m, err := newMapping(task)
			return m.row(task), err
		})
	}
	s := derive(t.b, n, set, rows, t.n.table.needOld)
	n.table.versioned = t.n.table.versioned && s == nil
	n.Bind = func(b *processor.Binding) (any, error) {
		m, err := newMapping(b.Task)
		if err != nil {
			return nil, err
		}
		out, err := bindDerived(b, n, s, set)
		if err != nil {
			return nil, err
		}
		p := &mapper[K, V, V2]{node: n.Name, fn: m, keepOld: n.table.keepOld && s == nil, out: out}
		return processor.Emit[K, processor.Change[V]](p.process), nil
	}
	return KTable[K, V2]{t.b, n}
}

// row makes a row of another for those who look it up.
func (m mapping[K, V, V2]) row(task *processor.Task) func(K, row[V]) (row[V2], error) {
	null := nullTest[V2]()
	return func(k K, r row[V]) (out row[V2], err error) {
		at := int64(processor.Unknown)
		if r.exists {
			at = r.timestamp
		}
		err = task.At(at, func() error {
			out.value, out.exists, err = m(k, r.value, r.exists)
			return err
		})
		out.timestamp = r.timestamp
		out.exists = out.exists && (null == nil || !null(out.value))
		return out, err
	}
}

type mapper[K, V, V2 any] struct {
	node    string
	fn      mapping[K, V, V2]
	keepOld bool
	out     *derived[K, V2]
}

func (p *mapper[K, V, V2]) process(r processor.Record[K, processor.Change[V]]) error {
	c := processor.Change[V2]{Outdated: r.Value.Outdated}
	var err error
	if c.New, c.HasNew, err = p.fn(r.Key, r.Value.New, r.Value.HasNew); err != nil {
		return processor.Failed(p.node, processor.KindProcess, err)
	}
	if p.keepOld {
		if c.Old, c.HasOld, err = p.fn(r.Key, r.Value.Old, r.Value.HasOld); err != nil {
			return processor.Failed(p.node, processor.KindProcess, err)
		}
	}
	return p.out.forward(with(r, c))
}
