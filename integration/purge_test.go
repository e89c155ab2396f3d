package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/topology"
)

// hanging counts through a repartition topic, and never returns from a record with the value "hang" once it is behind that.
func hanging(b *topology.Builder, s spec, tell func(string)) {
	all := topology.Through(topology.From(b, text(s.In)), topology.NewRepartition("through", serde.String, serde.String))
	countEach(topology.Peek(all, func(key, value string) {
		tell(key + " " + value)
		if value == "hang" && s.Hang {
			select {}
		}
	}), s.Out)
}

func through(app string) string { return app + "-through-repartition" }

// A repartition topic is purged of what is committed, and of nothing that is only consumed.
func TestFieldReport12PurgeStopsAtTheCommittedOffset(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	s := spec{Kind: "hanging", Hang: true, Brokers: cfg.Brokers, App: cfg.ApplicationID, In: in, Out: out, StateDir: cfg.StateDir,
		CommitInterval: cfg.CommitInterval, PurgeInterval: 50 * time.Millisecond}
	killed := spawn(t, s)
	topic := through(cfg.ApplicationID)
	brokertest.Produce(t, cfg.Brokers, in, numbered(30, 3)...)
	purged := func(what string) int64 {
		t.Helper()
		start, at := int64(0), int64(-1)
		brokertest.Eventually(t, patience, func() (bool, string) {
			start, _ = logRange(t, topic, 0)
			at = brokertest.GroupOffsets(t, cfg.Brokers, cfg.ApplicationID, topic)[0]
			return at >= 30 && start == at, fmt.Sprintf("%s: the log starts at %d, committed is %d", what, start, at)
		})
		return at
	}
	killed.hears("k2 x")
	purged("everything committed")
	brokertest.Produce(t, cfg.Brokers, in, append(numbered(19, 1), brokertest.KV("k1", "hang"))...)
	killed.hears("k1 hang") // 50 are consumed
	at := purged("20 in work")
	killed.kill()
	if _, end := logRange(t, topic, 0); end < at+20 {
		t.Errorf("the log ends at %d, committed is %d: nothing was in work", end, at)
	}

	again := start(t, build(t, func(b *topology.Builder) { hanging(b, spec{In: in, Out: out}, func(string) {}) }), cfg)
	again.drain()
	exactlyCounted(t, out, map[string]int64{"k0": 29, "k1": 11, "k2": 10})
}

// What a repartition topic is created with lets nothing in it expire before it is processed.
func TestRepartitionTopicIsCreatedToKeepItsRecords(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	app := start(t, build(t, func(b *topology.Builder) { hanging(b, spec{In: in, Out: out}, func(string) {}) }), cfg)
	app.restores(1)
	for setting, want := range map[string]string{"retention.ms": "-1", "cleanup.policy": "delete", "segment.bytes": "52428800"} {
		if got := topicConfig(t, through(cfg.ApplicationID))[setting]; got != want {
			t.Errorf("%s is %q, want %q", setting, got, want)
		}
	}
}
