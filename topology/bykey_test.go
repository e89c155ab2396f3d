package topology_test

import (
	"testing"
	"time"

	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// Of a store that holds the rows of keys from a repartition topic of ours it is known where a key is. It is not if somebody
// else writes the topic, if the rows have other keys, or if a processor may have put them there.
func TestWhereTheRowsOfAKeyAre(t *testing.T) {
	t.Parallel()
	rows := store.NewKeyValue("rows", serde.String, serde.String)
	ids := store.NewKeyValue("rows", serde.String, serde.Int64)
	tumbling, session := topology.Tumbling(time.Minute), topology.Session(time.Minute, 0)
	windows := store.NewWindow("rows", serde.String, serde.Int64, tumbling.Store())
	sessions := store.NewSession("rows", serde.String, serde.Int64, session.Store())
	versions := store.NewVersioned("rows", serde.String, serde.String, time.Minute)
	type stream = topology.Stream[string, string]
	type builder = topology.Builder
	for what, c := range map[string]struct {
		want    bool
		declare func(b *builder, again stream) // again comes from a repartition topic
	}{
		"a table":  {true, func(_ *builder, again stream) { topology.ToTable(again, rows) }},
		"versions": {true, func(_ *builder, again stream) { topology.ToVersionedTable(again, versions) }},
		"windows": {true, func(_ *builder, again stream) {
			topology.CountWindows(topology.WindowedBy(topology.GroupByKey(again), tumbling), windows)
		}},
		"sessions": {true, func(_ *builder, again stream) {
			topology.CountSessions(topology.SessionsBy(topology.GroupByKey(again), session), sessions)
		}},
		"groups": {true, func(b *builder, _ stream) {
			byValue := func(k, v string) (string, string) { return v, k }
			topology.ReduceTable(topology.GroupTableBy(left(b), grouping, byValue), plus, plus, rows)
		}},
		"somebody's topic": {false, func(b *builder, _ stream) { topology.Table(b, in2, rows) }},
		"ids": {false, func(_ *builder, again stream) {
			topology.Deduplicate(again, ids, func(_, v string) string { return v }, time.Minute)
		}},
		"answers": {false, func(b *builder, _ stream) {
			topology.JoinForeign(left(b), topology.Table(b, in2, rights), byFirst, first, plus, topology.Materialized(rows))
		}},
		"a processor's too": {false, func(_ *builder, again stream) {
			topology.ToTable(again, rows)
			topology.Process(again, "writer", newForward, rows)
		}},
		"a processor's": {false, func(_ *builder, again stream) { topology.Process(again, "writer", newForward, rows) }},
		"joined elsewhere": {false, func(b *builder, again stream) {
			topology.JoinTable(topology.From(b, in2), topology.ToTable(again, rows), plus3)
		}},
	} {
		top := build(func(b *topology.Builder) {
			c.declare(b, topology.Through(topology.From(b, in), topology.NewRepartition("again", serde.String, serde.String)))
		})
		found := false
		for _, spec := range top.Specs() {
			for _, s := range spec.Stores {
				if s.Name != "rows" {
					continue
				}
				if found = true; s.ByKey != c.want {
					t.Errorf("%s: %v, want %v", what, s.ByKey, c.want)
				}
			}
		}
		if !found {
			t.Errorf("%s: there is no such store", what)
		}
	}
}

func plus3(_, l, r string) string { return plus(l, r) }
