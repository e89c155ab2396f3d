package topology

import (
	"fmt"
	"strings"
)

// MissingTopicsError names the topics that the application reads, writes or uses for dead letters and that do not exist.
// Millrace creates internal topics only.
type MissingTopicsError struct {
	Topics []string // in alphabetical order
}

// Error names the topics.
func (e *MissingTopicsError) Error() string {
	return "topology: missing topics: " + strings.Join(e.Topics, ", ")
}

// PartitionMismatchError names topics whose records reach one store, though their partition counts differ, so that equal
// keys of different topics would come to different tasks.
type PartitionMismatchError struct {
	Subtopology int32
	Store       string
	Topics      []string         // names on the broker, in the order of their sources
	Counts      map[string]int32 // partitions by topic
}

// Error names the topics with their counts.
func (e *PartitionMismatchError) Error() string {
	parts := make([]string, len(e.Topics))
	for i, t := range e.Topics {
		parts[i] = fmt.Sprintf("%s has %d", t, e.Counts[t])
	}
	return fmt.Sprintf("topology: topics that reach store %q (sub-topology %d) must have equal partition counts: %s",
		e.Store, e.Subtopology, strings.Join(parts, ", "))
}

// InternalTopicError names an internal topic that exists with another partition count than the topology needs, as when an
// input topic has got more partitions. Keyed data would end up in other partitions than before.
type InternalTopicError struct {
	Topic         string
	Found, Needed int32 // partitions
}

// Error names the topic and both counts.
func (e *InternalTopicError) Error() string {
	return fmt.Sprintf("topology: internal topic %q has %d partitions, the topology needs %d", e.Topic, e.Found, e.Needed)
}
