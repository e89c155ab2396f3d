package topology_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// restamp forwards to one child with another time and header, and then to the other as it came.
type restamp struct{ forward }

func (p *restamp) Process(r processor.Record[string, string]) error {
	late := r
	late.Timestamp, late.Headers = 99, processor.WithHeader(processor.WithoutHeader(r.Headers, "h"), "h", []byte("2"))
	if err := p.ctx.ForwardTo("first", late); err != nil {
		return err
	}
	return p.ctx.ForwardTo("second", r)
}

// deface changes the header slice in place, which it must not, and fails on "bad".
type deface struct{ forward }

func (p *deface) Process(r processor.Record[string, string]) error {
	if len(r.Headers) > 0 {
		r.Headers[0] = processor.Header{Key: "h", Value: []byte("defaced")}
	}
	if strings.HasSuffix(r.Value, "bad") {
		return errRefused
	}
	return p.ctx.Forward(r)
}

func process(s stream, name string, p func() processor.Processor[string, string, string, string]) stream {
	return topology.Process(s, name, p)
}

// Field report 55: a change of time or headers does not reach a sibling, outputs of a flat-map have headers of their own,
// a punctuation has none, and the dead-letter record carries the original ones.
func TestForwardedRecordsAreIndependent(t *testing.T) {
	t.Parallel()
	b := topology.NewBuilder()
	s := topology.From(b, in)
	stamped := process(s, "restamp", func() processor.Processor[string, string, string, string] { return &restamp{} })
	topology.To(topology.Peek(stamped, ignore, topology.Named("first")), out)
	topology.To(topology.Peek(stamped, ignore, topology.Named("second")), out)
	twice := topology.FlatMapValues(s, func(v string) []string { return []string{v + "1", v + "2"} })
	topology.To(process(twice, "deface", func() processor.Processor[string, string, string, string] { return &deface{} }), out2)
	topology.To(twice, out2)
	r := start(b, processor.Options{Policy: processor.DeadLetter("dead")}, nil)
	r.send("in", rec{key: []byte("k"), value: []byte("v"), ts: 10, headers: []processor.Header{{Key: "h", Value: []byte("1")}}})
	r.send("in", rec{key: []byte("k"), value: []byte("bad"), ts: 11, headers: []processor.Header{{Key: "h", Value: []byte("1")}}})
	must(0, r.run())
	equal(t, read(r, out), "k=v@99 h:2", "k=v@10 h:1", "k=bad@99 h:2", "k=bad@11 h:1")
	equal(t, read(r, out2), "k=v1@10 h:defaced", "k=v1@10 h:1", "k=v2@10 h:defaced", "k=v2@10 h:1",
		"k=bad1@11 h:defaced", "k=bad1@11 h:1", "k=bad2@11 h:defaced", "k=bad2@11 h:1")
}

func TestDeadLetterHasOriginalHeaders(t *testing.T) {
	t.Parallel()
	b := topology.NewBuilder()
	topology.To(process(topology.From(b, in), "deface", func() processor.Processor[string, string, string, string] { return &deface{} }), out)
	r := start(b, processor.Options{Policy: processor.DeadLetter("dead")}, nil)
	r.send("in", rec{key: []byte("k"), value: []byte("bad"), ts: 11, headers: []processor.Header{{Key: "h", Value: []byte("1")}}})
	must(0, r.run())
	dead := read(r, topology.NewTopic("dead", serde.String, serde.String))
	if len(dead) != 1 || !strings.HasPrefix(dead[0], "k=bad@11 h:1 ") || !strings.Contains(dead[0], "__streams.errors.node:deface") {
		t.Errorf("got %q", dead)
	}
}

// tally counts its records in a store and reports the count at each punctuation.
type tally struct {
	ctx    *processor.Context[string, string]
	rows   *store.KeyValueView[string, int64]
	closed *int
}

func (p *tally) Init(ctx *processor.Context[string, string]) (err error) {
	p.ctx = ctx
	ctx.Schedule(10*time.Millisecond, processor.StreamTime, p.report)
	p.rows, err = counts.View(ctx)
	return err
}

func (p *tally) Process(r processor.Record[string, string]) error {
	n, _, err := p.rows.Get("all")
	if err != nil {
		return err
	}
	return p.rows.Put("all", n+1)
}

