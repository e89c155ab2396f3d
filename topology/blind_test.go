package topology_test

import (
	"errors"
	"testing"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/topology"
)

// A count does not look at values, but others that read the same topic do.
func TestValuesBesideACount(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{true, false} {
		b := topology.NewBuilder()
		s := topology.From(b, in)
		topology.To(topology.Changes(topology.Count(topology.GroupByKey(s), counts)), totals)
		if !alone {
			topology.To(s, out)
		}
		r := start(b, processor.Options{}, nil)
		r.send("in", text("k", "v", 1), rm("k", 2), text("k", "", 3))
		must(0, r.run())
		equal(t, read(r, totals), "k=2@3")
		if !alone {
			equal(t, read(r, out), "k=v@1", "k=null@2", "k=@3")
		}
	}
}

// A value that cannot be decoded is a bad record even if it is only counted.
func TestCountOfBadValues(t *testing.T) {
	t.Parallel()
	numbers := topology.NewTopic("numbers", serde.String, serde.Int64)
	b := topology.NewBuilder()
	topology.To(topology.Changes(topology.Count(topology.GroupByKey(topology.From(b, numbers)), counts)), totals)
	r := start(b, processor.Options{}, nil)
	r.send("numbers", text("k", "short", 1))
	var bad *processor.RecordError
	if err := r.run(); !errors.As(err, &bad) || bad.Offset != 0 {
		t.Fatalf("got %v", err)
	}
}
