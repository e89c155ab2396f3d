package sim_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/eos"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

var (
	ticks   = store.NewKeyValue("counts", serde.String, serde.Int64)
	tickOut = topology.NewTopic("word-counts", serde.String, serde.Int64)
)

// ticker counts its own punctuations: no input position moves when it writes.
type ticker struct{}

func (ticker) Process(processor.Record[string, string]) error { return nil }

func (ticker) Init(ctx *processor.Context[string, int64]) error {
	view, err := ticks.View(ctx)
	if err != nil {
		return err
	}
	key := strconv.Itoa(int(ctx.Task().Partition))
	ctx.Schedule(20*time.Millisecond, processor.WallClockTime, func(at int64) error {
		n, _, err := view.Get(key)
		if err != nil {
			return err
		}
		if err := view.Put(key, n+1); err != nil {
			return err
		}
		return ctx.Forward(processor.Record[string, int64]{Key: key, Value: n + 1, Timestamp: at})
	})
	return nil
}

// Punctuations alone, without any input, are as exact: every tick is counted once, whoever owns the task. A zombie's
// ticks must be refused though it has no position to commit.
func TestTicksAreExact(t *testing.T) {
	t.Parallel()
	b := topology.NewBuilder()
	out := topology.Process(topology.From(b, lines), "ticker",
		func() processor.Processor[string, string, string, int64] { return ticker{} }, ticks)
	topology.To(out, tickOut)
	topo, err := b.Build()
	must(t, err)
	seeds(t, 2*time.Second, func(seed uint64) {
		p := draw(rand.New(rand.NewPCG(seed, 0)), eos.ExactlyOnce)
		p.everyUpdate = true
		w := newWorld(t, seed, topo, map[string]int32{"lines": 3, "word-counts": 1}, p)
		var input []func()
		for range 30 {
			input = append(input, func() { w.now = w.now.Add(25 * time.Millisecond) })
		}
		w.schedule(input)
		w.revive()
		for range 100 {
			w.round()
		}
		w.end()
		last := w.output(true)
		for key, n := range w.changelog() {
			if last[key] != n {
				w.fatalf("changelog: task %s is at %d, output at %d", key, n, last[key])
			}
		}
		if len(last) != 3 {
			w.fatalf("%d tasks have ticked, want 3", len(last))
		}
	})
}
