package integration

import (
	"strconv"
	"testing"

	"github.com/millrace-streams/millrace"
	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// Field report 36: under at-least-once a crash leaves a row in the store and in the changelog whose offset was not committed.
// When it comes again it is taken out of the sum and put in again, and the update is told.
func TestFieldReport36RowAgainAfterACrash(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	cfg.Guarantee = millrace.AtLeastOnce
	topo := build(t, func(b *topology.Builder) {
		table := topology.Table(b, text(in), store.NewKeyValue("rows", serde.String, serde.String))
		all := topology.NewRepartition("all", serde.String, serde.String)
		grouped := topology.GroupTableBy(table, all, func(_, n string) (string, string) { return "all", n })
		add := func(sign int) func(sum, n string) string {
			return func(sum, n string) string {
				a, _ := strconv.Atoi(sum)
				b, _ := strconv.Atoi(n)
				return strconv.Itoa(a + sign*b)
			}
		}
		sums := topology.ReduceTable(grouped, add(1), add(-1), store.NewKeyValue("sums", serde.String, serde.String))
		topology.To(topology.Changes(sums), text(out))
	})
	send(t, in, "p", "5")
	send(t, in, "q", "7")
	first := start(t, topo, cfg)
	first.drain()
	first.stop()
	before := show(t, out)

	setOffset(t, cfg.ApplicationID, in, 0, 0) // as if the crash had come just before the offsets were committed
	second := start(t, topo, cfg)
	second.drain()
	second.stop()
	after := show(t, out)
	if len(after) <= len(before) {
		t.Errorf("the rows that came again are not told: %q, then %q", before, after)
	}
	if last := after[len(after)-1]; last != before[len(before)-1] {
		t.Errorf("the sum is %s, was %s", last, before[len(before)-1])
	}
	if last := before[len(before)-1]; last != "all=12" {
		t.Errorf("the sum is %s", last)
	}
}
