package topology

import (
	"errors"
	"fmt"
	"io"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
)

// Process adds a node of the application's own. newProcessor is called once for each task. name is the node's name. The
// processor reaches the stores that are named here, and no others, through its context; several processors may share a
// store, which joins them in one sub-topology. One of a global table, declared before, is read by Names.Query(ctx) and joins
// nothing. The processor sees tombstones and null keys. Whatever it forwards counts as
// re-keyed.
func Process[KIn, VIn, KOut, VOut any](
	s Stream[KIn, VIn], name string, newProcessor func() processor.Processor[KIn, VIn, KOut, VOut], stores ...store.Declaration,
) Stream[KOut, VOut] {
	n := s.b.child("process", settings{name: name}, s.n)
	if name == "" {
		s.b.fail(n.at, n.Name, "Process: %w", errEmptyName)
	}
	n.need(s.b, newProcessor != nil, "the processor's function")
	n.rekeyed = true
	for _, d := range stores {
		s.b.reach(n, d)
	}
	n.Bind = func(b *processor.Binding) (any, error) { return bindProcessor(b, newProcessor()) }
	return Stream[KOut, VOut]{s.b, n}
}

func bindProcessor[KIn, VIn, KOut, VOut any](
	b *processor.Binding, p processor.Processor[KIn, VIn, KOut, VOut],
) (any, error) {
	if p == nil {
		return nil, errors.New("topology: the function returned no processor")
	}
	if c, ok := p.(io.Closer); ok {
		b.Task.AddCloser(c)
	}
	if err := p.Init(processor.NewContext[KOut, VOut](b)); err != nil {
		return nil, fmt.Errorf("init: %w", err)
	}
	node := b.Node.Name
	return processor.Emit[KIn, VIn](func(r processor.Record[KIn, VIn]) error {
		return processor.Failed(node, processor.KindProcess, p.Process(r))
	}), nil
}
