// Command clicksessions makes visits of the clicks of a website's users, by session windows.
//
// It sends a small sample of clicks, some of them out of order and one too late, and prints each click with what comes out
// because of it. Without -brokers it starts a Kafka of its own inside the process, so that nothing needs to be installed.
package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/millrace-streams/millrace/examples/internal/example"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

const about = `Clicks of a website's users become visits (session windows). A visit is over when its user has not
clicked for 30 minutes; clicks out of order are waited for 10 minutes more. What is over is told by the
times of the clicks: nothing happens in silence. A click that comes too late goes to a topic of its own.`

// options are the command's flags.
type options struct {
	example.SceneOptions
	clicks, visits, late, emit string
}

func main() { example.Main("clicksessions", parse, run) }

func parse(args []string) (o options, err error) {
	f := o.Flags("clicksessions", about, "visits", 1)
	f.StringVar(&o.clicks, "clicks", "clicks", "input `topic`: key user, value {\"page\": ..., \"at\": time}")
	f.StringVar(&o.visits, "visits", "visits", "output `topic` of visits")
	f.StringVar(&o.late, "late", "late-clicks", "output `topic` of the clicks that come too late")
	f.StringVar(&o.emit, "emit", "close", "`when` a visit is written: close, once when it is over, or update, each time it changes")
	err = example.Parse(f, args)
	return o, err
}

func run(ctx context.Context, o options, stdout io.Writer) error {
	emit, ok := map[string]topology.TableOption{"close": topology.EmitOnClose(), "update": topology.CachingDisabled()}[o.emit]
	if !ok {
		return fmt.Errorf("-emit %q: want close or update", o.emit)
	}
	t := newTopics(o.clicks, o.visits, o.late)
	topo, err := t.clickSessions(emit)
	if err != nil {
		return err
	}
	scene := example.Scene{
		About: about, Topology: topo,
		Sample: func(ctx context.Context, h *example.Home) ([]example.Input, error) {
			day, err := example.NextDay(ctx, h, t.clicks, func(c Click) time.Time { return c.At })
			return t.sample(day), err
		},
		Outputs: []example.Output{example.Show(t.visits, showVisit), example.Show(t.late, showLate)},
	}
	return scene.Play(ctx, o.SceneOptions, stdout)
}

func showVisit(r processor.Record[store.Windowed[string], Visit]) string {
	visit := fmt.Sprintf("%s %s-%s", r.Key.Key, example.ClockOf(r.Key.Start), example.ClockOf(r.Key.End))
	if r.NullValue {
		return visit + ": no more, it is part of a longer one"
	}
	var pages []string
	for _, c := range r.Value.Clicks {
		pages = append(pages, c.Page)
	}
	return visit + ": " + strings.Join(pages, " ")
}

func showLate(r processor.Record[string, Click]) string {
	return fmt.Sprintf("%s %s: %s", r.Key, example.Clock(r.Value.At), r.Value.Page)
}
