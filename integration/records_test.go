package integration

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// What a wall-clock punctuation sends through a repartition topic is counted and comes out without any input, and is
// complete after a stop in order.
func TestFieldReport54PunctuationThroughRepartition(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 2), brokertest.Topic(t, "out", 2)
	cfg := config(t)
	ticking := func(interval time.Duration) *topology.Topology {
		return build(t, func(b *topology.Builder) {
			ticks := topology.Process(topology.From(b, text(in)), "clock", func() processor.Processor[string, string, string, string] {
				return clock{interval}
			})
			countEach(topology.Through(ticks, topology.NewRepartition("ticks", serde.String, serde.String)), out)
		})
	}
	app := start(t, ticking(10*time.Millisecond), cfg)
	app.eventually(func() (bool, string) {
		n := len(brokertest.ReadCommitted(t, cfg.Brokers, out))
		return n >= 6, fmt.Sprintf("%d outputs", n)
	})
	app.stop()
	again := start(t, ticking(time.Hour), cfg) // counts what was sent as the first stopped
	again.drain()
	ticks := settled(t, cfg.Brokers, cfg.ApplicationID+"-ticks-repartition")
	exactlyCounted(t, out, map[string]int64{"tick": int64(len(ticks))})
}

// clock forwards "tick" again and again.
type clock struct{ interval time.Duration }

// Init implements processor.Processor.
func (c clock) Init(ctx *processor.Context[string, string]) error {
	ctx.Schedule(c.interval, processor.WallClockTime, func(at int64) error {
		return ctx.Forward(processor.Record[string, string]{Key: "tick", Value: "x", Timestamp: at})
	})
	return nil
}

// Process implements processor.Processor.
func (clock) Process(processor.Record[string, string]) error { return nil }

// What is forwarded with another time or other headers is seen by its child alone; the dead-letter record is as fetched.
func TestFieldReport55HeadersDoNotLeak(t *testing.T) {
	t.Parallel()
	in, dead := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "dead", 1)
	changed, same, flat := brokertest.Topic(t, "changed", 1), brokertest.Topic(t, "same", 1), brokertest.Topic(t, "flat", 1)
	cfg := config(t)
	cfg.Errors = processor.DeadLetter(dead)
	topo := build(t, func(b *topology.Builder) {
		both := topology.Process(topology.From(b, text(in)), "splitter", newSplitter)
		topology.To(both, text(changed), topology.Named("changed"))
		topology.To(both, text(same), topology.Named("same"))
		pieces := topology.FlatMapValues(topology.From(b, text(in)), func(v string) []string { return []string{v + "1", v + "2"} })
		topology.To(topology.Process(pieces, "marker", newMarker), text(flat))
	})
	record := brokertest.Record{Key: []byte("k"), Value: []byte("v"), Timestamp: time.UnixMilli(10),
		Headers: []brokertest.Header{{Key: []byte("h"), Value: []byte("1")}}}
	bad := record
	bad.Value = []byte("fail")
	app := start(t, topo, cfg)
	brokertest.Produce(t, cfg.Brokers, in, record, bad)
	app.drain()
	for topic, want := range map[string][]string{
		changed: {"v@99 h=2"}, same: {"v@10 h=1"}, flat: {"v1@10 h=1 mark=v1", "v2@10 h=1 mark=v2"},
	} {
		if got := withHeaders(t, topic); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", topic, got, want)
		}
	}
	got := withHeaders(t, dead)
	if len(got) != 1 || !strings.HasPrefix(got[0], "fail@10 h=1 __streams.errors.exception=") {
		t.Errorf("dead letter: got %q, want the record as it was fetched, and what happened", got)
	}
}

func withHeaders(t *testing.T, topic string) []string {
	t.Helper()
	var all []string
	for _, r := range settled(t, brokertest.Brokers(t), topic) {
		s := fmt.Sprintf("%s@%d", r.Value, r.Timestamp.UnixMilli())
		for _, h := range r.Headers {
			s += fmt.Sprintf(" %s=%s", h.Key, h.Value)
		}
		all = append(all, s)
	}
	return all
}

// splitter forwards a changed record to one child and then the record as it came to another.
type splitter struct {
	ctx *processor.Context[string, string]
}

func newSplitter() processor.Processor[string, string, string, string] { return &splitter{} }

