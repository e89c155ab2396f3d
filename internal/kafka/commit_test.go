package kafka

import (
	"fmt"
	"testing"

	"github.com/millrace-streams/millrace/eos"
	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/processor"
)

func TestCommitIsReadBack(t *testing.T) {
	t.Parallel()
	for _, guarantee := range []eos.Guarantee{eos.ExactlyOnce, eos.AtLeastOnce} {
		t.Run(guarantee.String(), func(t *testing.T) {
			t.Parallel()
			brokers := brokertest.Brokers(t)
			in, out, log := brokertest.Topic(t, "in", 2), brokertest.Topic(t, "out", 2), brokertest.Topic(t, "log", 2)
			cfg := options(brokers, brokertest.UniqueName(t, "app"), "p")
			cfg.Guarantee = guarantee
			p := start(t, cfg, tasks(in, 2, log)...).ports[0]
			granted := leases(t, p, 2)
			if l := granted[processor.TaskID{Partition: 1}]; l.Inputs[0].Offset != 0 || l.Changelogs[0].End != 0 || l.Changelogs[0].Store != "store" {
				t.Fatalf("lease: %+v", l)
			}

			tombstone := writes(log, 1, "a", "1")
			tombstone.Set.Delete([]byte("gone"), 1000, nil)
			record := output(out, 1, "k", "")
			record.Headers = []processor.Header{{Key: "h", Value: []byte("v")}, {Key: "null"}}
			null := processor.Output{Topic: out, Partition: 1, Timestamp: 5}
			done := mustCommit(t, p, processor.Commit{
				Records:   [][]processor.Output{{output(out, 0, "x", "y"), record, null}},
				Writes:    []processor.Writes{writes(log, 0, "b", "2"), tombstone},
				Positions: []processor.Position{position(in, 0, 7), {TopicPartition: processor.TopicPartition{Topic: in, Partition: 1}, Offset: 9, Metadata: "meta"}},
			})
			if end := done.Ends[tombstone.Changelog]; end != 2 {
				t.Errorf("end of the changelog: %d", end)
			}

			got := fetched(t, p, processor.TopicPartition{Topic: out, Partition: 1}, 0, 2)
			if len(got) != 2 || string(got[0].Key) != "k" || got[0].Value == nil || len(got[0].Value) != 0 || got[0].Timestamp != 1000 || got[1].Key != nil || got[1].Value != nil {
				t.Errorf("out: %+v", got)
			}
			if h := got[0].Headers; len(h) != 2 || h[0].Key != "h" || string(h[0].Value) != "v" || h[1].Value != nil {
				t.Errorf("headers: %+v", got[0].Headers)
			}
			got = fetched(t, p, tombstone.Changelog, 0, 2)
			if len(got) != 2 || string(got[0].Value) != "1" || string(got[1].Key) != "gone" || got[1].Value != nil {
				t.Errorf("changelog: %+v", got)
			}
			want := map[int32]int64{0: 7, 1: 9}
			brokertest.Eventually(t, patience, func() (bool, string) {
				offsets := brokertest.GroupOffsets(t, brokers, cfg.App, in)
				return fmt.Sprint(offsets) == fmt.Sprint(want), fmt.Sprint(offsets)
			})
		})
	}
}

func TestOffsetsOnlyCommit(t *testing.T) {
	t.Parallel()
	brokers := brokertest.Brokers(t)
	in := brokertest.Topic(t, "in", 1)
	cfg := options(brokers, brokertest.UniqueName(t, "app"), "p")
	p := start(t, cfg, tasks(in, 1, "")...).ports[0]
	leases(t, p, 1)
	mustCommit(t, p, processor.Commit{Positions: []processor.Position{position(in, 0, 100)}})
	brokertest.Eventually(t, patience, func() (bool, string) {
		offsets := brokertest.GroupOffsets(t, brokers, cfg.App, in)
		return offsets[0] == 100, fmt.Sprint(offsets)
	})
}
