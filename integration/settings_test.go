package integration

import (
	"maps"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// Changelogs are made to keep what their stores keep, whatever the broker's defaults; one that somebody else has made wrongly
// is complained of; topics that are not the application's own stay as they are.
func TestFieldReport61SettingsOfChangelogs(t *testing.T) {
	t.Parallel()
	in, prices, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "prices", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	log := func(store string) string { return cfg.ApplicationID + "-" + store + "-changelog" }
	brokertest.CreateTopic(t, cfg.Brokers, log("wrong"), 1, map[string]string{"cleanup.policy": "delete", "retention.ms": "86400000"})
	before := map[string]map[string]string{in: topicConfig(t, in), prices: topicConfig(t, prices), out: topicConfig(t, out)}

	app := start(t, build(t, func(b *topology.Builder) {
		stream := topology.From(b, text(in))
		countEach(stream, out)
		wrong := store.NewKeyValue("wrong", serde.String, serde.Int64)
		topology.Count(topology.GroupByKey(stream), wrong, topology.Named("wrong"))
		hours := topology.Tumbling(time.Hour).Grace(time.Hour)
		topology.CountWindows(topology.WindowedBy(topology.GroupByKey(stream), hours), store.NewWindow("hours", serde.String, serde.Int64, hours.Store()))
		topology.VersionedTable(b, text(prices), store.NewVersioned("history", serde.String, serde.String, time.Hour))
	}), cfg)
	app.restores(4)
	const day = 24 * time.Hour
	for store, want := range map[string]map[string]string{
		"counts":  {"cleanup.policy": "compact"},
		"hours":   {"cleanup.policy": "compact,delete", "retention.ms": ms(2*time.Hour + day)},
		"history": {"cleanup.policy": "compact", "min.compaction.lag.ms": ms(time.Hour + day)},
		"wrong":   {"cleanup.policy": "delete"}, // left as it is
	} {
		has := topicConfig(t, log(store))
		for name, value := range want {
			if has[name] != value {
				t.Errorf("%s: %s is %q, want %q", store, name, has[name], value)
			}
		}
	}
	for topic, was := range before {
		if !maps.Equal(topicConfig(t, topic), was) {
			t.Errorf("the settings of %s have changed", topic)
		}
	}
	if n := app.log.count("level=WARN", log("wrong"), "cleanup.policy"); n != 1 {
		t.Errorf("%d complaints about the wrong changelog", n)
	}
	if n := app.log.count("should be"); n != 1 {
		t.Errorf("%d complaints", n)
	}
}
