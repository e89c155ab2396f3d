package kafka

import (
	"testing"

	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
)

// A worker commits early when its input is drained, so it has to know that a batch was not the last.
func TestFetchedTellsWhetherMoreIsToCome(t *testing.T) {
	t.Parallel()
	topic := brokertest.Topic(t, "in", 1)
	for range 3 {
		produce(t, topic, 10, 1000) // batches of their own
	}
	p, tp := reader(t, func(c *Config) { c.MaxFetchBytes = 1000 }), processor.TopicPartition{Topic: topic}
	p.Fetch(tp, 0)
	until(t, p, "the end of the topic", func(e runtime.Events) bool {
		for _, f := range e.Fetched {
			if f.More != (f.Next < 30) {
				t.Errorf("at %d of 30: more is %t", f.Next, f.More)
			}
			if f.Next == 30 {
				return true
			}
		}
		return false
	})
}
