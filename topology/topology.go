package topology

import "github.com/millrace-streams/millrace/processor"

// Topology is a checked declaration. It is immutable, and may be used by any number of applications and test drivers at
// once; the processors' functions that it holds must allow it.
type Topology struct {
	specs   []*processor.Spec
	globals []*processor.GlobalSpec
}

// Specs returns the sub-topologies, each at the index of its ID. They are shared and must not be changed.
func (t *Topology) Specs() []*processor.Spec { return t.specs }

// Globals returns the global tables in the order of their declaration. They are shared and must not be changed. Their topics
// are not among SourceTopics.
func (t *Topology) Globals() []*processor.GlobalSpec { return t.globals }

// SourceTopics returns the topics that are read, repartition topics included, in the order of sub-topologies and nodes.
func (t *Topology) SourceTopics() []processor.Topic { return t.topics(processor.KindSource) }

// SinkTopics returns the topics that are written, each once, repartition topics included, in the order of sub-topologies
// and nodes. Changelogs are not among them.
func (t *Topology) SinkTopics() []processor.Topic { return t.topics(processor.KindSink) }

func (t *Topology) topics(kind processor.Kind) []processor.Topic {
	var topics []processor.Topic
	seen := map[processor.Topic]bool{}
	for _, s := range t.specs {
		for _, n := range s.Nodes {
			if n.Kind == kind && !seen[n.Topic] {
				seen[n.Topic] = true
				topics = append(topics, n.Topic)
			}
		}
	}
	return topics
}
