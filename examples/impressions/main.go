// Command impressions joins ads that were shown with the clicks on them, by a left join of two streams within a time.
//
// It sends a small sample of impressions and clicks, some of them out of order or too late, and prints each with what comes
// out because of it. Without -brokers it starts a Kafka of its own inside the process, so that nothing needs to be installed.
package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/millrace-streams/millrace/examples/internal/example"
	"github.com/millrace-streams/millrace/processor"
)

const about = `Ads that were shown (impressions) are joined with the clicks on them: a left join of two streams in a
window. A click counts if it comes within 10 minutes after the impression. An impression without a click
is told too, once: when the times of what comes in have passed its 10 minutes, and 2 more for what comes
out of order.`

// options are the command's flags.
type options struct {
	example.SceneOptions
	impressions, clicks, outcomes string
}

func main() { example.Main("impressions", parse, run) }

func parse(args []string) (o options, err error) {
	f := o.Flags("impressions", about, "impressions and clicks", 1)
	f.StringVar(&o.impressions, "impressions", "impressions", "input `topic`: key id, value {\"ad\": ..., \"page\": ..., \"at\": time}")
	f.StringVar(&o.clicks, "clicks", "ad-clicks", "input `topic`: key the impression's id, value {\"user\": ..., \"at\": time}")
	f.StringVar(&o.outcomes, "out", "ad-outcomes", "output `topic`")
	err = example.Parse(f, args)
	return o, err
}

func run(ctx context.Context, o options, stdout io.Writer) error {
	t := newTopics(o.impressions, o.clicks, o.outcomes)
	topo, err := t.clickedImpressions()
	if err != nil {
		return err
	}
	scene := example.Scene{
		About: about, Topology: topo,
		Sample: func(ctx context.Context, h *example.Home) ([]example.Input, error) {
			day, err := example.NextDay(ctx, h, t.impressions, func(i Impression) time.Time { return i.At })
			return t.sample(day), err
		},
		Outputs: []example.Output{example.Show(t.outcomes, show)},
	}
	return scene.Play(ctx, o.SceneOptions, stdout)
}

func show(r processor.Record[string, Outcome]) string {
	o := r.Value
	ad := fmt.Sprintf("%s: %s on %s", r.Key, o.Ad, o.Page)
	if o.User == "" {
		return ad + " was not clicked"
	}
	return fmt.Sprintf("%s was clicked by %s after %d minutes", ad, o.User, o.Seconds/60)
}
