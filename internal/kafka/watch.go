package kafka

import (
	"context"
	"fmt"
	"time"
)

// TopicChangedError is a topic that is not any more what the application was placed on.
type TopicChangedError struct {
	Topic     string
	Was, Is   int32 // partitions
	Recreated bool  // it was deleted and created again
}

// Error names the topic and says what has changed.
func (e *TopicChangedError) Error() string {
	if e.Recreated {
		return fmt.Sprintf("kafka: topic %q was deleted and created again", e.Topic)
	}
	return fmt.Sprintf("kafka: topic %q had %d partitions, now it has %d", e.Topic, e.Was, e.Is)
}

// Watch tells changed, once, when one of the topics has more partitions than counts say, or is another topic than now. It
// asks as often as clients refresh their metadata, 30 s unless Configure says otherwise, until ctx or the cluster ends.
func (c *Cluster) Watch(ctx context.Context, counts map[string]int32, changed func(error)) {
	ctx, cancel := context.WithCancel(ctx)
	context.AfterFunc(c.ctx, cancel)
	c.work.Go(func() {
		defer cancel()
		if err := c.watch(ctx, counts); err != nil {
			changed(err)
		}
	})
}

func (c *Cluster) watch(ctx context.Context, counts map[string]int32) error {
	every := c.conf.Metadata.RefreshFrequency
	if every <= 0 {
		every = metadataAge
	}
	var topics []string
	for topic := range counts {
		topics = append(topics, topic)
	}
	was := map[string]topicState{}
	for wait := time.Duration(0); pause(ctx, wait); wait = every {
		is, err := c.topicStates(topics)
		if err != nil {
			continue // others complain
		}
		for topic, now := range is {
			switch before, known := was[topic]; {
			case now.partitions > counts[topic]:
				return &TopicChangedError{Topic: topic, Was: counts[topic], Is: now.partitions}
			case known && before.recreated(topic, now.mark(topic).Value):
				return &TopicChangedError{Topic: topic, Was: counts[topic], Is: now.partitions, Recreated: true}
			case !known:
				was[topic] = now
			}
		}
	}
	return nil
}
