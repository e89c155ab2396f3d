package example

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/topology"
)

// SceneOptions are the flags of an example that brings a sample of input along.
type SceneOptions struct {
	Options
	sample, verbose bool
	partitions      int
}

// Flags returns the flags of an example, to which it adds its own. about says what it shows; keeps what it keeps in its local
// state, in the plural; partitions is how many partitions the topics have that it makes.
func (o *SceneOptions) Flags(name, about, keeps string, partitions int) *flag.FlagSet {
	f := o.Options.Flags(name, keeps)
	f.BoolVar(&o.sample, "sample", true, "send the sample, show what comes of it, and exit; with -sample=false run on what others write\n"+
		"to the input topics, and show what comes out, until interrupted")
	f.IntVar(&o.partitions, "partitions", partitions, "`number` of partitions of the topics that are made because they do not exist; in each,\nonly its own records move time on")
	f.BoolVar(&o.verbose, "v", false, "log what the application does to standard error, not only what is wrong")
	f.Usage = func() {
		fmt.Fprintf(f.Output(), "%s\n\nUsage of %s:\n", about, name)
		f.PrintDefaults()
	}
	return f
}

// Scene is an example that shows, record by record of its sample, what comes out.
type Scene struct {
	About    string // printed first
	Topology *topology.Topology
	Sample   func(context.Context, *Home) ([]Input, error)
	Outputs  []Output
}

// Input is a record of the sample.
type Input struct {
	Says   string // what it is, printed for it
	Remark string // what is to be noted, printed behind; may be empty
	Topic  topology.Topic[[]byte, []byte]
	Record processor.Record[[]byte, []byte]
}

// String is what is printed for the record.
func (in Input) String() string {
	if in.Remark == "" {
		return in.Says
	}
	return fmt.Sprintf("%-*s  (%s)", remarksAt, in.Says, in.Remark)
}

// remarksAt is how far to the right remarks begin.
const remarksAt = 28

// Value returns a record with a value, to be sent to a topic. It panics if it cannot be encoded, which is a mistake in the
// sample.
func Value[K, V any](t topology.Topic[K, V], key K, value V, says, remark string) Input {
	in := Delete(t, key, says, remark)
	in.Record.NullValue, in.Record.Value = false, encode(t.ValueSerde(), value)
	return in
}

// Delete returns a record without a value: a tombstone. It panics like Value.
func Delete[K, V any](t topology.Topic[K, V], key K, says, remark string) Input {
	return Input{
		Says: says, Remark: remark, Topic: topology.NewTopic(t.Name(), serde.Bytes, serde.Bytes),
		Record: processor.Record[[]byte, []byte]{Key: encode(t.KeySerde(), key), NullValue: true},
	}
}

func encode[T any](s serde.Serde[T], v T) []byte {
	data, err := s.Append([]byte{}, v)
	if err != nil {
		panic(err)
	}
	return data
}

// Output is a topic of which the records are shown.
type Output struct {
	topic string
	open  func(context.Context, *Home) (lines, error)
}

// lines returns the text for each record that was not read yet.
type lines func(context.Context) ([]string, error)

// Show returns an output whose records are shown as text says.
func Show[K, V any](t topology.Topic[K, V], text func(processor.Record[K, V]) string) Output {
	return Output{topic: t.Name(), open: func(ctx context.Context, h *Home) (lines, error) {
		r := NewReader(h, t)
		return func(ctx context.Context) (all []string, err error) {
			err = r.Each(ctx, func(rec processor.Record[K, V]) error {
				all = append(all, text(rec))
				return nil
			})
			return all, err
		}, r.SkipAll(ctx)
	}}
}