func (p *tally) report(at int64) error {
	n, _, err := p.rows.Get("all")
	if err != nil {
		return err
	}
	return p.ctx.Forward(processor.Record[string, string]{Key: "all", Value: fmt.Sprint(n), Timestamp: at})
}

func (p *tally) Close() error { *p.closed++; return nil }

func TestProcessorWithStoreAndPunctuation(t *testing.T) {
	t.Parallel()
	closed := 0
	b := topology.NewBuilder()
	reports := topology.Process(topology.From(b, in), "tally",
		func() processor.Processor[string, string, string, string] { return &tally{closed: &closed} }, counts)
	topology.To(reports, out)
	r := start(b, processor.Options{}, nil)
	r.send("in", text("a", "", 1), text("b", "", 5), text("c", "", 25))
	must(0, r.run())
	equal(t, read(r, out), "all=1@1", "all=3@25")
	must(0, r.tasks[processor.TaskID{}].Close())
	if closed != 1 {
		t.Errorf("closed %d times", closed)
	}
}

func TestErrorsNameTheirNode(t *testing.T) {
	t.Parallel()
	outside := topology.WithPartitioner(func(_, _ string, n int32) int32 { return n })
	refused := serde.Func(func([]byte, string) ([]byte, error) { return nil, errRefused }, serde.String.Decode)
	for node, declare := range map[string]func(*topology.Builder){
		"in":        func(b *topology.Builder) { topology.From(b, topology.NewTopic("in", serde.String, serde.Int64)) },
		"in.to.out": func(b *topology.Builder) { topology.To(topology.From(b, in), out, outside) },
		"result":    func(b *topology.Builder) { topology.To(topology.From(b, in), out, outside, topology.Named("result")) },
		"in.to.out2": func(b *topology.Builder) {
			topology.To(topology.From(b, in), topology.NewTopic("out2", serde.String, refused))
		},
		"in.through": func(b *topology.Builder) {
			topology.Through(topology.From(b, in), topology.NewRepartition("x", refused, refused))
		},
		"in.reduce": func(b *topology.Builder) {
			rows := store.NewKeyValue("rows", serde.String, refused)
			topology.Reduce(topology.GroupByKey(topology.From(b, in)), func(row, _ string) string { return row }, rows)
		},
	} {
		b := topology.NewBuilder()
		declare(b)
		r := start(b, processor.Options{}, nil)
		r.send("in", text("k", "v", 1))
		var e *processor.RecordError
		if err := r.run(); !errors.As(err, &e) || e.Node != node || e.Topic != "in" || e.Offset != 0 {
			t.Errorf("%s: got %v", node, err)
		}
	}
}

func TestProcessorThatCannotBeMade(t *testing.T) {
	t.Parallel()
	b := topology.NewBuilder()
	process(topology.From(b, in), "none", func() processor.Processor[string, string, string, string] { return nil })
	spec := must(b.Build()).Specs()[0]
	_, err := processor.NewTask(processor.TaskID{}, spec, nil, nil, 0, processor.Options{})
	if err == nil || !strings.Contains(err.Error(), "returned no processor") {
		t.Errorf("got %v", err)
	}
}

func TestPartitionsOfSinks(t *testing.T) {
	t.Parallel()
	b := topology.NewBuilder()
	s := topology.From(b, in)
	topology.To(s, out)
	topology.To(s, out2, topology.WithPartitioner(func(key, value string, n int32) int32 { return int32(len(key)+len(value)) % n }))
	r := start(b, processor.Options{}, map[string]int32{"out": 4, "out2": 3})
	r.send("in", text("key", "v", 1), rec{key: []byte("key"), ts: 2}, rec{value: []byte("v"), ts: 3}, rec{value: []byte("w"), ts: 4})
	must(0, r.run())
	var got []string
	for _, o := range append(r.out["out"], r.out["out2"]...) {
		got = append(got, fmt.Sprintf("%s-%d", o.Topic, o.Partition))
	}
	byKey := fmt.Sprintf("out-%d", processor.PartitionForKey([]byte("key"), 4))
	equal(t, got, byKey, byKey, "out-1", "out-2", "out2-1", "out2-0", "out2-1", "out2-1")
}
