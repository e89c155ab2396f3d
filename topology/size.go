package topology

import (
	"slices"

	"github.com/millrace-streams/millrace/processor"
)

// size finds the partition counts of all sources: those of the broker's topics are given, those of repartition topics
// follow. A chain of repartition topics needs a round for each link; counts only grow and are bounded, so it ends.
func (p *planner) size() {
	fixed := map[processor.Topic]bool{}
	for _, topic := range p.t.SourceTopics() {
		if !topic.Internal {
			p.counts[topic] = p.existing[topic.Name]
			fixed[topic] = true
		}
	}
	groups := p.groups()
	for _, group := range groups {
		p.adopt(group, fixed)
	}
	for grown := true; grown; {
		grown = false
		grow := func(topic processor.Topic, n int32) {
			if !fixed[topic] && n > p.counts[topic] {
				p.counts[topic] = n
				grown = true
			}
		}
		for _, s := range p.t.specs {
			p.growSinks(s, grow)
		}
		for _, group := range groups {
			for _, topic := range group {
				grow(topic, p.widest(group))
			}
		}
	}
}

// growSinks makes the repartition topics that a sub-topology writes at least as wide as what it reads.
func (p *planner) growSinks(s *processor.Spec, grow func(processor.Topic, int32)) {
	var read []processor.Topic
	for _, n := range s.Sources() {
		read = append(read, n.Topic)
	}
	for _, n := range s.Sinks() {
		if n.Topic.Internal {
			grow(n.Topic, p.widest(read))
		}
	}
}

func (p *planner) widest(topics []processor.Topic) (n int32) {
	for _, topic := range topics {
		n = max(n, p.counts[topic])
	}
	return n
}

// adopt gives the repartition topics of a group the count of the broker's topics in it, if there are any: that of the
// widest, since a group whose topics differ is refused anyway.
func (p *planner) adopt(group []processor.Topic, fixed map[processor.Topic]bool) {
	n := p.widest(group)
	if n == 0 {
		return
	}
	for _, topic := range group {
		if topic.Internal {
			p.counts[topic] = n
			fixed[topic] = true
		}
	}
}

// groups returns the topics that must have equal counts, since the records of a group reach the same stores. Groups that
// have a topic in common are one.
func (p *planner) groups() (groups [][]processor.Topic) {
	for _, s := range p.t.specs {
		for _, store := range s.Stores {
			group := sourcesOf(s, store.Name)
			groups = slices.DeleteFunc(groups, func(g []processor.Topic) bool {
				overlap := slices.ContainsFunc(g, func(t processor.Topic) bool { return slices.Contains(group, t) })
				if overlap {
					group = append(group, g...)
				}
				return overlap
			})
			groups = append(groups, group)
		}
	}
	return groups
}

// sourcesOf returns the topics whose records reach a store, in the order of their sources.
func sourcesOf(s *processor.Spec, store string) (topics []processor.Topic) {
	reaches := make([]bool, len(s.Nodes))
	for i := len(s.Nodes) - 1; i >= 0; i-- { // children first
		n := s.Nodes[i]
		reaches[i] = slices.Contains(n.Stores, store) || slices.ContainsFunc(n.Children, func(c int) bool { return reaches[c] })
	}
	for i, n := range s.Nodes {
		if n.Kind == processor.KindSource && reaches[i] {
			topics = append(topics, n.Topic)
		}
	}
	return topics
}