// Init implements processor.Processor.
func (s *splitter) Init(ctx *processor.Context[string, string]) error {
	s.ctx = ctx
	return nil
}

// Process implements processor.Processor. It takes the header away before it fails.
func (s *splitter) Process(r processor.Record[string, string]) error {
	other := r
	other.Timestamp, other.Headers = 99, []processor.Header{{Key: "h", Value: []byte("2")}}
	if r.Value == "fail" {
		r.Headers[0] = processor.Header{Key: "gone"}
		return errors.New("as it was told")
	}
	if err := s.ctx.ForwardTo("changed", other); err != nil {
		return err
	}
	return s.ctx.ForwardTo("same", r)
}

// marker adds a header in place.
type marker struct {
	ctx *processor.Context[string, string]
}

func newMarker() processor.Processor[string, string, string, string] { return &marker{} }

// Init implements processor.Processor.
func (m *marker) Init(ctx *processor.Context[string, string]) error {
	m.ctx = ctx
	return nil
}

// Process implements processor.Processor.
func (m *marker) Process(r processor.Record[string, string]) error {
	r.Headers = append(r.Headers, processor.Header{Key: "mark", Value: []byte(r.Value)})
	return m.ctx.Forward(r)
}

// Null keys are skipped and counted where a key is needed, and pass where none is; a store refuses one at once.
func TestFieldReport64NullKeys(t *testing.T) {
	t.Parallel()
	in, rows := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "rows", 1)
	counted, mapped, refused := brokertest.Topic(t, "counted", 1), brokertest.Topic(t, "mapped", 1), brokertest.Topic(t, "refused", 1)
	cfg := config(t)
	topo := build(t, func(b *topology.Builder) {
		stream := topology.From(b, text(in))
		countEach(stream, counted)
		topology.To(topology.MapValues(stream, strings.ToUpper), text(mapped))
		topology.Table(b, text(rows), store.NewKeyValue("rows", serde.String, serde.String))
		byBytes := store.NewKeyValue("bytes", serde.Bytes, serde.String)
		topology.To(topology.Process(stream, "nil", func() processor.Processor[string, string, string, string] {
			return &nilPutter{store: byBytes}
		}, byBytes), text(refused))
	})
	null := brokertest.Record{Value: []byte("v")}
	brokertest.Produce(t, cfg.Brokers, in, null, brokertest.KV("k", "v"))
	brokertest.Produce(t, cfg.Brokers, rows, null, brokertest.KV("k", "v"))
	app := start(t, topo, cfg)
	app.drain()
	exactlyCounted(t, counted, map[string]int64{"k": 1})
	if got, want := show(t, mapped), []string{"null=V", "k=V"}; !slices.Equal(got, want) {
		t.Errorf("mapped: got %q, want %q", got, want)
	}
	if got, want := show(t, refused), []string{"=refused", "k=refused"}; !slices.Equal(got, want) {
		t.Errorf("put of a nil key: got %q, want %q", got, want)
	}
	var topics []string
	for _, d := range app.drops() {
		if !errors.Is(d.err, processor.ErrNullKey) || d.action != processor.Skip || d.err.Offset != 0 {
			t.Errorf("dropped %v by action %d", d.err, d.action)
		}
		topics = append(topics, d.err.Topic)
	}
	slices.Sort(topics)
	if want := []string{in, rows}; !slices.Equal(topics, want) {
		t.Errorf("dropped a record of each of %v, want %v", topics, want)
	}
}

// nilPutter tells what a store says to a nil key.
type nilPutter struct {
	store *store.KeyValue[[]byte, string]
	view  *store.KeyValueView[[]byte, string]
	ctx   *processor.Context[string, string]
}

// Init implements processor.Processor.
func (n *nilPutter) Init(ctx *processor.Context[string, string]) (err error) {
	n.ctx = ctx
	n.view, err = n.store.View(ctx)
	return err
}

// Process implements processor.Processor.
func (n *nilPutter) Process(r processor.Record[string, string]) error {
	if err := n.view.Put(nil, r.Value); errors.Is(err, store.ErrNilKey) {
		return n.ctx.Forward(processor.Record[string, string]{Key: r.Key, Value: "refused", Timestamp: r.Timestamp})
	}
	return errors.New("the nil key was taken")
}
