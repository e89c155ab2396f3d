// Command dedup lets each payment through once, by its id.
//
// It sends a small sample of payments, some of them twice, and prints each with what comes out because of it. Without
// -brokers it starts a Kafka of its own inside the process, so that nothing needs to be installed.
package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/millrace-streams/millrace/examples/internal/example"
	"github.com/millrace-streams/millrace/processor"
)

const about = `Payments are sent again by clients that have got no answer. Each goes through once: of payments with the
same id that are less than an hour apart, in whichever order they come, the first to arrive goes through
and the others are dropped.`

// options are the command's flags.
type options struct {
	example.SceneOptions
	in, out string
}

func main() { example.Main("dedup", parse, run) }

func parse(args []string) (o options, err error) {
	f := o.Flags("dedup", about, "ids", 4)
	f.StringVar(&o.in, "in", "payments", "input `topic`: key account, value {\"id\": ..., \"amount\": number, \"at\": time}")
	f.StringVar(&o.out, "out", "payments-once", "output `topic`")
	err = example.Parse(f, args)
	return o, err
}

func run(ctx context.Context, o options, stdout io.Writer) error {
	t := newTopics(o.in, o.out)
	topo, err := t.once()
	if err != nil {
		return err
	}
	scene := example.Scene{
		About: about, Topology: topo,
		Sample: func(ctx context.Context, h *example.Home) ([]example.Input, error) {
			day, err := example.NextDay(ctx, h, t.in, func(p Payment) time.Time { return p.At })
			return t.sample(day), err
		},
		Outputs: []example.Output{example.Show(t.out, show)},
	}
	return scene.Play(ctx, o.SceneOptions, stdout)
}

func show(r processor.Record[string, Payment]) string {
	return fmt.Sprintf("%s %s: %d", r.Key, r.Value.ID, r.Value.Amount)
}