// Play runs the application. It sends the records of the sample one after the other, each when all that the ones before it
// have caused is out, and prints them with what they cause. Without the sample, it prints what comes out until ctx ends.
func (s Scene) Play(ctx context.Context, o SceneOptions, stdout io.Writer) error {
	if !o.verbose {
		o.logLevel = slog.LevelWarn
	}
	if o.partitions < 1 {
		return fmt.Errorf("-partitions %d: want 1 or more", o.partitions)
	}
	if err := o.Check(); err != nil {
		return err
	}
	p := player{scene: s, out: bufio.NewWriter(stdout), shown: make([]int, len(s.Outputs))}
	p.introduce(o)
	if err := p.out.Flush(); err != nil {
		return err
	}
	h, err := Open(o.Options)
	if err != nil {
		return err
	}
	defer h.Close()
	if err := p.open(ctx, h, int32(o.partitions)); err != nil {
		return err
	}
	return h.While(ctx, s.Topology, func(r *Running) error {
		if o.sample {
			return p.sample(ctx, r)
		}
		return p.live(ctx, r)
	})
}

// player plays a scene.
type player struct {
	scene   Scene
	out     *bufio.Writer
	outputs []lines
	shown   []int // how many records, by output
}

// introduce prints what is to be seen.
func (p *player) introduce(o SceneOptions) {
	fmt.Fprintf(p.out, "%s\n\n", p.scene.About)
	fmt.Fprintf(p.out, "reads:  %s\n", strings.Join(external(p.scene.Topology.SourceTopics()), ", "))
	fmt.Fprintf(p.out, "writes: %s\n\n", strings.Join(external(p.scene.Topology.SinkTopics()), ", "))
}

// external names the topics that are not the application's own.
func external(topics []processor.Topic) (names []string) {
	for _, t := range topics {
		if !t.Internal {
			names = append(names, t.Name)
		}
	}
	return names
}

// open makes the topics, and stands at the end of what earlier runs have written.
func (p *player) open(ctx context.Context, h *Home, partitions int32) error {
	topics := append(external(p.scene.Topology.SourceTopics()), external(p.scene.Topology.SinkTopics())...)
	if err := h.Topics(partitions, topics...); err != nil {
		return err
	}
	for _, o := range p.scene.Outputs {
		next, err := o.open(ctx, h)
		if err != nil {
			return err
		}
		p.outputs = append(p.outputs, next)
	}
	return nil
}

// sample sends the sample.
func (p *player) sample(ctx context.Context, r *Running) error {
	inputs, err := p.scene.Sample(ctx, r.Home)
	if err != nil {
		return err
	}
	var topics []string
	for _, o := range p.scene.Outputs {
		topics = append(topics, o.topic)
	}
	for _, in := range inputs {
		if err := Send(ctx, r.Home, in.Topic, in.Record); err != nil {
			return err
		}
		if err := r.Settle(ctx, topics...); err != nil {
			return err
		}
		fmt.Fprintln(p.out, in)
		if err := p.show(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintf(p.out, "\n%s in", records(len(inputs)))
	for i, o := range p.scene.Outputs {
		fmt.Fprintf(p.out, ", %s out to %s", records(p.shown[i]), o.topic)
	}
	fmt.Fprintln(p.out)
	return p.out.Flush()
}

func records(n int) string {
	if n == 1 {
		return "1 record"
	}
	return fmt.Sprintf("%d records", n)
}

// livePause is the time between two looks at what has come out.
const livePause = 200 * time.Millisecond

// live shows what comes out until ctx ends.
func (p *player) live(ctx context.Context, r *Running) error {
	for {
		if err := p.show(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		err := r.sleep(ctx, livePause)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// show prints what has come out since the last call.
func (p *player) show(ctx context.Context) error {
	for i, next := range p.outputs {
		all, err := next(ctx)
		if err != nil {
			return err
		}
		for _, line := range all {
			fmt.Fprintf(p.out, "%*s=> %-*s  %s\n", indent, "", p.width(), p.scene.Outputs[i].topic, line)
		}
		p.shown[i] += len(all)
	}
	return p.out.Flush()
}

// indent is how far to the right outputs are printed.
const indent = 7

// width is that of the longest name of an output.
func (p *player) width() (w int) {
	for _, o := range p.scene.Outputs {
		w = max(w, len(o.topic))
	}
	return w
}
